"""The group state machine: every transition of Kafka's classic protocol, without a clock."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest
from broker.groups.clocked import REBALANCE, SESSION, error_of

from dafka.broker.groups.generation import State
from dafka.broker.interface.broker import LeavingMember
from dafka.broker.limits import EMPTY_SECONDS, INITIAL_DELAY, INITIAL_DELAY_MAX, INITIAL_DELAY_UNREADY

# -- the first generation -------------------------------------------------------------------------


def test_the_first_generation_is_delayed_for_members_that_start_together(table):
    first = table.join()
    table.pass_time(INITIAL_DELAY * 0.9)
    second = table.join()
    table.pass_time(INITIAL_DELAY * 0.9)
    assert (first, second) == ([], [])
    table.pass_time(INITIAL_DELAY * 0.2)
    assert [answer[0].generation for answer in (first, second)] == [1, 1]


def test_new_members_extend_the_initial_delay_up_to_a_limit(table):
    first = table.join()
    while not first and table.now < 1:
        table.pass_time(INITIAL_DELAY / 2)
        table.join()
    assert table.now <= INITIAL_DELAY_MAX + INITIAL_DELAY


def test_the_initial_delay_is_longer_for_a_leader_that_does_not_know_its_partitions(table):
    first = table.join(knows_partitions=False)
    table.pass_time(INITIAL_DELAY_UNREADY * 0.9)
    second = table.join()
    table.pass_time(INITIAL_DELAY_UNREADY * 0.09)
    assert (first, second) == ([], [])
    table.pass_time(INITIAL_DELAY_UNREADY * 0.02)
    assert [answer[0].generation for answer in (first, second)] == [1, 1]
    assert first[0].leader == first[0].member_id


def test_the_initial_delay_does_not_depend_on_followers(table):
    answers = [table.join(), table.join(knows_partitions=False)]
    table.pass_time(INITIAL_DELAY)
    assert [answer[0].generation for answer in answers] == [1, 1]


def test_the_leader_gets_all_members_and_the_others_get_the_leader(table):
    answers = [table.join(protocols=[("range", b"%d" % number)]) for number in range(3)]
    table.pass_time(INITIAL_DELAY)
    joined = [answer for (answer,) in answers]
    leaders = [one for one in joined if one.member_id == one.leader]
    assert len(leaders) == 1
    assert [member.metadata for member in leaders[0].members] == [b"0", b"1", b"2"]
    assert {member.member_id for member in leaders[0].members} == {one.member_id for one in joined}
    assert all(not one.members for one in joined if one is not leaders[0])
    assert {(one.protocol_type, one.protocol, one.leader) for one in joined} == {
        ("consumer", "range", leaders[0].leader)
    }


def test_a_new_member_gets_its_id_before_it_joins_if_its_version_allows_that(table):
    (refused,) = table.join(require_known_member=True)
    assert refused.error is errors.MemberIdRequiredError
    assert refused.member_id.startswith("c-")
    assert not table.group.members
    answer = table.join(refused.member_id, require_known_member=True)
    table.pass_time(INITIAL_DELAY)
    assert (answer[0].error, answer[0].member_id) == (None, refused.member_id)


def test_a_pending_id_expires_and_no_longer_delays_the_rebalance(table):
    (leader,) = table.stable()
    (refused,) = table.join(require_known_member=True)
    other = table.join()
    again = table.join(leader.member_id)
    assert (other, again) == ([], [])  # the pending id is waited for
    table.pass_time(SESSION)
    assert other[0].generation == again[0].generation == 2
    assert error_of(table.join(refused.member_id)) is errors.UnknownMemberIdError


def test_the_protocol_with_the_most_votes_of_those_that_all_support_is_chosen(table):
    for protocols in ("abc", "bac", "bd a"):
        last = table.join(protocols=[(name, name.encode()) for name in protocols])
    table.pass_time(INITIAL_DELAY)
    assert last[0].protocol == "b"


@pytest.mark.parametrize("protocols", [[], [("sticky", b"")]])
def test_a_member_that_shares_no_protocol_with_the_others_is_refused(table, protocols):
    table.stable()
    assert error_of(table.join(protocols=protocols)) is errors.InconsistentGroupProtocolError
    assert table.group.state is State.STABLE


# -- syncing --------------------------------------------------------------------------------------


def test_syncs_wait_for_the_leader_and_each_member_gets_its_own_assignment(table):
    table.stable(3)  # asserts it


def test_a_member_without_an_assignment_gets_an_empty_one(table):
    answer = table.join()
    table.pass_time(INITIAL_DELAY)
    assert table.sync(answer[0], {})[0].assignment == b""


def test_a_sync_of_a_stable_group_is_answered_at_once(table):
    leader, follower = table.stable(2)
    assert table.sync(follower)[0].assignment == follower.member_id.encode()
    # The leader may not assign again.
    assert table.sync(leader, {leader.member_id: b"x"})[0].assignment == leader.member_id.encode()


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"generation": 0}, errors.IllegalGenerationError),
        ({"member_id": "who"}, errors.UnknownMemberIdError),
        ({"protocol": "sticky"}, errors.InconsistentGroupProtocolError),
        ({"protocol_type": "connect"}, errors.InconsistentGroupProtocolError),
        ({"instance": "i"}, errors.UnknownMemberIdError),
    ],
)
def test_invalid_syncs_are_refused(table, more, error):
    (leader,) = table.stable()
    assert error_of(table.sync(leader, **more)) is error


def test_a_member_that_does_not_sync_is_removed(table):
    answers = [table.join() for _ in range(2)]
    table.pass_time(INITIAL_DELAY)
    leader, follower = sorted((one for (one,) in answers), key=lambda one: one.member_id != one.leader)
    table.sync(leader, {})
    for _ in range(int(REBALANCE / SESSION) * 2 + 1):
        table.pass_time(SESSION / 2)
        table.beat(leader)
        table.beat(follower)
    assert list(table.group.members) == [leader.member_id]
    assert table.group.state is State.PREPARING


# -- rebalances -----------------------------------------------------------------------------------


def test_a_new_member_starts_a_rebalance_that_waits_for_all(table):
    leader, follower = table.stable(2)
    newcomer = table.join()
    assert table.group.state is State.PREPARING
    assert table.beat(leader) is errors.RebalanceInProgressError
    assert error_of(table.sync(follower)) is errors.RebalanceInProgressError
    one, two = table.join(leader.member_id), table.join(follower.member_id)
    assert [answer[0].generation for answer in (newcomer, one, two)] == [2, 2, 2]
    table.settle([newcomer[0], one[0], two[0]])


def test_a_rebalance_continues_without_members_that_do_not_rejoin(table):
    leader, follower = table.stable(2)
    newcomer = table.join()
    table.join(leader.member_id)
    for _ in range(int(REBALANCE / SESSION) * 2 + 1):
        table.pass_time(SESSION / 2)
        table.beat(follower)  # alive, and busy
    assert newcomer[0].generation == 2
    assert follower.member_id not in table.group.members


def test_a_join_while_the_leader_assigns_starts_a_new_rebalance(table):
    answers = [table.join() for _ in range(2)]
    table.pass_time(INITIAL_DELAY)
    leader, follower = sorted((one for (one,) in answers), key=lambda one: one.member_id != one.leader)
    waiting = table.sync(follower)
    table.join()
    assert error_of(waiting) is errors.RebalanceInProgressError
    assert error_of(table.sync(leader, {})) is errors.RebalanceInProgressError


def test_a_follower_that_rejoins_unchanged_starts_no_rebalance(table):
    leader, follower = table.stable(2)
    (again,) = table.join(follower.member_id)
    assert (again.error, again.generation, again.member_id) == (None, 1, follower.member_id)
    assert table.group.state is State.STABLE
    assert table.beat(leader) is None


@pytest.mark.parametrize("who", ["leader with the same metadata", "follower with new metadata"])
def test_a_leader_or_a_changed_follower_that_rejoins_starts_a_rebalance(table, who):
    leader, follower = table.stable(2)
    if who.startswith("leader"):
        table.join(leader.member_id)
    else:
        table.join(follower.member_id, [("range", b"new")])
    assert table.group.state is State.PREPARING


def test_a_newer_join_of_a_member_replaces_the_pending_one(table):
    leader, _follower = table.stable(2)
    first = table.join(leader.member_id)
    second = table.join(leader.member_id)
    assert error_of(first) is errors.RebalanceInProgressError
    assert second == []


# -- heartbeats -----------------------------------------------------------------------------------


def test_a_member_without_heartbeats_is_removed(table):
    leader, follower = table.stable(2)
    table.pass_time(SESSION * 0.6)
    assert table.beat(leader) is None
    table.pass_time(SESSION * 0.6)
    assert table.beat(follower) is errors.UnknownMemberIdError
    assert table.beat(leader) is errors.RebalanceInProgressError
    assert table.join(leader.member_id)[0].generation == 2


def test_a_member_with_a_parked_join_or_sync_does_not_expire(table):
    leader, _follower = table.stable(2)
    newcomer = table.join()
    for _ in range(3):
        table.pass_time(SESSION * 0.9)
        table.beat(leader)
    assert newcomer == []
    assert len(table.group.members) == 2  # the follower, which sent nothing, was removed


def test_a_parked_heartbeat_is_answered_when_a_rebalance_begins(table):
    leader, follower = table.stable(2)
    heard: list[Any] = []
    for one in (leader, follower):
        assert table.group.heartbeat(table.now, 1, one.member_id, None, heard.append) is None
    table.group.leave(table.now, [LeavingMember(follower.member_id)])
    assert heard == [errors.UnknownMemberIdError, errors.RebalanceInProgressError]


def test_the_end_of_a_parked_heartbeat_extends_the_session(table):
    (leader,) = table.stable()
    heard: list[Any] = []
    reply = heard.append
    table.group.heartbeat(table.now, 1, leader.member_id, None, reply)
    table.now += SESSION * 0.9
    table.group.heartbeat_over(table.now, leader.member_id, reply)
    table.pass_time(SESSION * 0.9)
    assert table.beat(leader) is None
    assert heard == []


@pytest.mark.parametrize(
    ("generation", "instance", "error"),
    [
        (1, None, None),
        (0, None, errors.IllegalGenerationError),
        (2, None, errors.IllegalGenerationError),
        (1, "i", errors.UnknownMemberIdError),
    ],
)
def test_heartbeats_are_fenced_by_generation_and_instance(table, generation, instance, error):
    (leader,) = table.stable()
    assert table.beat(leader, generation=generation, instance=instance) is error


# -- commits --------------------------------------------------------------------------------------


def test_any_client_may_commit_for_a_group_without_members(table):
    assert table.group.check_commit(0.0, -1, "", None, []) is None


@pytest.mark.parametrize(
    ("generation", "member_id", "error"),
    [
        (1, None, None),
        (0, None, errors.IllegalGenerationError),
        (1, "who", errors.UnknownMemberIdError),
        (-1, "", errors.UnknownMemberIdError),
    ],
)
def test_only_members_may_commit_for_a_group_with_members(table, generation, member_id, error):
    (leader,) = table.stable()
    member_id = leader.member_id if member_id is None else member_id
    assert table.group.check_commit(table.now, generation, member_id, None, []) is error


def test_commits_are_accepted_while_members_rejoin_and_refused_while_the_leader_assigns(table):
    (leader,) = table.stable()
    newcomer = table.join()
    assert table.group.check_commit(table.now, 1, leader.member_id, None, []) is None
    table.join(leader.member_id)
    error = table.group.check_commit(table.now, 2, newcomer[0].member_id, None, [])
    assert error is errors.RebalanceInProgressError
    assert table.group.check_commit(table.now, 1, leader.member_id, None, []) is errors.IllegalGenerationError


# -- leaving --------------------------------------------------------------------------------------


def test_leaving_starts_a_rebalance_and_the_last_one_leaves_an_empty_group(table):
    leader, follower = table.stable(2)
    assert table.group.leave(table.now, [LeavingMember(leader.member_id), LeavingMember("who")]) == [
        None,
        errors.UnknownMemberIdError,
    ]
    (again,) = table.join(follower.member_id)
    assert again.leader == follower.member_id
    assert table.group.leave(table.now, [LeavingMember(follower.member_id)]) == [None]
    assert (table.group.state, table.group.generation) == (State.EMPTY, 3)


def test_a_pending_id_that_leaves_no_longer_delays_the_rebalance(table):
    leader, follower = table.stable(2)
    (first,), (second,) = (table.join(require_known_member=True) for _ in range(2))
    assert table.group.leave(table.now, [LeavingMember(first.member_id)]) == [None]
    assert table.group.state is State.STABLE
    waiting = [table.join(leader.member_id), table.join(follower.member_id)]
    assert waiting == [[], []]
    assert table.group.leave(table.now, [LeavingMember(second.member_id)]) == [None]
    assert [error_of(one) for one in waiting] == [None, None]


def test_the_parked_calls_of_a_removed_member_are_answered(table):
    leader, _follower = table.stable(2)
    waiting = table.join(leader.member_id)
    table.group.leave(table.now, [LeavingMember(leader.member_id)])
    assert error_of(waiting) is errors.UnknownMemberIdError


def test_an_empty_group_dies_after_a_while(table):
    (leader,) = table.stable()
    table.group.leave(table.now, [LeavingMember(leader.member_id)])
    table.pass_time(EMPTY_SECONDS - 1)
    assert table.group.state is State.EMPTY
    table.pass_time(1)
    assert table.group.state is State.DEAD
    assert error_of(table.join()) is errors.CoordinatorNotAvailableError


def test_an_id_that_was_given_out_keeps_an_empty_group_and_does_not_have_it_ticked_all_the_time(table):
    table.now = EMPTY_SECONDS - 1
    (answer,) = table.join(require_known_member=True)
    assert answer.error is errors.MemberIdRequiredError
    table.pass_time(2)
    table.group.tick(table.now)
    assert (table.group.state, table.group.wake_at) == (State.EMPTY, EMPTY_SECONDS - 1 + SESSION)
    table.pass_time(SESSION)
    assert table.group.state is State.DEAD


# -- describing -----------------------------------------------------------------------------------


def test_a_stable_group_is_described_with_its_members(table):
    (leader,) = table.stable()
    described = table.group.describe()
    assert (described.state, described.protocol_type, described.protocol) == ("Stable", "consumer", "range")
    (member,) = described.members
    assert (member.member_id, member.client_id) == (leader.member_id, "c")
    assert (member.metadata, member.assignment) == (b"meta", leader.member_id.encode())
    table.join()
    assert table.group.describe().state == "PreparingRebalance"
