"""Partitions of very many topics are taken and released in pieces, whatever happens in between."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from broker.groups.consumer.group_table import Table
from broker.groups.modern.known_topics import FakeTopics

from dafka.broker import limits
from dafka.broker.groups.consumer import group as group_module
from dafka.broker.groups.consumer.group import Answer, ConsumerGroup
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat

NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def table(monkeypatch) -> Table:
    """Five topics are very many, and moves are computed ahead."""
    monkeypatch.setattr(limits, "TOPICS_AT_ONCE", 2)
    monkeypatch.setattr(group_module, "MOVED_AT_ONCE", 0)
    table = Table()
    table.topics = FakeTopics(**dict.fromkeys(NAMES, 1))
    table.group = ConsumerGroup(0.0, table.topics, 1)
    return table


def joined(table: Table) -> Answer:
    """Member "x" has all of them in its target, and nothing yet."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(group_module, "ASSIGNED_AT_ONCE", 0)
        answer = table.join("x", *NAMES)
    group = table.group
    group.install(group.epoch, group.draft().target(group.assignor))
    assert not answer.assignment
    return answer


def ahead(table: Table, request: ConsumerHeartbeat) -> Iterator[None]:
    table.group.look_ahead(request, lambda function, *arguments: function(*arguments))
    return table.group.reserving(request.member_id)


def beat(table: Table, request: ConsumerHeartbeat) -> Answer:
    return table.group.heartbeat(table.now, request, 10.0, 100)


def topics_of(table: Table, answer: Any) -> set[str]:
    ids = {known.topic_id: name for name, known in table.topics.known.items()}
    return {ids[topic] for topic in answer.assignment or {}}


def ticked(table: Table) -> int:
    ticks = 0
    while table.group.wake_at <= table.now:
        table.group.tick(table.now)
        ticks += 1
    return ticks


def all_free(table: Table) -> bool:
    """Whether a new member gets everything at once."""
    return topics_of(table, table.join("y", *NAMES)) == set(NAMES)


def test_partitions_are_taken_in_pieces_before_the_heartbeat_that_gives_them(table, monkeypatch):
    request = ConsumerHeartbeat("x", joined(table).epoch)
    taken: list[int] = []
    owned = table.group._owned
    take = owned.take
    monkeypatch.setattr(owned, "take", lambda some: taken.append(len(some)) or take(some))
    assert len(list(ahead(table, request))) == 3
    assert topics_of(table, beat(table, request)) == set(NAMES)
    assert taken == [2, 2, 1]
    assert table.group.state_name == "Stable"


def test_a_member_that_leaves_while_partitions_are_taken_keeps_none(table):
    answer = joined(table)
    pieces = ahead(table, ConsumerHeartbeat("x", answer.epoch))
    next(pieces), next(pieces)
    table.send("x", -1)
    assert list(pieces) == []
    assert ticked(table)
    assert all_free(table)


def test_another_heartbeat_while_partitions_are_taken_gets_them_with_the_next_one(table):
    """And what was taken for the first one is free again, once."""
    request = ConsumerHeartbeat("x", joined(table).epoch)
    pieces = ahead(table, request)
    next(pieces), next(pieces)
    other = ConsumerHeartbeat("x", request.member_epoch)
    assert list(ahead(table, other)) == []
    answer = beat(table, other)
    assert list(pieces) == []
    ticked(table)
    assert len(topics_of(table, answer)) == 1
    answer = beat(table, ConsumerHeartbeat("x", answer.epoch))
    assert topics_of(table, answer) == set(NAMES)
    table.send("x", -1)
    ticked(table)
    assert all_free(table)


def test_partitions_taken_for_a_target_that_is_not_the_last_one_are_free_again(table):
    answer = joined(table)
    request = ConsumerHeartbeat("x", answer.epoch)
    pieces = ahead(table, request)
    next(pieces)
    table.join("y", *NAMES)
    for _ in pieces:
        pass
    beat(table, request)
    shares: dict[str, set[str]] = {}
    for _ in range(5):
        ticked(table)
        for name in ("x", "y"):
            answer = beat(table, ConsumerHeartbeat(name, table.group.members[name].epoch, owned={}))
            shares[name] = topics_of(table, answer) or shares.get(name, set())
    members = table.group.members
    assert shares["x"] | shares["y"] == set(NAMES) and not shares["x"] & shares["y"]
    assert sum(map(len, (members["x"].assigned, members["y"].assigned))) == len(NAMES)


def test_partitions_of_a_member_that_has_gone_are_free_in_pieces(table):
    request = ConsumerHeartbeat("x", joined(table).epoch)
    for _ in ahead(table, request):
        pass
    answer = beat(table, request)
    assert topics_of(table, answer) == set(NAMES)
    table.send("x", -1)
    assert table.group.wake_at <= table.now
    assert topics_of(table, table.join("y", *NAMES)) == set()
    assert ticked(table) == 3
    answer = beat(table, ConsumerHeartbeat("y", table.group.members["y"].epoch))
    assert topics_of(table, answer) == set(NAMES)


def test_epochs_of_the_partitions_of_a_member_that_has_gone_are_freed_in_pieces(table):
    for partitions, name in enumerate(NAMES, 2):
        table.topics.extend(name, partitions)  # what is equal is one object
    request = ConsumerHeartbeat("x", joined(table).epoch)
    for _ in ahead(table, request):
        pass
    beat(table, request)
    held, alone = list(table.group.members["x"].since.values()), object()

    def kept() -> int:
        *counts, of_alone = [sys.getrefcount(one) for one in (*held, alone)]
        return sum(count > of_alone for count in counts)

    assert kept() == len(NAMES)
    table.send("x", -1)
    left = [kept()]
    while table.group.wake_at <= table.now:
        table.group.tick(table.now)
        left.append(kept())
    assert left == [5, 3, 1, 0]


def test_a_member_that_gets_a_part_of_what_was_taken_for_it_lacks_the_rest(table):
    assert topics_of(table, table.join("y", "e")) == {"e"}
    request = ConsumerHeartbeat("x", joined(table).epoch)
    topic = table.topics.known["e"].topic_id
    group = table.group
    target = {"x": {known.topic_id: frozenset({0}) for known in table.topics.known.values()}, "y": {}}
    group.install(group.epoch + 1, target)
    list(ahead(table, request))
    assert topics_of(table, beat(table, request)) == set(NAMES) - {"e"}
    assert group.members["x"].lacks and topic in group.members["y"].assigned
