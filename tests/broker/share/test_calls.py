"""Share groups through a broker's interface: in the process, and over TCP."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import kafka.errors as errors_
import pytest
from broker.clients import Client, batch
from broker.share.member import ACCEPT, REJECT, RELEASE, Member, acquired, errors, only

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.share import (
    NO_START,
    Acknowledged,
    ShareFetched,
    ShareFetchLimits,
    ShareRequest,
)
from dafka.broker.remote.remote import Remote
from dafka.broker.share.limits import ACKNOWLEDGED_AT_ONCE, MEMBER_ID_LENGTH
from dafka.hub.hub import get_hub

GROUP = "queue"
Call = Callable[..., Any]


@pytest.fixture(params=["in the process", "over TCP"])
def call(request: pytest.FixtureRequest) -> Iterator[Call]:
    with Broker(listen="127.0.0.1:0") as broker:
        if request.param == "in the process":
            yield Client(broker).call
            return
        hub = get_hub()
        host, _, port = broker.bootstrap_servers.rpartition(":")
        remote = hub.run(Remote, hub, [(host, int(port))])
        yield lambda method, *args, **kwargs: hub.run(getattr(remote, method), *args, **kwargs)
        hub.run(remote.close)


def configure(call: Call, **settings: str) -> None:
    resource = Resource(ResourceType.GROUP, GROUP)
    changes = [ConfigChange(name.replace("_", "."), 0, value) for name, value in settings.items()]
    assert call("alter_configs", {resource: changes})[resource].error is None


def produce(call: Call, *values: bytes, topic: str = "jobs", number: int = 0) -> None:
    assert call("produce", {(topic, number): [batch(*values)]})[topic, number].error is None


def joined(call: Call, *topics: str, partitions: int = 1) -> Member:
    """A member of a group that begins with the first record."""
    configure(call, share_auto_offset_reset="earliest")
    for topic in topics or ("jobs",):
        call("create_topics", {topic: TopicSpec(partitions)})
    member = Member(call, GROUP, *(topics or ("jobs",)))
    assert member.heartbeat().error is None
    return member


def test_a_member_acquires_acknowledges_and_gets_the_next_records(call):
    member = joined(call)
    produce(call, b"a", b"b", b"c")
    answer = member.fetch()
    assert acquired(answer) == [(0, 2, 1)]
    assert only(answer).batches and answer.lock == 30.0
    produce(call, b"d")
    answer = member.fetch((0, 0, ACCEPT), (1, 1, RELEASE), (2, 2, REJECT))
    assert errors(answer) == [None]
    assert acquired(answer) == [(3, 3, 1)]
    assert acquired(member.fetch()) == [(1, 1, 2)]
    assert errors(member.acknowledge((1, 1, ACCEPT), (3, 3, ACCEPT))) == [None]
    offsets = call("share_offsets", GROUP)
    (offset,) = offsets.partitions.values()
    assert (offset.start, offset.lag, offset.error) == (1, 0, None)  # as it was before the last one


def test_released_records_are_for_the_next_fetch_if_there_are_others(call):
    """As in Kafka, where they are available when that is written."""
    member = joined(call)
    for _ in range(4):
        produce(call, b"a")
    assert acquired(member.fetch(records=2)) == [(0, 1, 1)]
    assert acquired(member.fetch((0, 1, RELEASE), records=1)) == [(2, 2, 1)]
    assert acquired(member.fetch()) == [(0, 1, 2), (3, 3, 1)]
    assert acquired(member.fetch((0, 0, RELEASE), (3, 3, RELEASE))) == [(0, 0, 3), (3, 3, 2)]  # no others


def test_room_that_an_acknowledgement_makes_is_for_the_next_fetch(call):
    member = joined(call)
    configure(call, share_partition_max_record_locks="2")
    for _ in range(4):
        produce(call, b"a")
    assert acquired(member.fetch(records=1)) == [(0, 0, 1)]
    assert acquired(member.fetch((0, 0, ACCEPT))) == [(1, 1, 1)]
    assert acquired(member.fetch()) == [(2, 2, 1)]
    assert acquired(member.fetch((2, 2, ACCEPT))) == []  # 1 and 2 are still in flight
    assert acquired(member.fetch((1, 1, ACCEPT))) == [(3, 3, 1)]


def test_a_fetch_with_acknowledgements_waits_for_records_as_any(call):
    member = joined(call)
    produce(call, b"a")
    assert acquired(member.fetch()) == [(0, 0, 1)]
    found: list[Any] = []
    fetch = functools.partial(member.fetch, (0, 0, ACCEPT), max_wait=60.0)
    waiting = threading.Thread(target=lambda: found.append(fetch()))
    waiting.start()
    produce(call, b"b")
    waiting.join(60)
    assert acquired(found[0]) == [(1, 1, 1)] and errors(found[0]) == [None]


def numbers(answer: ShareFetched) -> dict[int, list[tuple[int, int, int]]]:
    """What was acquired of each partition that was answered."""
    assert answer.error is None, answer
    return {number: list(map(tuple, one.acquired)) for (_, number), one in answer.partitions.items()}


def test_the_first_fetch_of_a_group_has_the_first_partition_with_records(call):
    """As in Kafka, where the states of the others are read meanwhile."""
    member = joined(call, partitions=5)
    for number in (1, 3, 4):
        produce(call, b"a", number=number)
    assert numbers(member.fetch()) == {0: [], 1: [(0, 0, 1)]}
    assert numbers(member.fetch(max_wait=60.0)) == {3: [(0, 0, 1)], 4: [(0, 0, 1)]}
    assert numbers(member.fetch()) == {}
    other = Member(call, GROUP, "jobs")
    other.heartbeat()
    other.places = member.places
    for number in range(5):
        produce(call, b"b", number=number)
    assert sorted(numbers(other.fetch())) == [0, 1, 2, 3, 4]  # their states are known


def test_partitions_that_a_session_adds_are_answered_when_their_states_are_known(call):
    member = joined(call, partitions=4)
    produce(call, b"a")
    every, member.places = member.places, member.places[:1]
    assert numbers(member.fetch()) == {0: [(0, 0, 1)]}
    limits = ShareFetchLimits(0.0, 1, 1 << 20, 500, 500, False)
    produce(call, b"a", number=2)
    answer = call("share_fetch", member.request((), None, False), every[1:], [], limits, None)
    assert numbers(answer) == {1: [], 2: [(0, 0, 1)]}
    assert numbers(member.fetch(epoch=2)) == {3: []}


def test_a_partition_whose_state_is_not_known_is_opened_though_there_are_records_in_others(call):
    member = joined(call, partitions=2)
    for number in (0, 0, 0, 1):
        produce(call, b"a", number=number)
    every, member.places = member.places, member.places[:1]
    assert numbers(member.fetch(records=1)) == {0: [(0, 0, 1)]}
    limits = ShareFetchLimits(0.0, 1, 1 << 20, 1, 500, False)
    added = call("share_fetch", member.request((), None, False), every[1:], [], limits, None)
    assert numbers(added) == {0: [(1, 1, 1)]}
    assert numbers(member.fetch(epoch=2)) == {0: [(2, 2, 1)], 1: [(0, 0, 1)]}


def test_partitions_have_equal_parts_of_the_octets(call):
    member = joined(call, partitions=2)
    for _ in range(8):
        for number in range(2):
            produce(call, b"x" * 900, number=number)
    assert numbers(member.fetch(max_bytes=4000)) == {0: [(0, 3, 1)]}
    assert numbers(member.fetch(max_bytes=4000)) == {0: [(4, 5, 1)], 1: [(0, 1, 1)]}


def test_partitions_that_were_looked_at_and_left_are_the_next(call):
    member = joined(call, partitions=3)
    for number in range(3):
        for _ in range(10):
            produce(call, b"a", number=number)
    fetched = [numbers(member.fetch(records=4)) for _ in range(4)]
    assert fetched == [{0: [(0, 3, 1)]}, {1: [(0, 3, 1)]}, {0: [(4, 7, 1)]}, {2: [(0, 3, 1)]}]


def test_a_fetch_of_many_octets_is_answered_when_all_partitions_together_have_them(call):
    member = joined(call, partitions=2)
    member.fetch()
    found: list[Any] = []
    limits = ShareFetchLimits(60.0, 1500, 1 << 20, 500, 500, False)
    request = member.request((), None, False)
    waiting = threading.Thread(
        target=lambda: found.append(call("share_fetch", request, [], [], limits, None))
    )
    waiting.start()
    for number in range(2):
        produce(call, b"x" * 1000, number=number)
    waiting.join(30)
    assert numbers(found[0]) == {0: [(0, 0, 1)], 1: [(0, 0, 1)]}


def test_the_end_of_a_session_gives_back_what_is_in_it_and_nothing_else(call):
    """As in Kafka: what a member holds of other partitions waits for its lock to expire."""
    member = joined(call, partitions=2)
    for number in range(2):
        produce(call, b"a", number=number)
    every = member.places
    for place in every:
        member.places, member.session = [place], 0
        assert len(acquired(member.fetch())) == 1
    assert member.fetch(epoch=-1).error is None
    member.places, member.session = every, 0
    assert numbers(member.fetch()) == {0: [], 1: [(0, 0, 2)]}


def test_two_members_share_a_partition_and_the_end_of_a_session_gives_its_records_back(call):
    one = joined(call)
    two = Member(call, GROUP, "jobs")
    two.heartbeat()
    assert two.places == one.places
    produce(call, b"a", b"b", b"c", b"d")
    assert acquired(one.fetch(records=2, strict=True)) == [(0, 1, 1)]
    assert acquired(two.fetch()) == [(2, 3, 1)]
    assert errors(two.fetch((0, 0, ACCEPT))) == [errors_.InvalidRecordStateError]
    assert one.fetch((0, 0, ACCEPT), epoch=-1).error is None
    assert acquired(two.fetch()) == [(1, 1, 2)]


def test_a_fetch_sleeps_until_something_comes(call):
    member = joined(call)
    other = Member(call, GROUP, "jobs")
    other.heartbeat()
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(acquired(member.fetch(max_wait=60.0))))
    waiting.start()
    produce(call, b"a")
    waiting.join(60)
    assert found == [[(0, 0, 1)]]
    waiting = threading.Thread(target=lambda: found.append(acquired(other.fetch(max_wait=60.0))))
    waiting.start()
    assert errors(member.acknowledge((0, 0, RELEASE))) == [None]
    waiting.join(60)
    assert found[1:] == [[(0, 0, 2)]]


def test_a_member_that_leaves_gives_its_records_back(client):
    call = client.call
    one, two = joined(call), Member(call, GROUP, "jobs")
    two.heartbeat()
    produce(call, b"a")
    assert acquired(one.fetch()) == [(0, 0, 1)]
    assert one.heartbeat(-1).member_epoch == -1
    assert acquired(two.fetch(max_wait=60.0)) == [(0, 0, 2)]


def test_last_acknowledgements_count_after_the_heartbeat_by_which_a_member_leaves(call):
    """Clients send both at once, on two connections: librdkafka."""
    one, two = joined(call), Member(call, GROUP, "jobs")
    two.heartbeat()
    produce(call, b"a", b"b")
    assert acquired(one.fetch(connection=object())) == [(0, 1, 1)]
    assert one.heartbeat(-1).member_epoch == -1
    assert errors(one.acknowledge((0, 0, ACCEPT), epoch=-1)) == [None]
    assert acquired(two.fetch(max_wait=60.0)) == [(1, 1, 2)]


def test_a_session_ends_with_its_connection_though_its_member_has_left(client):
    call, connection = client.call, object()
    one, two = joined(call), Member(call, GROUP, "jobs")
    two.heartbeat()
    produce(call, b"a")
    assert acquired(one.fetch(connection=connection)) == [(0, 0, 1)]
    assert one.heartbeat(-1).member_epoch == -1
    assert acquired(two.fetch()) == []
    call("forget_connection", connection)
    assert acquired(two.fetch(max_wait=60.0)) == [(0, 0, 2)]


def test_several_batches_are_no_larger_than_asked_for(call):
    member = joined(call)
    for _ in range(3):
        produce(call, b"x" * 1000)
    assert acquired(member.fetch(max_bytes=1500)) == [(0, 0, 1)]
    assert acquired(member.fetch(max_bytes=500)) == [(1, 1, 1)]  # the first one, whatever its size
    assert acquired(member.fetch(max_bytes=0)) == []
    assert acquired(member.fetch(max_bytes=5000)) == [(2, 2, 1)]


def test_partitions_that_members_are_to_read_have_offsets_that_are_not_known_yet(call):
    member = joined(call, partitions=2)
    produce(call, b"a")
    assert acquired(member.fetch()) == [(0, 0, 1)]
    call("create_topics", {"later": TopicSpec(1)})
    Member(call, GROUP, "later").heartbeat()
    starts = {key: one.start for key, one in call("share_offsets", GROUP).partitions.items()}
    assert starts == {("jobs", 0): -1, ("jobs", 1): -1, ("later", 0): -1}
    assert member.fetch((0, 0, RELEASE)).error is None  # as in Kafka a start is known with it
    assert call("share_offsets", GROUP, [("jobs", 0)]).partitions["jobs", 0].start == 0


def test_locks_expire(call):
    member = joined(call)
    configure(call, share_record_lock_duration_ms="20")
    produce(call, b"a")
    assert acquired(member.fetch()) == [(0, 0, 1)]
    assert acquired(member.fetch(max_wait=60.0)) == [(0, 0, 2)]


def test_the_epochs_of_sessions(call):
    member = joined(call)
    assert member.fetch(epoch=5).error is errors_.ShareSessionNotFoundError
    assert member.acknowledge(epoch=1).error is errors_.ShareSessionNotFoundError
    assert member.fetch(epoch=0).error is None
    assert member.fetch(epoch=2).error is errors_.InvalidShareSessionEpochError
    assert member.acknowledge(epoch=0).error is errors_.InvalidShareSessionEpochError
    assert member.acknowledge(epoch=1).error is None
    assert member.fetch(epoch=2).error is None
    assert member.fetch((0, 0, ACCEPT), epoch=0).error is errors_.InvalidRequestError
    assert member.fetch(epoch=-1).error is None
    assert member.fetch(epoch=-1).error is errors_.ShareSessionNotFoundError


def test_invalid_acknowledgements_are_refused(call):
    member = joined(call)
    member.fetch()
    for bad in ((3, 2, ACCEPT), (0, 0, 9), (-1, 0, ACCEPT)):
        assert errors(member.fetch(bad)) == [errors_.InvalidRequestError]
    assert errors(member.fetch((5, 5, ACCEPT), (4, 6, ACCEPT))) == [errors_.InvalidRequestError]
    assert errors(member.fetch((0, 0, 4))) == [errors_.InvalidRequestError]  # not said to be a renewal
    assert member.fetch((3, 2, ACCEPT), epoch=77).error is errors_.InvalidShareSessionEpochError
    member.member_id = "x" * (MEMBER_ID_LENGTH + 1)
    assert member.fetch().error is errors_.InvalidRequestError
    assert member.heartbeat(0).error is errors_.InvalidRequestError


def test_more_acknowledgements_of_a_partition_than_can_be_in_flight_are_refused(call):
    member = joined(call)
    member.fetch()
    last = ACKNOWLEDGED_AT_ONCE - 1
    for epoch, count, error in (
        (1, last, errors_.InvalidRecordStateError),
        (2, last + 1, errors_.InvalidRequestError),
    ):
        batches = [Acknowledged(0, count - 1, [ACCEPT] * count)]
        request = ShareRequest(GROUP, member.member_id, epoch, {member.places[0]: batches})
        assert errors(call("share_acknowledge", request)) == [error]


def test_epochs_of_members(call):
    member = joined(call)
    stranger = Member(call, GROUP, "jobs")
    assert stranger.heartbeat(7).error is errors_.UnknownMemberIdError
    assert member.heartbeat(member.epoch + 5).error is errors_.FencedMemberEpochError
    assert member.heartbeat().error is None
    assert Member(call, "nobody", "jobs").heartbeat(3).error is errors_.GroupIdNotFoundError
    assert Member(call, GROUP).heartbeat(0).error is errors_.InvalidRequestError


def test_partitions_are_shared_out_evenly(call):
    members = [joined(call, partitions=4)]
    for _ in range(5):
        members.append(Member(call, GROUP, "jobs"))
        members[-1].heartbeat()
    for member in members:
        member.heartbeat()
    assert {number for member in members for _, number in member.places} == {0, 1, 2, 3}
    assert all(1 <= len(member.places) <= 2 for member in members)
    (described,) = call("describe_share_groups", [GROUP]).values()
    assert (described.state, described.assignor, len(described.members)) == ("Stable", "simple", 6)


def test_offsets_are_altered_and_deleted_while_nobody_is_there(call):
    member = joined(call)
    produce(call, b"a", b"b", b"c")
    member.fetch()
    altered = call("alter_share_offsets", GROUP, {("jobs", 0): 1})
    assert altered.error is errors_.NonEmptyGroupError
    member.heartbeat(-1)
    altered = call("alter_share_offsets", GROUP, {("jobs", 0): 1, ("none", 0): 1})
    assert altered.parts == {("jobs", 0): None, ("none", 0): errors_.UnknownTopicOrPartitionError}
    assert call("share_offsets", GROUP, [("jobs", 0)]).partitions["jobs", 0].start == 1
    member.session = 0
    member.heartbeat(0)
    assert acquired(member.fetch()) == [(1, 2, 1)]
    member.heartbeat(-1)
    deleted = call("delete_share_offsets", GROUP, ["jobs", "none"])
    assert deleted.parts == {("jobs", -1): None, ("none", -1): errors_.UnknownTopicOrPartitionError}
    found = call("share_offsets", "nobody", [("jobs", 0), ("none", 0)])
    assert found.error is None and all(one[:2] == (None, NO_START) for one in found.partitions.values())
    assert call("share_offsets", "nobody").partitions == {}


def test_a_group_begins_with_its_offsets(call):
    call("create_topics", {"jobs": TopicSpec(1)})
    produce(call, b"a", b"b", b"c")
    altered = call("alter_share_offsets", GROUP, {("none", 0): 1})
    assert altered.parts == {("none", 0): errors_.UnknownTopicOrPartitionError}
    assert call("describe_share_groups", [GROUP])[GROUP].error is errors_.GroupIdNotFoundError
    assert call("alter_share_offsets", GROUP, {("jobs", 0): 1}).parts == {("jobs", 0): None}
    assert call("describe_share_groups", [GROUP])[GROUP].state == "Empty"
    assert acquired(joined(call).fetch()) == [(1, 2, 1)]
    assert call("delete_groups", [GROUP])[GROUP] is errors_.NonEmptyGroupError


def test_a_group_without_a_name_has_no_offsets_to_change(call):
    call("create_topics", {"jobs": TopicSpec(1)})
    for outcome in (
        call("alter_share_offsets", "", {("jobs", 0): 1}),
        call("delete_share_offsets", "", ["jobs"]),
    ):
        assert outcome.error is errors_.InvalidGroupIdError and not outcome.parts
    assert call("list_groups") == []


def test_a_group_that_there_is_not_has_no_state(call):
    found = call("describe_share_groups", [GROUP])[GROUP]
    assert (found.error, found.state) == (errors_.GroupIdNotFoundError, "")


def test_a_group_is_listed_described_and_deleted(call):
    member = joined(call)
    produce(call, b"a")
    member.fetch()
    listed = {one.group: (one.type.value, one.state) for one in call("list_groups")}
    assert listed == {GROUP: ("share", "Stable")}
    assert call("delete_groups", [GROUP]) == {GROUP: errors_.NonEmptyGroupError}
    member.heartbeat(-1)
    assert call("delete_groups", [GROUP]) == {GROUP: None}
    assert call("describe_share_groups", [GROUP])[GROUP].error is errors_.GroupIdNotFoundError


def test_topics_that_are_deleted_and_records_that_are_removed(call):
    member = joined(call)
    produce(call, b"a", b"b", b"c")
    assert acquired(member.fetch(records=1, strict=True)) == [(0, 0, 1)]
    call("delete_records", {("jobs", 0): 2})
    assert acquired(member.fetch((0, 0, ACCEPT))) == [(2, 2, 1)]
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(member.fetch(max_wait=60.0)))
    waiting.start()
    call("delete_topics", ["jobs"])
    waiting.join(60)
    assert only(found[0]).error in (errors_.UnknownTopicOrPartitionError, errors_.UnknownTopicIdError)
    call("create_topics", {"jobs": TopicSpec(1)})
    assert only(member.fetch()).error is errors_.UnknownTopicIdError


def test_partitions_that_no_member_reads_are_refused(call):
    member = joined(call)
    call("create_topics", {"other": TopicSpec(1)})
    topic = call("metadata", ["other"]).topics["other"].topic_id
    member.places = [(topic, 0)]
    assert only(member.fetch()).error is errors_.UnknownError  # as in Kafka, which has no state to read
