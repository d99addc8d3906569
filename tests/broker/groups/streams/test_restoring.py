"""A Streams group goes on with the members that were kept."""

from __future__ import annotations

from collections import deque

from broker.groups.modern.known_topics import FakeTopics
from broker.groups.streams.test_kept_members import MEMBER

from dafka.broker.groups.streams.group import StreamsGroup
from dafka.broker.groups.streams.kept_members import SavedGroup
from dafka.broker.groups.streams.restoring import restoring
from dafka.broker.groups.streams.tasks import NOTHING, Roles
from dafka.broker.interface.streams_groups import Subtopology, Topology

ONE = MEMBER._replace(assigned=Roles({"0": frozenset(range(4))}), revoking=NOTHING)


def restored(*members, topology=True, count=None, **topics):
    group = StreamsGroup(0.0, FakeTopics(**(topics or {"t": 4})), 5)
    if topology:
        group.begin_with(Topology(1, [Subtopology("0", ["t"])]))
    whole = SavedGroup(len(members) if count is None else count, 0)
    deque(restoring(0.0, group, 10.0, whole, members), 0)
    return group


def test_a_settled_group_is_as_it_was():
    group = restored(ONE)
    assert (group.state_name, group.epoch, group.wake_at) == ("Stable", 5, 10.0)


def test_one_whose_topics_changed_meanwhile_gets_a_new_target():
    assert restored(ONE, t=5).needs_target and restored(ONE, count=2).needs_target
    gone = restored(ONE, other=1)
    assert gone.needs_target and gone.state_name == "NotReady"


def test_an_active_task_is_one_members():
    group = restored(ONE, ONE._replace(member_id="y", process_id="q"))
    assert group.members["y"].assigned == NOTHING


def test_without_its_topology_members_join_again():
    assert not restored(ONE, topology=False).members
