"""A consumer group of the newer protocol, one heartbeat after the other."""

from __future__ import annotations

from typing import Any

import pytest
from broker.groups.consumer.group_table import REBALANCE, SESSION, Table
from kafka.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    InvalidRequestError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)

from dafka.broker.groups.consumer import group as group_module
from dafka.broker.groups.consumer.group import Answer


@pytest.fixture
def table():
    return Table()


def test_a_lone_member_has_everything_with_the_first_answer(table):
    answer = table.join("x")
    assert (answer.member_id, answer.epoch, table.numbers(answer)) == ("x", 1, [0, 1, 2, 3, 4, 5])
    assert table.group.state_name == "Stable"
    assert table.send("x", 1) == Answer("x", 1, None)


def test_a_partition_is_given_when_its_owner_has_released_it(table):
    x = table.join("x")
    y = table.join("y")
    assert (y.epoch, table.numbers(y)) == (2, []) and table.group.state_name == "Reconciling"
    x = table.send("x", x.epoch)
    assert (x.epoch, table.numbers(x)) == (1, [0, 1, 2])
    assert table.send("y", y.epoch) == Answer("y", 2, None)
    x = table.send("x", x.epoch, owned=table.owned(0, 1, 2, 3))  # it has not given up all of them
    assert x == Answer("x", 1, None)
    x = table.send("x", x.epoch, owned=table.owned(0, 1, 2))
    assert (x.epoch, x.assignment) == (2, None)
    y = table.send("y", y.epoch)
    assert table.numbers(y) == [3, 4, 5] and table.group.state_name == "Stable"


def test_a_member_that_does_not_release_in_time_is_removed_and_others_get_its_partitions(table):
    x = table.join("x")
    y = table.join("y")
    table.send("x", x.epoch)
    table.pass_time(REBALANCE - 1)
    table.send("x", x.epoch)
    y = table.send("y", y.epoch)
    table.pass_time(1)
    assert set(table.group.members) == {"y"}
    with pytest.raises(UnknownMemberIdError):
        table.send("x", x.epoch)
    assert table.numbers(table.send("y", y.epoch)) == [0, 1, 2, 3, 4, 5]


def test_a_silent_members_partitions_go_to_the_others(table):
    _, y = table.two()
    table.pass_time(SESSION - 1)
    table.send("y", y.epoch)
    table.pass_time(1)
    y = table.send("y", y.epoch)
    assert (y.epoch, table.numbers(y)) == (3, [0, 1, 2, 3, 4, 5])


def test_a_member_that_leaves_gives_its_partitions_up_at_once(table):
    _, y = table.two()
    assert table.send("x", -1) == Answer("x", -1, None)
    assert table.numbers(table.send("y", y.epoch)) == [0, 1, 2, 3, 4, 5]


def test_other_epochs_are_fenced_and_the_one_before_a_lost_answer_is_not(table):
    x = table.join("x")
    table.join("y")
    table.send("x", x.epoch)
    table.send("x", x.epoch, owned=table.owned(0, 1, 2))  # the answer, with epoch 2, is lost
    for epoch, owned in ((3, None), (1, None), (1, table.owned(0, 5))):
        with pytest.raises(FencedMemberEpochError):
            table.send("x", epoch, owned=owned)
    assert table.send("x", 1, owned=table.owned(0, 1, 2)) == Answer("x", 2, None)
    everything = {"owned": table.owned(0, 1, 2), "rebalance_timeout": 60.0, "topics": ["t"]}
    again = table.send("x", 1, **everything)  # as clients do that have missed an answer
    assert (again.epoch, table.numbers(again)) == (2, [0, 1, 2])


def test_a_member_that_joins_again_has_no_partition_until_it_is_given_some(table):
    table.two()
    again = table.join("x")
    assert (again.epoch, table.numbers(again)) == (2, [0, 1, 2])
    assert table.group.epoch == 2  # nobody else is concerned


def test_a_member_that_joins_again_may_still_send_the_epoch_it_had_before(table):
    table.join("x")
    table.join("y")
    assert table.join("x").epoch == 2  # and before 1
    again = table.send("x", 1, owned={})
    assert again.epoch == 2
    assert table.join("x").epoch == 2
    assert table.send("x", 1, owned={}).epoch == 2  # ... also when nothing has changed since
    with pytest.raises(FencedMemberEpochError):
        table.send("y", 1, owned={})


def test_a_full_heartbeat_is_told_everything(table):
    table.join("x")
    full = {"topics": ["t"], "rebalance_timeout": 5.0, "owned": table.owned(*range(6))}
    assert table.numbers(table.send("x", 1, **full)) == [0, 1, 2, 3, 4, 5]
    assert table.send("x", 1, owned=full["owned"]).assignment is None


def test_another_subscription_raises_the_epoch(table):
    x = table.join("x")
    x = table.send("x", x.epoch, topics=["t", "u"])
    assert x.epoch == 2 and table.numbers(x, "u") == [0, 1]
    x = table.send("x", x.epoch, topics=["u"])
    assert (x.epoch, table.numbers(x)) == (2, [])
    x = table.send("x", x.epoch, owned=table.owned(0, 1, topic="u"))
    assert x.epoch == 3


def test_topics_that_are_created_extended_or_deleted_later_count_with_the_next_heartbeat(table):
    x = table.join("x", "t", "later")
    table.topics.create("later", 1)
    x = table.send("x", x.epoch)
    assert table.numbers(x, "later") == [0]
    table.topics.extend("later", 2)
    x = table.send("x", x.epoch)
    assert table.numbers(x, "later") == [0, 1]
    table.topics.delete("later")
    x = table.send("x", x.epoch)
    assert x.assignment.keys() == {table.topics.known["t"].topic_id}


def test_the_assignor_is_the_one_that_most_members_want(table):
    assert table.group.assignor_name == "uniform"
    table.join("x", assignor="range")
    table.join("y")
    assert table.group.assignor_name == "range"
    table.send("x", 1, assignor="uniform")
    assert table.group.assignor_name == "uniform"


def test_a_full_group_takes_no_new_member(table):
    table.join("x", most=1)
    with pytest.raises(GroupMaxSizeReachedError):
        table.join("y", most=1)
    assert table.send("x", 1, most=1).epoch == 1


def test_a_member_with_too_many_topics_does_not_come_in(table, monkeypatch):
    monkeypatch.setattr("dafka.broker.groups.modern.group.GROUP_SUBSCRIPTIONS", 1)
    with pytest.raises(InvalidRequestError):
        table.join("x", "t", "u")
    assert table.group.state_name == "Empty"


# -- static members -----------------------------------------------------------------------------------


def test_a_static_member_that_comes_back_finds_its_partitions_and_nobody_else_notices(table):
    table.join("x", instance_id="i")
    table.join("y")
    x = table.send("x", 1, instance_id="i")
    table.send("x", 1, instance_id="i", owned=table.owned(*table.numbers(x)))
    table.send("y", 2)
    assert table.send("x", -2, instance_id="i") == Answer("x", -2, None)
    assert table.send("y", 2) == Answer("y", 2, None)
    back = table.join("z", instance_id="i")
    assert (back.member_id, back.epoch, table.numbers(back)) == ("z", 2, [0, 1, 2])
    assert table.group.epoch == 2 and set(table.group.members) == {"z", "y"}
    with pytest.raises(FencedInstanceIdError):
        table.send("x", 2, instance_id="i")


def test_a_static_member_that_does_not_come_back_is_removed(table):
    table.join("x", instance_id="i")
    table.send("x", -2, instance_id="i")
    table.pass_time(SESSION)
    assert table.group.state_name == "Empty"
    assert table.join("z", instance_id="i").epoch == 3


def test_an_instance_id_that_is_in_use_is_not_given_away(table):
    table.join("x", instance_id="i")
    with pytest.raises(UnreleasedInstanceIdError):
        table.join("z", instance_id="i")
    with pytest.raises(UnreleasedInstanceIdError):  # as in Apache Kafka
        table.join("x", instance_id="i")
    table.send("x", -2, instance_id="i")
    assert table.join("x", instance_id="i").epoch == 1


def test_an_unknown_instance_id_is_an_unknown_member(table):
    table.join("x")
    for epoch in (1, -1, -2):
        with pytest.raises(UnknownMemberIdError):
            table.send("x", epoch, instance_id="i")


def test_a_static_member_may_leave_for_good(table):
    table.join("x", instance_id="i")
    table.send("x", -1, instance_id="i")
    assert table.group.state_name == "Empty"


# -- offsets, large groups and descriptions -------------------------------------------------------------


def test_offsets_are_taken_from_members_with_their_epoch(table):
    def refusal(member: str, epoch: int) -> Any:
        return table.group.check_commit(0.0, epoch, member, None, [("t", 0)])

    assert refusal("", -1) is None
    table.join("x")
    assert refusal("x", 1) is None
    assert refusal("x", 0) is refusal("x", 2) is refusal("x", -1) is StaleMemberEpochError
    assert refusal("y", 1) is refusal("", -1) is UnknownMemberIdError


def test_offsets_of_partitions_that_a_member_kept_are_taken_with_an_older_epoch_too(table):
    first = table.join("x").epoch
    table.join("y")
    x = table.send("x", first)
    assert table.numbers(x) == [0, 1, 2]

    def refusal(epoch: int, *numbers: int, topic: str = "t") -> Any:
        return table.group.check_commit(0.0, epoch, "x", None, [(topic, number) for number in numbers])

    assert refusal(first, 4) is None  # it has been told to give it up, and has not yet
    x = table.send("x", x.epoch, owned=table.owned(0, 1, 2))
    assert x.epoch > first
    assert refusal(first, 0, 1, 2) is refusal(x.epoch, 5) is None
    assert refusal(first, 4) is refusal(first, 0, 4) is StaleMemberEpochError
    assert refusal(first, 0, topic="none") is StaleMemberEpochError
    assert refusal(x.epoch + 1, 0) is refusal(-1, 0) is StaleMemberEpochError
    table.send("y", -1)
    for _ in range(2):
        x = table.send("x", table.group.members["x"].epoch)
    assert table.numbers(x) in (None, [0, 1, 2, 3, 4, 5])
    assert refusal(first, 0) is None
    assert refusal(first, 4) is StaleMemberEpochError  # it has it again, since later


def test_a_member_that_joins_again_has_its_partitions_from_then_on(table):
    first = table.join("x").epoch
    again = table.join("x").epoch
    table.topics.extend("t", 7)
    now = table.send("x", again).epoch
    assert first <= again < now
    assert table.group.check_commit(0.0, again, "x", None, [("t", 0)]) is None
    assert table.group.check_commit(0.0, again, "x", None, [("t", 6)]) is StaleMemberEpochError


def test_the_next_process_of_a_static_member_commits_with_older_epochs(table):
    table.join("x", instance_id="i")
    table.join("y")
    x = table.send("x", 1, instance_id="i")
    table.send("x", 1, instance_id="i", owned=table.owned(*table.numbers(x)))
    y = table.send("y", 2)
    table.send("x", -2, instance_id="i")
    z = table.join("z", instance_id="i")
    assert (z.epoch, table.numbers(z), table.numbers(y)) == (2, [0, 1, 2], [3, 4, 5])

    def refusal(epoch: int, number: int) -> Any:
        return table.group.check_commit(0.0, epoch, "z", "i", [("t", number)])

    assert refusal(0, 0) is refusal(1, 2) is refusal(2, 5) is None
    assert refusal(1, 3) is refusal(3, 0) is refusal(-1, 0) is StaleMemberEpochError


def test_the_target_of_a_large_group_comes_later_and_members_keep_what_they_have(table, monkeypatch):
    monkeypatch.setattr(group_module, "ASSIGNED_AT_ONCE", 8)
    x = table.join("x")  # 1 member, 1 topic, 6 partitions
    monkeypatch.setattr(group_module, "ASSIGNED_AT_ONCE", 7)
    y = table.join("y")
    assert table.group.state_name == "Assigning" and y == Answer("y", 1, {})
    assert table.send("x", x.epoch) == Answer("x", 1, None)
    spec = table.group.spec()
    table.group.install(spec.epoch, table.group.assignor(spec))
    assert table.numbers(table.send("x", 1)) == [0, 1, 2]


def test_a_member_that_takes_a_place_while_the_target_is_computed_gets_its_partitions(table, monkeypatch):
    monkeypatch.setattr(group_module, "ASSIGNED_AT_ONCE", 0)

    def compute() -> None:
        while table.group.needs_target:
            spec = table.group.spec()
            table.group.install(spec.epoch, table.group.assignor(spec))

    table.group.epoch = table.group.assignment_epoch = 1  # as a broker begins groups
    old = table.join("old", instance_id="i")
    compute()
    table.send("old", old.epoch, instance_id="i")
    table.send("old", -2, instance_id="i")
    table.join("other")
    spec = table.group.spec()
    new = table.join("new", instance_id="i")
    table.group.install(spec.epoch, table.group.assignor(spec))
    compute()
    new = table.send("new", new.epoch, instance_id="i", owned={})
    assert len(table.numbers(new)) == 3


def test_members_are_described_as_they_are(table):
    x = table.join("x", rack="r", regex="u")
    table.resolve()
    table.send("x", x.epoch, client_id="c", client_host="/h")
    (one,) = table.group.described()
    assert one[:8] == ("x", None, "r", 2, "c", "/h", ["t"], "u")
    assert one.assigned == one.target == {**table.owned(*range(6)), **table.owned(0, 1, topic="u")}


def test_partitions_a_member_has_still_to_revoke_are_described_as_its_own(table):
    x = table.join("x")
    table.join("y")
    told = table.send("x", x.epoch)
    assert table.numbers(told) == [0, 1, 2] and told.epoch == x.epoch
    described = {one.member_id: one.assigned for one in table.group.described()}
    assert described == {"x": table.owned(*range(6)), "y": {}}


def test_a_member_that_has_more_to_give_up_stays_in_its_epoch(table):
    """As in Kafka 4.3."""
    x = table.join("x")
    table.join("y")
    told = table.send("x", x.epoch)
    table.join("z")
    again = table.send("x", x.epoch, owned=told.assignment)
    assert len(table.numbers(again)) == 2 and again.epoch == x.epoch


def test_members_that_read_nothing_leave_the_epoch_as_it_is(table):
    before = table.join("x").epoch
    assert table.join("y", topics=[]).epoch == before
