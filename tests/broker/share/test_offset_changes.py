"""Tools change from where a share group reads: acquired records are forgotten, offsets stay in the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broker.clients import Client, batch
from broker.share.member import Member, acquired
from kafka.errors import KafkaStorageError, NonEmptyGroupError, UnknownError, UnknownTopicOrPartitionError
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.interface.groups import TopicPartition
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.share.offset_changes import OffsetChanges
from dafka.hub.turns import Pace
from dafka.log import LogError

QUEUE = Resource(ResourceType.GROUP, "queue")


def test_a_group_goes_on_where_it_is_told(client: Client) -> None:
    client.call("create_topics", {"jobs": TopicSpec(1)})
    client.call("produce", {("jobs", 0): [batch(b"a"), batch(b"b"), batch(b"c")]})
    changed = client.call("alter_share_offsets", "queue", {("jobs", 0): 1, ("jobs", 7): 0})
    assert changed.parts == {("jobs", 0): None, ("jobs", 7): UnknownTopicOrPartitionError}
    member = Member(client.call, "queue", "jobs")
    member.heartbeat()
    assert acquired(member.fetch()) == [(1, 2, 1)]
    assert client.call("alter_share_offsets", "queue", {("jobs", 0): 2}).error is NonEmptyGroupError
    member.heartbeat(-1)
    for asked, begin in ((99, None), (-5, 0)):  # beyond the log is its end, before it its beginning
        assert client.call("alter_share_offsets", "queue", {("jobs", 0): asked}).parts == {("jobs", 0): None}
        again = Member(client.call, "queue", "jobs")
        again.heartbeat()
        assert acquired(again.fetch()) == ([] if begin is None else [(begin, 2, 1)])
        again.heartbeat(-1)


def test_a_group_begins_with_offsets_in_a_topic_that_is_there(client: Client) -> None:
    client.call("create_topics", {"jobs": TopicSpec(1)})
    for name, state in (("none", ""), ("jobs", "Empty")):
        changed = client.call("alter_share_offsets", "queue", {(name, 7): 0})
        assert changed.parts == {(name, 7): UnknownTopicOrPartitionError}
        assert client.call("describe_share_groups", ["queue"])["queue"].state == state


def test_a_group_without_a_name_has_no_offsets(client: Client) -> None:
    client.call("create_topics", {"jobs": TopicSpec(1)})
    assert client.call("share_offsets", "", [("jobs", 0)]).error is UnknownError
    assert client.call("share_offsets", "", [("none", 0)]).error is None


class Rounds:
    """Counts the rounds that a broker writes."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        writer = client.core._writer
        write = writer._write

        def counted(*arguments: Any) -> Any:
            self.count += 1
            return write(*arguments)

        monkeypatch.setattr(writer, "_write", counted)


def test_offsets_of_many_partitions_are_written_in_few_rounds(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.call("create_topics", {"jobs": TopicSpec(600)})
    rounds = Rounds(client, monkeypatch)
    offsets = {("jobs", number): 0 for number in range(600)}
    changed = client.call("alter_share_offsets", "queue", offsets)
    assert changed.parts == dict.fromkeys(offsets)
    assert rounds.count < 100
    assert len(client.call("share_offsets", "queue").partitions) == 600


@pytest.mark.parametrize("begins", [False, True])
def test_a_round_of_many_partitions_is_begun_in_a_later_turn_than_the_last_one_has_ended(
    client: Client, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    """A round takes some milliseconds of a turn, and what is begun next as many."""
    monkeypatch.setattr("dafka.broker.share.offset_changes.ALTERED_AT_ONCE", 10)
    client.call("create_topics", {"jobs": TopicSpec(100)})
    begun = list[int]()
    begin = OffsetChanges._save
    monkeypatch.setattr(
        OffsetChanges, "_save", lambda self, *given: begun.append(pauses()) or begin(self, *given)
    )
    writes = client.core._writer._round
    monkeypatch.setattr(client.core._writer, "_round", lambda items: (time.sleep(0.01), writes(items)))
    pauses = pauses_of_offset_changes(monkeypatch)
    if begins:
        Member(client.call, "queue", "jobs").heartbeat()
    else:
        client.call("alter_share_offsets", "queue", {("jobs", number): 0 for number in range(100)})
    assert len(begun) == 100
    assert len(set(begun)) >= 9


def pauses_of_offset_changes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often these have given others a turn."""
    counted = [0]
    pause = Pace.pause

    def count(pace: Pace) -> None:
        counted[0] += sys._getframe(2).f_globals["__name__"] == OffsetChanges.__module__
        pause(pace)

    monkeypatch.setattr(Pace, "pause", count)
    return lambda: counted[0]


def test_the_states_of_many_partitions_are_deleted_in_few_rounds(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.call("create_topics", {"jobs": TopicSpec(600)})
    client.call("alter_share_offsets", "queue", {("jobs", number): 0 for number in range(600)})
    rounds = Rounds(client, monkeypatch)
    assert client.call("delete_share_offsets", "queue", ["jobs"]).parts == {("jobs", -1): None}
    assert rounds.count < 20
    assert client.call("share_offsets", "queue").partitions == {}


def test_the_first_fetch_of_many_partitions_writes_few_rounds(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.call("create_topics", {"jobs": TopicSpec(600)})
    client.call("alter_configs", {QUEUE: [ConfigChange("share.auto.offset.reset", 0, "earliest")]})
    for number in (0, 599):
        client.call("produce", {("jobs", number): [batch(b"a")]})
    member = Member(client.call, "queue", "jobs")
    member.heartbeat()
    assert len(member.places) == 600
    rounds = Rounds(client, monkeypatch)
    assert acquired(member.fetch()) == [(0, 0, 1)]  # of the first one, whose state is known first
    assert acquired(member.fetch(max_wait=60.0)) == [(0, 0, 1)]
    assert rounds.count < 200


def test_an_offset_that_cannot_be_written_is_not_set_and_the_others_are(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.call("create_topics", {"jobs": TopicSpec(3)})
    states = client.core._share_calls._states
    load = states.load

    def damaged(group: str, partition: Any) -> Any:
        if partition.number == 1:
            raise LogError("folder", "damaged")
        return load(group, partition)

    monkeypatch.setattr(states, "load", damaged)
    changed = client.call("alter_share_offsets", "queue", {("jobs", number): 0 for number in range(3)})
    assert changed.parts == {("jobs", 0): None, ("jobs", 1): KafkaStorageError, ("jobs", 2): None}


def test_a_topic_with_deleted_share_offsets_is_as_if_nobody_had_read_it(client: Client) -> None:
    client.call("create_topics", {"jobs": TopicSpec(1)})
    client.call("alter_share_offsets", "queue", {("jobs", 0): 0})
    assert client.call("delete_share_offsets", "queue", ["jobs", "none"]).parts == {
        ("jobs", -1): None,
        ("none", -1): UnknownTopicOrPartitionError,
    }
    assert client.call("share_offsets", "queue").partitions == {}


def test_a_group_has_a_state_of_topics_that_nobody_has_fetched_from(tmp_path: Path) -> None:
    """Until it is deleted, also after a restart; those that join later begin anew."""

    def seen(client: Client) -> dict[TopicPartition, int]:
        found = client.call("share_offsets", "queue").partitions
        return {key: one.start for key, one in found.items()}

    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.call("create_topics", {"jobs": TopicSpec(2), "later": TopicSpec(1)})
        member = Member(client.call, "queue", "jobs")
        member.heartbeat()
        other = Member(client.call, "queue", "later", "none")
        other.heartbeat()
        client.call("create_partitions", {"jobs": 3})
        until(lambda: bool(member.heartbeat()) and len(member.places) == 3)
        for one in (member, other):
            one.heartbeat(-1)
        begun = {("jobs", 0): -1, ("jobs", 1): -1, ("jobs", 2): -1, ("later", 0): -1}
        assert seen(client) == begun
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert seen(client) == begun
        for error in (None, UnknownTopicOrPartitionError):
            assert client.call("delete_share_offsets", "queue", ["jobs"]).parts == {("jobs", -1): error}
        assert seen(client) == {("later", 0): -1}
        member = Member(client.call, "queue", "jobs")
        for _ in range(2):
            member.heartbeat(0)
            member.heartbeat(-1)
            assert client.call("delete_share_offsets", "queue", ["jobs"]).parts == {("jobs", -1): None}
        assert client.call("delete_groups", ["queue"]) == {"queue": None}
        assert seen(client) == {}


def test_fetched_partitions_are_not_begun_again(client: Client) -> None:
    client.call("create_topics", {"jobs": TopicSpec(1)})
    client.call("produce", {("jobs", 0): [batch(b"a"), batch(b"b")]})
    client.call("alter_share_offsets", "queue", {("jobs", 0): 1})
    for count in (1, 2):
        member = Member(client.call, "queue", "jobs")
        member.heartbeat()
        assert acquired(member.fetch()) == [(1, 1, count)]
        member.heartbeat(-1)
        member.fetch(epoch=-1)
        assert client.call("share_offsets", "queue").partitions["jobs", 0].start == 1
