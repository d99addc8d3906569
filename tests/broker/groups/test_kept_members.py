"""Members of groups of all kinds go on after their broker was ended and started again."""

from __future__ import annotations

import json
import logging
from collections import deque
from typing import Any

import gevent
import pytest
from broker.clients import Client
from broker.groups.restarts import Disk
from kafka.errors import IllegalGenerationError, UnknownMemberIdError
from timing import until

from dafka.broker.groups import kept_members
from dafka.broker.groups.generation import State
from dafka.broker.groups.group import Group
from dafka.broker.groups.kept_members import MEMBERS, WHOLE, key_of
from dafka.broker.groups.kept_rows import CLASSIC, SavedClassic, SavedGeneration, octets_row
from dafka.broker.groups.restoring import restoring
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import JoinRequest
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.groups import GroupType, LeavingMember
from dafka.broker.interface.share import ShareHeartbeat
from dafka.broker.interface.streams_groups import StreamsHeartbeat, Subtopology, Topology
from dafka.log import LogError, LogWriteError
from dafka.testing import TestBroker

HOST = "/192.0.2.1"


class Life:
    """A broker that is ended and started again, and its members."""

    def __init__(self, broker: TestBroker) -> None:
        self.broker = broker
        self.client = Client(broker)

    def again(self) -> None:
        self.broker.restart()
        self.client = Client(self.broker)

    def call(self, method: str, *args: Any, **more: Any) -> Any:
        return self.client.call(method, *args, **more)

    @property
    def rows(self) -> Any:
        """The table of members."""
        return self.client.core.log.table(MEMBERS)

    # -- members of each kind

    def consumer(self, name: str, epoch: int, host: str = HOST, **more: Any) -> Any:
        joining = {"rebalance_timeout": 60.0, "owned": {}, "topics": ("t",)} if not epoch else {}
        beat = ConsumerHeartbeat(name, epoch, client_host=host, client_id="c", **{**joining, **more})
        return self.call("consumer_group_heartbeat", "g", beat)

    def share(self, name: str, epoch: int, host: str = HOST) -> Any:
        topics = ["t"] if not epoch else None
        beat = ShareHeartbeat("g", name, epoch, topics=topics, client_id="c", client_host=host)
        return self.call("share_heartbeat", beat)

    def streams(self, name: str, epoch: int) -> Any:
        joining: dict[str, Any] = {}
        if not epoch:
            topology = Topology(0, [Subtopology("0", ["t"], [], [], [], [], [])])
            nothing: dict[str, list[int]] = {}
            joining = {"rebalance_timeout": 60.0, "topology": topology, "process_id": name}
            joining |= {"active": nothing, "standby": nothing, "warmup": nothing}
        return self.call(
            "streams_group_heartbeat", "g", StreamsHeartbeat(name, epoch, client_host=HOST, **joining)
        )

    def classic(self, host: str = HOST, instance: str | None = None) -> tuple[int, str]:
        request = JoinRequest("", 30.0, 60.0, "consumer", [("range", b"\x00meta\xff")], instance, "c", host)
        joined = self.call("join_group", "g", request)
        assert joined.error is None
        generation, member = joined.generation, joined.member_id
        synced = self.call("sync_group", "g", generation, member, assignments={member: b"\x01mine\xfe"})
        assert synced.assignment == b"\x01mine\xfe"
        return generation, member


@pytest.fixture
def life(broker):
    found = Life(broker)
    found.client.create("t", 4)
    return found


def test_a_member_of_a_consumer_group_goes_on_with_its_epoch_and_partitions(life):
    joined = life.consumer("x", 0, instance_id="i")
    before = life.call("describe_consumer_groups", ["g"])["g"]
    life.again()
    assert life.call("list_groups")[0].state == "Stable"
    assert life.call("describe_consumer_groups", ["g"])["g"] == before
    beat = life.consumer("x", joined.member_epoch, instance_id="i")
    assert (beat.error, beat.member_epoch, beat.assignment) == (None, joined.member_epoch, None)


def test_a_member_whose_answer_was_lost_with_the_broker_is_told_again(life):
    first = life.consumer("x", 0)
    second = life.consumer("y", 0)
    told = life.consumer("x", first.member_epoch)
    assert told.assignment is not None and told.member_epoch == first.member_epoch
    kept = told.assignment
    moved = life.consumer("x", first.member_epoch, owned=kept)
    life.again()
    repeated = life.consumer("x", first.member_epoch, owned=kept, rebalance_timeout=60.0, topics=("t",))
    assert repeated.member_epoch >= moved.member_epoch and repeated.assignment == kept
    assert sum(map(len, life.consumer("y", second.member_epoch).assignment.values())) == 2


def test_an_unfinished_rebalance_goes_on_to_its_target_and_everything_is_owned_in_the_end(life):
    epoch = life.consumer("x", 0).member_epoch
    life.consumer("y", 0)  # waits for partitions of x
    before = life.call("describe_consumer_groups", ["g"])["g"]
    life.again()
    group = life.call("describe_consumer_groups", ["g"])["g"]
    assert group == before and (group.state, group.epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    had: dict[str, Any] = {"x": None, "y": None}
    epochs = {"x": epoch, "y": next(one.epoch for one in group.members if one.member_id == "y")}
    for _ in range(4):
        for name in had:
            answer = life.consumer(name, epochs[name], owned=had[name])
            assert answer.error is None
            epochs[name] = answer.member_epoch
            had[name] = answer.assignment if answer.assignment is not None else had[name]
    owned = sorted(number for one in had.values() for numbers in one.values() for number in numbers)
    assert owned == [0, 1, 2, 3] and epochs == {"x": 3, "y": 3}


def test_partitions_that_came_while_the_broker_was_down_are_assigned(life):
    epoch = life.consumer("x", 0).member_epoch
    life.call("create_partitions", {"t": 6})
    life.again()
    assert sum(map(len, life.consumer("x", epoch).assignment.values())) == 6


def test_an_expression_matches_after_a_restart_what_its_member_may_see(life):
    seen: dict[str, Any] = {"topics": (), "regex": "t.*", "may_see": lambda names: set(names) - {"t3"}}
    epoch = until(lambda: (told := life.consumer("x", 0, **seen)).assignment and told).member_epoch
    life.client.create("t2", 2)
    life.again()
    life.client.create("t3", 2)
    life.client.create("t4", 1)
    answer = until(
        lambda: (told := life.consumer("x", epoch, may_see=seen["may_see"])).assignment and told, seconds=10
    )
    assert sum(map(len, answer.assignment.values())) == 7


def test_sessions_begin_anew_and_end(life):
    life.consumer("x", 0)
    life.broker.clock.advance(40)
    life.again()
    life.broker.clock.advance(40)
    assert life.call("list_groups")[0].state == "Stable"
    life.broker.clock.advance(6)
    assert life.call("list_groups")[0].state == "Empty"
    life.again()
    assert life.call("describe_consumer_groups", ["g"])["g"].members == []


def test_members_in_the_process_of_the_broker_end_with_it(life):
    life.consumer("x", 0, host="")
    stays = life.consumer("y", 0)
    life.again()
    group = life.call("describe_consumer_groups", ["g"])["g"]
    assert [one.member_id for one in group.members] == ["y"]
    assert sum(map(len, life.consumer("y", stays.member_epoch).assignment.values())) == 4


def test_a_classic_group_goes_on_in_its_generation(life):
    generation, member = life.classic(instance="i")
    life.again()
    described = life.call("describe_groups", ["g"])["g"]
    assert described.state == "Stable"
    assert [(one.member_id, one.metadata, one.assignment) for one in described.members] == [
        (member, b"\x00meta\xff", b"\x01mine\xfe")
    ]
    assert life.call("heartbeat", "g", generation, member, "i") is None
    assert life.call("heartbeat", "g", generation + 1, member, "i") is IllegalGenerationError
    assert life.call("sync_group", "g", generation, member, "i").assignment == b"\x01mine\xfe"


def test_a_static_member_that_comes_back_after_the_restart_has_its_old_assignment(life):
    generation, member = life.classic(instance="i")
    life.again()
    request = JoinRequest("", 30.0, 60.0, "consumer", [("range", b"\x00meta\xff")], "i", "c", HOST)
    joined = life.call("join_group", "g", request)
    assert (joined.generation, joined.leader) == (generation, member)
    life.again()  # under its new id
    assert life.call("heartbeat", "g", generation, joined.member_id, "i") is None


def test_a_classic_group_that_loses_members_with_the_broker_has_the_others_join_again(life):
    request = JoinRequest("", 30.0, 60.0, "consumer", [("range", b"")], "i", "c", "")
    assert life.call("join_group", "g", request).error is None
    life.call("leave_group", "g", [])
    life.again()
    assert life.call("list_groups") == []  # it was alone


def test_a_member_that_has_left_is_not_there_after_a_restart(life):
    generation, member = life.classic()
    assert life.call("leave_group", "g", [LeavingMember(member)]) == [None]
    life.again()
    assert life.call("heartbeat", "g", generation, member) is UnknownMemberIdError


def test_members_of_a_share_group_go_on(life):
    first, second = life.share("x" * 36, 0), life.share("y" * 36, 0)
    first = life.share("x" * 36, first.member_epoch)  # it is told of the second one's
    assert first.error is second.error is None
    before = life.call("describe_share_groups", ["g"])["g"]
    life.again()
    assert life.call("describe_share_groups", ["g"])["g"] == before
    for name, epoch in (("x" * 36, first.member_epoch), ("y" * 36, second.member_epoch)):
        assert life.share(name, epoch).error is None


def test_members_of_a_streams_group_go_on(life):
    resource = Resource(ResourceType.GROUP, "g")
    no_delay = ConfigChange("streams.initial.rebalance.delay.ms", ConfigOperation.SET, "0")
    assert life.call("alter_configs", {resource: [no_delay]})[resource].error is None
    joined = life.streams("x", 0)
    assert joined.error is None and joined.tasks.active == {"0": frozenset(range(4))}
    before = life.call("describe_streams_groups", ["g"])["g"]
    life.again()
    assert life.call("describe_streams_groups", ["g"])["g"] == before
    beat = life.streams("x", joined.member_epoch)
    assert (beat.error, beat.member_epoch, beat.tasks) == (None, joined.member_epoch, None)


def test_heartbeats_write_nothing(life):
    epoch = life.consumer("x", 0).member_epoch
    written = []
    writer = life.client.core._writer
    put = writer.put
    writer.put = lambda *args, **more: (written.append(args), put(*args, **more))
    for _ in range(3):
        assert life.consumer("x", epoch).error is None
    assert written == []


def test_nothing_is_left_of_a_group_that_is_gone(life):
    life.consumer("x" * 500, 0)
    assert len(list(life.rows)) == 2
    life.consumer("x" * 500, -1)
    assert list(life.rows) == []


def test_rows_of_an_older_time_or_another_shape_are_passed_over(life, caplog):
    life.consumer("x", 0)
    hub, writer = life.client.connection.hub, life.client.core._writer
    strange = {
        (MEMBERS, key_of("alone", "x")): ["consumer", "x"],
        (MEMBERS, key_of("other", WHOLE)): ["consumer", 1, "no"],
        (MEMBERS, key_of("g", "y")): ["share", "y", 1, 1, None, "", HOST, [], {}],
    }
    hub.run(writer.put_and_wait, strange)
    with caplog.at_level(logging.ERROR):
        life.again()
    assert "join again" in caplog.text
    assert [one.member_id for one in life.call("describe_consumer_groups", ["g"])["g"].members] == ["x"]
    assert set(life.rows) == {key_of("g", WHOLE), key_of("g", "x")}


def test_a_large_group_is_written_in_pieces(life):
    for number in range(130):
        assert life.consumer(f"m{number}", 0).error is None
    life.again()
    group = life.call("describe_consumer_groups", ["g"])["g"]
    assert len(group.members) == 130


def test_rows_of_many_partitions_are_made_beside_the_hub_and_read_again(life):
    life.client.create("wide", 3000)
    epoch = life.consumer("x", 0, topics=("wide", "t")).member_epoch
    life.consumer("y", 0)
    until(lambda: life.call("describe_consumer_groups", ["g"])["g"].assignment_epoch > epoch)
    with_all = life.consumer("x", epoch, topics=("wide", "t"))
    assert with_all.assignment is not None
    assert type(life.rows.get(key_of("g", "x"))) is bytes and type(life.rows.get(key_of("g", "y"))) is list
    before = life.call("describe_consumer_groups", ["g"])["g"].members[0]
    life.again()
    after = life.call("describe_consumer_groups", ["g"])["g"].members[0]
    assert after.member_id == "x" and after == before
    assert life.consumer("x", with_all.member_epoch).error is None


@pytest.mark.parametrize("at_once", [kept_members.KEPT_MEMBERS_AT_ONCE, 0])
def test_a_member_whose_deletion_failed_is_deleted_with_the_next_change(life, monkeypatch, at_once):
    monkeypatch.setattr(kept_members, "KEPT_MEMBERS_AT_ONCE", at_once)
    epoch = life.consumer("x", 0).member_epoch
    life.consumer("y", 0)
    log = life.client.core.log

    def fail(*rows: Any) -> None:
        raise LogWriteError(log.path, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(log._storage, "commit", fail)
        assert life.consumer("y", -1).error is None
    assert key_of("g", "y") in life.rows
    assert life.consumer("x", epoch).error is None
    until(lambda: set(life.rows) == {key_of("g", WHOLE), key_of("g", "x")})
    life.again()
    assert [one.member_id for one in life.call("describe_consumer_groups", ["g"])["g"].members] == ["x"]


class FailingDisk(Disk):
    """Writes are committed one after the other, when :meth:`commit` says so."""

    def __init__(self) -> None:
        super().__init__({GroupType.CLASSIC: CLASSIC})
        self.waiting: deque[Any] = deque()

    def put(self, rows: Any, done: Any = lambda error: None, check: Any = lambda: None) -> None:
        self.waiting.append((rows, done, check))

    def commit(self, error: Exception | None = None) -> None:
        rows, done, check = self.waiting.popleft()
        try:
            check()
        except LogError as refused:
            error = refused
        if error is None:
            super().put(rows)
        done(error)


class OfSomeAge:
    """A group: the number of its state is in its own row, and in those of members that have changed then."""

    type = GroupType.CLASSIC
    occupied = True

    def __init__(self, *names: str) -> None:
        self.state = 0
        self.members: dict[str, int] = {}
        self.unsaved: set[str] = set()
        self.change(*names)

    def change(self, *names: str) -> None:
        self.state += 1
        self.members.update(dict.fromkeys(names, self.state))
        self.unsaved.update(names)

    def take_unsaved(self) -> set[str]:
        unsaved, self.unsaved = self.unsaved, set()
        return unsaved

    def member_ids(self) -> Any:
        return self.members

    def saved_member(self, member_id: str) -> Any:
        request = JoinRequest(member_id, 30.0, 60.0, "consumer", [("range", b"")], None, "c", HOST)
        return SavedClassic(member_id, request, b"%d" % self.members[member_id])

    def saved_whole(self) -> Any:
        return SavedGeneration(2, self.state, "consumer", "range", "x", True)


def test_later_rows_wait_for_rows_whose_writing_failed():
    disk = FailingDisk()
    group = OfSomeAge("x", "y")

    def note(*names: str) -> None:
        group.change(*names)
        disk.members.note("g", group)

    note()
    disk.commit()
    before = dict(disk.rows)
    note("x")
    note("y")  # before it is known that the one before fails
    disk.commit(LogWriteError("disk", "no space"))
    disk.commit()
    assert disk.rows == before  # and not x of the first state beside y of the third
    note("y")
    disk.commit()
    for name, state in group.members.items():
        assert json.loads(disk.rows[key_of("g", name)])[-1] == octets_row(b"%d" % state)


class SlowDisk(Disk):
    """Others run during each commit; the state behind it is kept."""

    def __init__(self) -> None:
        super().__init__({GroupType.CLASSIC: CLASSIC})
        self.states: list[dict[str, str]] = []

    def put_and_wait(self, rows: Any, check: Any = None) -> None:
        self.put(rows)
        self.states.append(dict(self.rows))
        gevent.sleep(0)


def begin_generation(group: Group) -> None:
    """All members join again, and are assigned the number of their generation."""

    def nobody(answer: Any) -> None:
        pass

    for name in list(group.members):
        metadata = b"%d" % group.generation
        request = JoinRequest(name, 30.0, 60.0, "consumer", [("range", metadata)], None, "c", HOST)
        group.join(0.0, request, nobody)
    generation = group.generation
    assigned = dict.fromkeys(group.members, b"%d" % generation)
    for name in list(group.members):
        given = assigned if name == group.leader else {}
        group.sync(0.0, generation, name, None, None, None, given, nobody)
    assert group.state is State.STABLE


@pytest.mark.parametrize("pauses", range(4))
def test_a_crash_between_the_pieces_of_a_group_leaves_no_parts_of_two_assignments(monkeypatch, pauses):
    monkeypatch.setattr(kept_members, "KEPT_MEMBERS_AT_ONCE", 2)
    monkeypatch.setattr(kept_members, "KEPT_MEMBERS_IN_A_ROUND", 3)
    disk = SlowDisk()
    disk.members._hub = gevent  # type: ignore[assignment]  # it spawns
    group = Group(0.0)
    for number in range(7):
        request = JoinRequest("", 30.0, 60.0, "consumer", [("range", b"")], f"i{number}", "c", HOST)
        group.join(0.0, request, lambda answer: None)
    group.tick(100.0)
    for _ in range(4):
        begin_generation(group)
        disk.members.note("g", group)
        for _ in range(pauses):
            gevent.sleep(0)
    disk.members.wait("g")
    settled = set()
    for rows in list(disk.states):
        disk.rows = rows
        disk.begin()
        for _, _, whole, members in disk.members.stored():
            found = Group(0.0)
            deque(restoring(0.0, found, whole, members), 0)
            if found.state is State.STABLE:
                assigned = {one.assignment for one in found.members.values()}
                assert assigned == {b"%d" % found.generation}
                settled.add(found.generation)
    assert group.generation in settled
