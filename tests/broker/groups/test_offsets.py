"""Committed offsets of groups."""

from __future__ import annotations

import time
from types import SimpleNamespace
from uuid import UUID

import kafka.errors as errors
import pytest
from broker.transactions.transactional import Producer

from dafka.broker.groups.offsets import GroupOffsets
from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.groups import LeavingMember
from dafka.broker.limits import BARE_GROUPS, OFFSET_METADATA_MAX_BYTES
from dafka.log.table import Table


def test_the_latest_commit_counts(client):
    client.create("t", 2)
    client.call("commit_offsets", "g", {("t", 0): CommittedOffset(5), ("t", 1): CommittedOffset(7)})
    assert client.call("commit_offsets", "g", {("t", 0): CommittedOffset(6, "why", 3)}) == {("t", 0): None}
    assert client.call("fetch_offsets", "g", [("t", 0)]) == {("t", 0): CommittedOffset(6, "why", 3)}
    assert client.call("fetch_offsets", "g") == {
        ("t", 0): CommittedOffset(6, "why", 3),
        ("t", 1): CommittedOffset(7),
    }


def test_groups_do_not_see_each_others_offsets(client):
    client.create("t")
    groups = ["g", "g/", "g/g", "1:g", "ä\0", "g" * 1000]
    for number, group in enumerate(groups):
        assert client.call("commit_offsets", group, {("t", 0): CommittedOffset(number)}) == {("t", 0): None}
    for number, group in enumerate(groups):
        assert client.call("fetch_offsets", group) == {("t", 0): CommittedOffset(number)}


def test_groups_with_offsets_are_known_without_reading_each_offset(client, monkeypatch):
    def listed():
        return sorted(group.group for group in client.call("list_groups"))

    client.create("t", 2)
    client.create("u")
    assert listed() == []
    monkeypatch.setattr(Table, "unordered", lambda table: pytest.fail("each key is looked at"))
    for group in ("g", "2:g", "h"):
        client.call("commit_offsets", group, {("t", 0): CommittedOffset(1), ("t", 1): CommittedOffset(1)})
    client.call("commit_offsets", "h", {("u", 0): CommittedOffset(1)})
    assert listed() == ["2:g", "g", "h"]
    client.call("delete_offsets", "g", [("t", 0)])
    assert listed() == ["2:g", "g", "h"]
    client.call("delete_offsets", "g", [("t", 1)])
    assert listed() == ["2:g", "g", "h"]  # as in Kafka, which looks for groups without anything now and then
    assert client.call("describe_groups", ["g"])["g"].state == "Empty"
    client.call("delete_groups", ["g"])
    assert listed() == ["2:g", "h"]
    monkeypatch.undo()
    client.call("delete_topics", ["t"])
    assert listed() == ["2:g", "h"]
    client.call("delete_groups", ["2:g"])
    assert listed() == ["h"]


def test_stable_offsets_of_a_group_are_not_sought_among_all_that_transactions_hold(client, monkeypatch):
    """Which may be hundreds of thousands, of other groups."""

    class Held(set[str]):
        def __iter__(self):
            raise AssertionError("each held row is looked at")

    monkeypatch.setattr(client.core._offsets, "_held", Held())
    client.create("t")
    client.call("commit_offsets", "other", {("t", 0): CommittedOffset(3)})
    Producer(client).send_offset(5)
    assert client.call("fetch_offsets", "other", None, require_stable=True) == {("t", 0): CommittedOffset(3)}
    with pytest.raises(errors.UnstableOffsetCommitError):
        client.call("fetch_offsets", "g", None, require_stable=True)


def test_an_offset_is_stable_when_the_last_transaction_that_commits_it_has_ended(client):
    client.create("t")
    first, second = Producer(client, "x"), Producer(client, "y")
    first.send_offset(5)
    second.send_offset(6)
    first.commit()
    for partitions in ([("t", 0)], None):
        with pytest.raises(errors.UnstableOffsetCommitError):
            client.call("fetch_offsets", "g", partitions, require_stable=True)
    second.abort()
    for partitions in ([("t", 0)], None):
        stable = client.call("fetch_offsets", "g", partitions, require_stable=True)
        assert stable == {("t", 0): CommittedOffset(5)}


def test_partitions_without_a_committed_offset_are_left_out(client):
    client.create("t", 2)
    client.call("commit_offsets", "g", {("t", 1): CommittedOffset(0)})
    assert list(client.call("fetch_offsets", "g", [("t", 0), ("t", 1), ("u", 0)])) == [("t", 1)]
    assert client.call("fetch_offsets", "other") == {}


def test_each_partition_has_its_own_error(client):
    client.create("t", 2)
    answers = client.call(
        "commit_offsets",
        "g",
        {
            ("t", 0): CommittedOffset(1, "x" * OFFSET_METADATA_MAX_BYTES),
            ("t", 1): CommittedOffset(1, "x" * (OFFSET_METADATA_MAX_BYTES + 1)),
            ("t", 2): CommittedOffset(1),
            ("u", 0): CommittedOffset(1),
        },
    )
    assert answers == {
        ("t", 0): None,
        ("t", 1): errors.OffsetMetadataTooLargeError,
        ("t", 2): errors.UnknownTopicOrPartitionError,
        ("u", 0): errors.UnknownTopicOrPartitionError,
    }
    assert list(client.call("fetch_offsets", "g")) == [("t", 0)]


def test_the_group_without_a_name_has_offsets_and_no_members(client):
    """As in Kafka, for the sake of old clients."""
    client.create("t")
    assert client.call("commit_offsets", "", {("t", 0): CommittedOffset(1)}) == {("t", 0): None}
    assert client.call("fetch_offsets", "") == {("t", 0): CommittedOffset(1)}
    assert [group.group for group in client.call("list_groups")] == [""]
    assert client.call("describe_groups", [""])[""].state == "Empty"
    assert client.call("heartbeat", "", 1, "member") is errors.InvalidGroupIdError
    assert client.call("sync_group", "", 1, "member").error is errors.InvalidGroupIdError
    assert client.call("leave_group", "", [LeavingMember("member")]) == [errors.InvalidGroupIdError]
    assert client.call("delete_offsets", "", [("t", 0)]) == {("t", 0): errors.InvalidGroupIdError}
    assert client.call("delete_groups", [""]) == {"": None}
    assert client.call("fetch_offsets", "") == {}


@pytest.mark.parametrize("group", [None, 5])
def test_an_invalid_group_name_is_refused(client, group):
    client.create("t")
    answers = client.call("commit_offsets", group, {("t", 0): CommittedOffset(1)})
    assert answers == {("t", 0): errors.InvalidGroupIdError}


class Whole:
    """An integer of another library, like those of numpy."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


def test_offsets_are_integers_of_any_type(client):
    client.create("t")
    answers = client.call("commit_offsets", "g", {("t", 0): CommittedOffset(Whole(7), "", Whole(3))})
    assert answers == {("t", 0): None}
    assert client.call("fetch_offsets", "g") == {("t", 0): CommittedOffset(7, "", 3)}
    for offset in ("7", 7.5, None):
        with pytest.raises(TypeError):
            client.call("commit_offsets", "g", {("t", 0): CommittedOffset(offset)})


class OffsetsOfManyGroups:
    """A log, its table of offsets, and its writer: each of ``count`` groups has one offset in ``topic``."""

    def __init__(self, topic, count):
        names = [f"group-{number}" for number in range(count)]
        self._keys = {f"{len(name)}:{name}/{topic.topic_id.hex}/0": name for name in names}
        self._groups = dict.fromkeys(names, 1)

    def table(self, name, check):
        return self

    def kinds(self, kind_of, pause=None):
        return self._groups

    def unordered(self):
        return iter(list(self._keys))

    def put_and_wait(self, rows):
        for _, key in rows:
            self._groups.pop(self._keys.pop(key))


def test_many_groups_whose_topic_is_deleted_are_forgotten_in_short_turns():
    topic = SimpleNamespace(topic_id=UUID(int=1))
    log = OffsetsOfManyGroups(topic, 40_000)
    offsets = GroupOffsets(log, log, None)
    offsets.forget(topic)
    began = time.thread_time()
    assert len(offsets.groups()) == BARE_GROUPS
    assert offsets.has_group("group-39999")
    offsets.forget_bare()
    assert not offsets.has_group("group-39999")
    assert offsets.groups() == []
    assert time.thread_time() - began < 0.2  # some 10 ms; with a plain dict half a second
