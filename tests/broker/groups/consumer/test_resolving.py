"""Regular expressions of consumer groups in a broker: when they are resolved, and what goes on meanwhile."""

from __future__ import annotations

import gc
import weakref
from threading import Event
from typing import Any

import gevent
import pytest
from broker.clients import Client
from broker.groups.consumer.test_coordinator import count, described, join, send
from timing import until

from dafka.broker.groups.patterns import InvalidRegularExpressionError, matching


@pytest.fixture
def topic(client):
    client.create("t", 6)
    return client


def assigned(client: Client, name: str, told: Any, **fields: Any) -> Any:
    """The next answer with an assignment."""
    return until(lambda: (again := send(client, name, told.member_epoch, **fields)).assignment and again)


def matched_later(monkeypatch: pytest.MonkeyPatch) -> Event:
    """From now on nothing is known to match before this event is set."""
    matched = Event()

    def slowly(regex: str, names: Any) -> list[str]:
        while not matched.is_set():
            gevent.sleep(0.001)
        return matching(regex, names)

    monkeypatch.setattr("dafka.broker.groups.consumer.coordinator.matching", slowly)
    return matched


def test_expressions_are_re2s_and_find_topics_that_are_created_later(topic):
    found = assigned(topic, "x", join(topic, "x", topics=[], regex="t.*"))
    assert count(found) == 6
    topic.create("t2", 2)
    found = assigned(topic, "x", found)
    assert count(found) == 8
    topic.create("other", 1)
    for _ in range(3):
        assert send(topic, "x", found.member_epoch).member_epoch == found.member_epoch
    (member,) = described(topic).members
    assert (member.topics, member.regex) == ([], "t.*")
    assert join(topic, "y", regex="(?=t)").error is InvalidRegularExpressionError


def test_a_heartbeat_does_not_wait_for_what_its_expression_matches(topic, monkeypatch):
    matched = matched_later(monkeypatch)
    topic.create("t2", 2)
    try:
        first = join(topic, "x", "t2", regex="t")
        again = send(topic, "x", first.member_epoch)
        assert (count(first), again.assignment, first.member_epoch) == (2, None, 2)
        assert first.interval == again.interval == 0.01  # so that nobody waits for long
    finally:
        matched.set()
    found = assigned(topic, "x", first)
    assert (count(found), found.member_epoch) == (8, 3)
    assert send(topic, "x", found.member_epoch).interval == 5.0


def test_a_topic_that_was_deleted_is_another_epoch_for_a_member_that_no_longer_subscribes_to_it(
    topic, monkeypatch
):
    topic.create("old", 1)
    found = assigned(topic, "x", join(topic, "x", topics=[], regex="o.*"))
    matched = matched_later(monkeypatch)
    topic.change("delete_topics", ["old"])
    try:
        send(topic, "x", found.member_epoch, regex="t")
        assert described(topic).epoch == found.member_epoch + 1
    finally:
        matched.set()


def test_a_topic_that_is_created_while_an_expression_is_matched_is_found(topic, monkeypatch):
    matched, created = Event(), Event()

    def slowly(regex: str, names: Any) -> list[str]:
        found = matching(regex, names)
        matched.set()
        while not created.is_set():
            gevent.sleep(0.001)
        return found

    monkeypatch.setattr("dafka.broker.groups.consumer.coordinator.matching", slowly)
    told = join(topic, "x", topics=[], regex="t.*")
    try:
        assert matched.wait(100)
        topic.create("t2", 2)
    finally:
        created.set()
    told = assigned(topic, "x", told)
    assert count(told if count(told) == 8 else assigned(topic, "x", told)) == 8


def test_a_member_that_leaves_while_its_expression_is_matched_is_gone(topic, monkeypatch):
    matched, left = Event(), Event()

    def slowly(regex: str, names: Any) -> list[str]:
        matched.set()
        while not left.is_set():
            gevent.sleep(0.001)
        return matching(regex, names)

    monkeypatch.setattr("dafka.broker.groups.consumer.coordinator.matching", slowly)
    join(topic, "y")
    join(topic, "x", topics=[], regex="t.*")
    try:
        assert matched.wait(100)
        send(topic, "x", -1)
        epoch = described(topic).epoch
    finally:
        left.set()
    assert send(topic, "y", epoch - 1).member_epoch == epoch == described(topic).epoch


def test_matching_that_fails_is_tried_again_with_the_next_heartbeat(topic, monkeypatch, caplog):
    failures = [ValueError("failed on purpose")]

    def failing(regex: str, names: Any) -> list[str]:
        if failures:
            raise failures.pop()
        return matching(regex, names)

    monkeypatch.setattr("dafka.broker.groups.consumer.coordinator.matching", failing)
    told = join(topic, "x", topics=[], regex="t.*")
    assert count(assigned(topic, "x", told)) == 6
    assert "the regular expressions of group 'g' failed unexpectedly" in caplog.text


def test_rights_of_members_are_not_kept_when_topics_were_looked_for(topic):
    class MaySee:
        def __call__(self, names: Any) -> Any:
            return names

    asked = MaySee()
    gone = weakref.ref(asked)
    assigned(topic, "x", join(topic, "x", topics=[], regex="t", may_see=asked))
    del asked

    def is_gone() -> bool:
        gc.collect()
        return gone() is None

    until(is_gone)  # the hub may be in a last call with it


def test_an_expression_finds_what_the_member_may_see_whose_heartbeat_began_it(topic):
    topic.create("t2", 2)
    told = join(topic, "x", topics=[], regex="t.*", may_see=lambda names: {"t2"} & set(names))
    assert count(assigned(topic, "x", told)) == 2
    # It is known already: nothing is looked for, and the second member gets what the first may see.
    assert send(topic, "x", join(topic, "y", topics=[], regex="t.*").member_epoch - 1).error is None
    partitions = [sum(map(len, one.target.values())) for one in described(topic).members]
    assert partitions == [1, 1]
