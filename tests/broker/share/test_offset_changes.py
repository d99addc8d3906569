"""Tools change from where a share group reads: acquired records are forgotten, offsets stay in the log."""

from __future__ import annotations

from broker.clients import Client, batch
from broker.share.member import Member, acquired
from kafka.errors import NonEmptyGroupError, UnknownTopicOrPartitionError

from dafka.broker.interface.topics import TopicSpec


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


def test_a_topic_with_deleted_share_offsets_is_as_if_nobody_had_read_it(client: Client) -> None:
    client.call("create_topics", {"jobs": TopicSpec(1)})
    client.call("alter_share_offsets", "queue", {("jobs", 0): 0})
    assert client.call("delete_share_offsets", "queue", ["jobs", "none"]).parts == {
        ("jobs", -1): None,
        ("none", -1): UnknownTopicOrPartitionError,
    }
    assert client.call("share_offsets", "queue").partitions == {}
