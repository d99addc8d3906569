"""A Streams group, one heartbeat after the other."""

from __future__ import annotations

from typing import Any

import pytest
from broker.groups.modern.known_topics import FakeTopics
from kafka.errors import (
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    InvalidRequestError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)

from dafka.broker.groups.streams.group import Answer, Settings, StreamsGroup
from dafka.broker.interface.streams_groups import (
    Endpoint,
    InternalTopic,
    StatusCode,
    StreamsHeartbeat,
    Subtopology,
    Topology,
)

COUNT = Topology(1, [Subtopology("0", ["a"], [], [InternalTopic("c")])])


class Table:
    """A group with a clock; topic "a" has four partitions."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.topics = FakeTopics(a=4)
        self.group = StreamsGroup(0.0, self.topics, 1)
        self.settings = Settings(10.0, 5.0, **settings)

    def send(self, name: str, epoch: int, make: bool = True, **fields: Any) -> Answer:
        request = StreamsHeartbeat(name, epoch, **fields)
        self.group.receive(self.now, request, self.settings, 10)
        for topic in self.group.missing.values() if make else ():
            self.topics.create(topic.name, topic.partitions)
        return self.group.proceed(self.now, request, self.settings)

    def join(self, name: str, process: str = "", topology: Topology = COUNT, **fields: Any) -> Answer:
        return self.send(
            name,
            0,
            process_id=process or name,
            topology=topology,
            rebalance_timeout=8.0,
            **{"active": {}, "standby": {}, "warmup": {}, **fields},
        )

    def owns(self, *active: int, standby: tuple[int, ...] = ()) -> Any:
        return {"active": {"0": active}, "standby": {"0": standby}, "warmup": {}}

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.group.wake_at:
            self.group.tick(self.now)


def active(answer: Answer) -> list[int]:
    assert answer.tasks is not None
    return sorted(answer.tasks.active.get("0", ()))


def test_the_first_member_gets_all_tasks_when_the_internal_topics_were_made():
    table = Table()
    answer = table.join("m")
    assert active(answer) == [0, 1, 2, 3] and not answer.statuses
    assert table.topics.known["c"].partitions == 4 and table.group.state_name == "Stable"


def test_as_long_as_topics_are_missing_nobody_has_a_task_and_members_are_told_why():
    table = Table()
    answer = table.join("m", make=False)
    assert [one.code for one in answer.statuses] == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert active(answer) == [] and table.group.state_name == "NotReady"
    assert active(table.send("m", answer.epoch)) == [0, 1, 2, 3]
    table.topics.delete("a")
    gone = table.send("m", table.group.members["m"].epoch, **table.owns(0, 1, 2, 3))
    assert [one.code for one in gone.statuses] == [StatusCode.MISSING_SOURCE_TOPICS] and active(gone) == []


def test_tasks_are_told_again_to_a_member_that_has_never_said_that_it_has_them():
    table = Table()
    x = table.join("x")
    y = table.join("y")
    x = table.send("x", x.epoch)
    kept = active(x)
    y = table.send("y", y.epoch)  # has the epoch of its target, and waits for its tasks
    table.send("x", x.epoch, **table.owns(*kept))
    gets = table.send("y", y.epoch, **table.owns())
    assert len(active(gets)) == 2 and gets.epoch == y.epoch  # and is lost
    assert table.send("y", y.epoch).tasks is None  # it says nothing
    assert active(table.send("y", y.epoch, **table.owns())) == active(gets)
    assert table.send("y", y.epoch, **table.owns(*active(gets))).tasks is None
    assert table.send("y", y.epoch, **table.owns()).tasks is None  # it has had them, as in Apache Kafka


def test_a_task_changes_hands_when_it_was_given_up():
    table = Table()
    x = table.join("x")
    y = table.join("y")
    assert active(y) == []
    x = table.send("x", x.epoch)
    kept = active(x)
    assert len(kept) == 2 and table.send("y", y.epoch).tasks is None
    table.send("x", x.epoch, **table.owns(*kept))
    assert active(table.send("y", table.group.members["y"].epoch)) == sorted({0, 1, 2, 3} - set(kept))


def test_a_member_that_does_not_give_up_in_time_is_removed():
    table = Table()
    x = table.join("x")
    table.join("y")
    x = table.send("x", x.epoch)
    table.pass_time(7.0)
    table.send("x", x.epoch, **table.owns(0, 1, 2, 3))
    table.send("y", table.group.members["y"].epoch)
    table.pass_time(2.0)
    assert set(table.group.members) == {"y"}


def test_the_first_target_waits_for_further_members():
    table = Table(initial_delay=3.0)
    answer = table.join("m")
    assert [one.code for one in answer.statuses] == [StatusCode.ASSIGNMENT_DELAYED]
    assert answer.epoch == 1 and answer.interval == 3.0 and table.group.state_name == "Assigning"
    table.pass_time(3.0)
    assert active(table.send("m", answer.epoch)) == [0, 1, 2, 3]


def test_a_later_target_waits_for_the_interval():
    table = Table(interval=1.0)
    table.join("x")
    assert [one.code for one in table.join("y").statuses] == [StatusCode.ASSIGNMENT_DELAYED]
    table.pass_time(1.0)
    assert table.group.state_name == "Reconciling"


def test_standby_tasks_follow_the_setting():
    table = Table(standbys=1)
    table.join("x")
    table.join("y")
    for _ in range(4):
        for name in ("x", "y"):
            member = table.group.members[name]
            owned = {"active": member.assigned.active, "standby": member.assigned.standby, "warmup": {}}
            table.send(name, member.epoch, **owned)
    x, y = (table.group.members[name].assigned for name in "xy")
    assert x.active == y.standby and y.active == x.standby


def test_a_member_of_another_epoch_is_fenced_and_an_unknown_one_refused():
    table = Table()
    answer = table.join("m")
    with pytest.raises(FencedMemberEpochError):
        table.send("m", answer.epoch + 1)
    with pytest.raises(UnknownMemberIdError):
        table.send("n", 1)


def test_a_member_that_joins_again_may_still_send_the_epoch_it_had_before():
    table = Table()
    first = table.join("m").epoch
    table.join("n")
    again = table.join("m").epoch
    assert again > first
    assert table.send("m", first, **table.owns()).epoch == again


def test_the_topology_is_the_first_members():
    table = Table()
    table.join("m", topology=COUNT._replace(epoch=2))
    answer = table.join("n")
    assert [one.code for one in answer.statuses] == [StatusCode.STALE_TOPOLOGY]
    with pytest.raises(InvalidRequestError, match="updates are not supported"):
        table.join("o", topology=Topology(2, [Subtopology("0", ["a"])]))
    assert set(table.group.members) == {"m", "n"}


def test_tasks_that_the_topology_does_not_have_are_refused():
    table = Table()
    epoch = table.join("m").epoch
    with pytest.raises(InvalidRequestError, match="Task 4 for subtopology 0"):
        table.send("m", epoch, **table.owns(4))
    with pytest.raises(InvalidRequestError, match="Subtopology x does not exist"):
        table.send("m", epoch, active={"x": [0]}, standby={}, warmup={})


def test_a_member_that_names_another_process_has_its_tasks_there():
    table = Table(standbys=1)
    x = table.join("x")
    table.join("y")
    x = table.send("x", x.epoch, process_id="y")
    assert [one.process_id for one in table.group.described()] == ["y", "y"]
    table.send("x", x.epoch, **table.owns(*active(x)))
    table.send("x", -1)  # what it had is free in the process where it was last
    for _ in range(2):
        epoch = table.group.members["y"].epoch
        table.send("y", epoch, active={}, standby={}, warmup={})
    assert table.group.members["y"].assigned.active == {"0": {0, 1, 2, 3}}


def test_a_member_has_the_application_shut_down_until_the_group_is_empty():
    table = Table()
    x = table.join("x")
    table.join("y")
    table.send("y", -1, shutdown=True)
    answer = table.send("x", x.epoch)
    assert [one.code for one in answer.statuses] == [StatusCode.SHUTDOWN_APPLICATION]
    table.send("x", -1)
    assert table.group.state_name == "Empty" and not table.join("z").statuses


def test_a_full_group_takes_its_members_again_and_nobody_else():
    table = Table()
    for number in range(10):
        table.join(f"m{number}")
    assert table.join("m3").epoch > 0
    with pytest.raises(GroupMaxSizeReachedError, match="The streams group has reached its maximum"):
        table.join("x")


def test_the_first_who_has_it_shut_down_is_named():
    table = Table()
    x, y = table.join("x"), table.join("y")
    for name, answer in (("x", x), ("y", y)):
        (status,) = table.send(name, answer.epoch, shutdown=True).statuses
        assert status.detail.startswith("Streams group member x encountered")


def test_one_that_was_removed_may_have_the_application_shut_down():
    table = Table()
    with pytest.raises(UnknownMemberIdError):
        (table.join("x"), table.send("x", -1), table.send("gone", -1, shutdown=True))
    assert not table.join("x").statuses  # of an empty group there is nobody to be told
    with pytest.raises(UnknownMemberIdError):
        table.send("gone", -1, shutdown=True)
    (status,) = table.send("x", table.group.members["x"].epoch).statuses
    assert status.code == StatusCode.SHUTDOWN_APPLICATION


def test_members_learn_where_queries_are_answered():
    table = Table()
    table.join("m", endpoint=Endpoint("h", 1))
    (found,) = table.group.endpoints()
    assert found == (("h", 1), [("a", [0, 1, 2, 3])], [])
    before = table.group.endpoint_epoch
    epoch = table.join("n", endpoint=Endpoint("h", 2)).epoch
    assert table.group.endpoint_epoch == before + 1
    table.join("without")
    table.send("n", epoch)
    assert table.group.endpoint_epoch == before + 1
    table.send("m", -1)
    assert table.group.endpoint_epoch == before + 2


def test_offsets_are_committed_with_the_members_epoch():
    table = Table()

    def refusal(member: str, epoch: int) -> Any:
        return table.group.check_commit(0.0, epoch, member, None, [("a", 0)])

    assert refusal("", -1) is None
    epoch = table.join("m").epoch
    assert refusal("m", epoch) is None
    assert refusal("m", epoch - 1) is refusal("m", epoch + 1) is refusal("m", -1) is StaleMemberEpochError
    assert refusal("", -1) is UnknownMemberIdError


def test_offsets_of_tasks_that_a_member_kept_are_committed_with_an_older_epoch_too():
    table = Table()
    first = table.join("m").epoch
    table.join("n")
    kept = active(table.send("m", first))
    now = table.send("m", first, **table.owns(*kept)).epoch
    assert first < now and len(kept) == 2

    def refusal(*numbers: int, topic: str = "a") -> Any:
        return table.group.check_commit(0.0, first, "m", None, [(topic, number) for number in numbers])

    assert refusal(*kept) is None
    given_up = min({0, 1, 2, 3}.difference(kept))
    assert refusal(given_up) is refusal(*kept, given_up) is StaleMemberEpochError
    assert refusal(0, topic="no source") is StaleMemberEpochError


def test_offsets_in_the_topics_that_it_reads_stay():
    table = Table()
    assert table.group.subscribed() == frozenset()
    table.join("m")
    assert table.group.subscribed() == {"a"} and table.group.kept == ("streams", table.group.epoch, 0)


def test_the_members_are_described():
    table = Table()
    table.join("m", "p", tags={"zone": "z"})
    (member,) = table.group.described()
    assert (member.member_id, member.process_id, member.tags) == ("m", "p", {"zone": "z"})
    assert member.assigned == member.target and member.assigned.active == {"0": {0, 1, 2, 3}}
