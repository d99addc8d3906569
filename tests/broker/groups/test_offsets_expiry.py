"""The expiry of committed offsets, as with Kafka's offsets.retention.minutes."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, offset_of
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from timing import until

from dafka import Broker
from dafka.broker.groups import offsets_expiry
from dafka.broker.groups.offsets import OFFSETS
from dafka.broker.groups.offsets_expiry import OffsetExpiry
from dafka.broker.groups.times import GROUPS
from dafka.broker.interface.broker import CommittedOffset, JoinRequest, LeavingMember
from dafka.broker.limits import EMPTY_SECONDS
from dafka.broker.options import BrokerOptions

WEEK = 7 * 24 * 3600.0


class Clock:
    """A clock for the broker, which tests set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Retention:
    """A broker that keeps offsets for a week, and its expiry."""

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self.client = Client(broker)
        core = self.client.core
        self.clock = clock
        times = core._groups._groups._times
        times._clock = core._offsets._clock = clock
        self.expiry = OffsetExpiry(core._offsets, core._groups, times, WEEK, clock)

    def look(self, pause: Callable[[], object] = lambda: gevent.sleep(0)) -> int:
        return self.client.connection.hub.run(self.expiry.forget_old, pause)

    def later(self, seconds: float) -> int:
        """Let time pass, then expire offsets."""
        self.clock.ahead += seconds
        return self.look()

    def commit(self, group: str = "g", topic: str = "t", offset: int = 5, **member: Any) -> None:
        offsets = {(topic, 0): CommittedOffset(offset)}
        assert self.client.call("commit_offsets", group, offsets, **member) == {(topic, 0): None}

    def committed(self, group: str = "g") -> dict[str, int]:
        found = self.client.call("fetch_offsets", group)
        return {topic: committed.offset for (topic, _), committed in found.items()}

    def join(self, *topics: str, protocol_type: str = "consumer") -> tuple[int, str]:
        """The only member of group "g", which reads these topics."""
        metadata = ConsumerProtocolSubscription(list(topics), b"", []).encode(version=1)
        request = JoinRequest("", 1800.0, 60.0, protocol_type, [("range", metadata)])
        joined = self.client.call("join_group", "g", request)
        who = joined.generation, joined.member_id
        assert self.client.call("sync_group", "g", *who, assignments={joined.member_id: b"all"}).error is None
        return who

    def leave(self, who: tuple[int, str]) -> None:
        assert self.client.call("leave_group", "g", [LeavingMember(who[1])]) == [None]


@pytest.fixture
def retention(broker: Broker) -> Retention:
    found = Retention(broker, Clock())
    found.client.create("t")
    found.client.create("u")
    return found


def test_offsets_of_a_group_without_members_expire_after_their_last_commit(retention):
    retention.commit(topic="t")
    retention.commit("h")
    retention.clock.ahead = WEEK / 2
    retention.commit(topic="u")
    assert retention.later(WEEK / 2 - 60) == 0
    assert retention.later(120) == 2
    assert retention.committed() == {"u": 5}
    assert retention.committed("h") == {}
    assert retention.later(WEEK / 2) == 1
    assert retention.client.call("list_groups") == []


def test_a_new_commit_restarts_the_retention(retention):
    retention.commit()
    retention.clock.ahead = WEEK - 60
    retention.commit(offset=6)
    assert retention.later(120) == 0
    assert retention.committed() == {"t": 6}


def test_the_retention_of_a_group_with_members_begins_when_the_last_one_has_left(retention):
    who = retention.join("t")
    retention.commit(generation=who[0], member_id=who[1])
    assert retention.later(10 * WEEK) == 0
    retention.leave(who)
    assert retention.later(WEEK - 60) == 0
    assert retention.committed() == {"t": 5}
    assert retention.later(120) == 1
    assert retention.committed() == {}


def test_a_group_that_has_members_again_keeps_its_offsets(retention):
    who = retention.join("t")
    retention.commit(generation=who[0], member_id=who[1])
    retention.leave(who)
    retention.clock.ahead = WEEK + 60
    again = retention.join("t")
    assert retention.look() == 0
    retention.leave(again)
    assert retention.later(WEEK - 60) == 0


def test_offsets_of_topics_that_no_member_reads_any_more_expire_after_their_commit(retention):
    who = retention.join("t", "u")
    for topic in "tu":
        retention.commit(topic=topic, generation=who[0], member_id=who[1])
    retention.leave(who)
    retention.join("t")
    assert retention.later(WEEK - 60) == 0
    assert retention.later(120) == 1
    assert retention.committed() == {"t": 5}


def test_members_of_another_protocol_type_keep_all_offsets_of_their_group(retention):
    retention.commit()
    retention.join(protocol_type="connect")
    assert retention.later(WEEK + 60) == 0
    assert retention.committed() == {"t": 5}


def test_members_at_the_end_of_a_broker_count_until_its_next_start(tmp_path):
    clock = Clock()
    with Broker(tmp_path) as broker:
        retention = Retention(broker, clock)
        retention.client.create("t")
        who = retention.join("t")
        retention.commit(generation=who[0], member_id=who[1])
        retention.commit("alone")
    clock.ahead = WEEK + 60
    with Broker(tmp_path) as broker:
        retention = Retention(broker, clock)
        assert retention.look() == 1
        assert retention.committed("alone") == {}
        assert retention.committed() == {"t": 5}
    clock.ahead += WEEK - 60
    with Broker(tmp_path) as broker:
        retention = Retention(broker, clock)
        assert retention.look() == 0
        assert retention.later(120) == 1


def test_the_time_at_which_a_group_lost_its_members_survives_a_restart(tmp_path):
    clock = Clock()
    with Broker(tmp_path) as broker:
        retention = Retention(broker, clock)
        retention.client.create("t")
        who = retention.join("t")
        retention.commit(generation=who[0], member_id=who[1])
        clock.ahead = WEEK
        retention.leave(who)
    with Broker(tmp_path) as broker:
        retention = Retention(broker, clock)
        assert retention.later(WEEK - 60) == 0
        assert retention.later(120) == 1


def test_offsets_that_an_open_transaction_commits_do_not_expire(retention):
    retention.commit(offset=1)
    producer = Producer(retention.client)
    producer.send_offset(7)
    assert retention.later(WEEK + 60) == 0
    producer.commit()
    assert offset_of(retention.client) == 7


def test_expiry_does_not_delete_a_commit_that_is_being_written(retention):
    retention.commit(offset=1)
    retention.clock.ahead = WEEK + 60
    core = retention.client.core

    def together() -> int:
        commit = gevent.spawn(core.commit_offsets, "g", {("t", 0): CommittedOffset(2)})
        gevent.sleep(0)  # the commit hands its row to the writer
        forgotten = retention.expiry.forget_old(lambda: None)
        assert commit.get() == {("t", 0): None}
        return forgotten

    assert retention.client.connection.hub.run(together) == 0
    assert retention.committed() == {"t": 2}


def test_offsets_without_a_commit_time_get_one_at_the_next_expiry(retention):
    retention.commit()
    core = retention.client.core

    def age() -> None:
        ((key, row),) = core.log.table(OFFSETS).items()
        core._writer.put_and_wait({(OFFSETS, key): row[:3]})

    retention.client.connection.hub.run(age)
    assert retention.committed() == {"t": 5}
    assert retention.look() == 0
    assert retention.later(WEEK - 60) == 0
    assert retention.later(120) == 1


def test_a_commit_is_not_overwritten_while_older_offsets_get_their_commit_time(retention):
    core = retention.client.core
    retention.commit(topic="t", offset=1)
    retention.commit("h")
    (old,) = (stored for stored in core._offsets.all() if stored.group == "h")
    retention.clock.ahead = WEEK + 60

    def together() -> None:
        core._writer.put_and_wait({(OFFSETS, old.key): old.row[:3]})  # as an older version wrote it
        looking = gevent.spawn(retention.expiry.forget_old, lambda: None)
        commit = gevent.spawn(core.commit_offsets, "g", {("t", 0): CommittedOffset(2)})
        looking.get()
        assert commit.get() == {("t", 0): None}

    retention.client.connection.hub.run(together)
    assert retention.committed() == {"t": 2}


def test_the_expiry_of_many_offsets_lets_other_green_threads_run(retention, monkeypatch):
    monkeypatch.setattr(offsets_expiry, "_ROWS", 10)
    for number in range(45):
        retention.commit(f"g{number}")
    retention.clock.ahead = WEEK + 60
    pauses: list[int] = []

    def pause() -> None:
        pauses.append(len(retention.client.core.log.table(OFFSETS)))
        gevent.sleep(0)

    assert retention.look(pause) == 45
    assert pauses[:4] == [35, 25, 15, 5]


@pytest.mark.parametrize("comes_back", [False, True])
def test_very_many_groups_are_forgotten_in_pieces_but_for_one_that_comes_back(
    retention, monkeypatch, comes_back
):
    monkeypatch.setattr(offsets_expiry, "_ROWS", 10)
    rows = retention.client.core.log.table(GROUPS)
    writer = retention.client.core._writer
    names = [f"g{number}" for number in range(45)]
    retention.client.connection.hub.run(writer.put_and_wait, {(GROUPS, name): 5 for name in names})
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 2 and comes_back:  # all of its piece have been looked at
            retention.client.core.commit_offsets("g0", {("t", 0): CommittedOffset(7)})

    retention.look(pause)
    assert pauses >= 4 + 5
    assert list(rows) == ["g0"] * comes_back
    assert retention.committed("g0") == ({"t": 7} if comes_back else {})


def test_a_group_whose_offsets_were_deleted_is_listed_until_the_next_look(retention):
    """As in Kafka."""
    retention.commit()
    assert retention.client.call("delete_offsets", "g", [("t", 0)]) == {("t", 0): None}
    retention.clock.ahead += EMPTY_SECONDS
    assert [one.group for one in retention.client.call("list_groups")] == ["g"]
    assert retention.look() == 0
    assert retention.client.call("list_groups") == []


def test_groups_without_members_and_offsets_leave_no_row(retention):
    rows = retention.client.core.log.table(GROUPS)
    retention.leave(retention.join("t"))
    assert retention.look() == 0
    assert list(rows) == ["g"]
    coordinator = retention.client.core._groups
    coordinator._groups.clock = lambda: time.monotonic() + EMPTY_SECONDS + 60
    coordinator._groups.check()
    until(lambda: not coordinator.knows("g"))
    assert retention.look() == 0
    assert list(rows) == []


def test_groups_without_members_and_offsets_leave_no_row_with_an_infinite_retention(retention):
    retention.leave(retention.join("t"))
    retention.commit("h")
    core = retention.client.core
    core._groups._groups.clock = lambda: time.monotonic() + EMPTY_SECONDS + 60
    core._groups._groups.check()
    until(lambda: not core._groups.knows("g"))
    retention.expiry = OffsetExpiry(
        core._offsets, core._groups, core._groups._groups._times, inf, retention.clock
    )
    assert retention.later(100 * WEEK) == 0
    assert list(core.log.table(GROUPS)) == []
    assert retention.committed("h") == {"t": 5}
    searches = core._searches(core._groups._groups._times, BrokerOptions(offsets_retention=None))
    assert "committed offsets" in {search.what for search in searches}


def test_at_the_limit_of_offsets_new_ones_are_refused_and_known_ones_are_updated(retention, monkeypatch):
    retention.commit()
    monkeypatch.setattr("dafka.broker.groups.offsets.OFFSETS_KEPT", 1)
    answers = retention.client.call("commit_offsets", "h", {("t", 0): CommittedOffset(1)})
    assert answers == {("t", 0): errors.InvalidCommitOffsetSizeError}
    retention.commit(offset=6)
    assert retention.committed() == {"t": 6}


def test_a_broker_that_runs_only_briefly_expires_offsets_when_it_stops(tmp_path):
    with Broker(tmp_path) as broker:
        retention = Retention(broker, Clock())
        retention.client.create("t")
        retention.clock.ahead = -WEEK - 60
        for group in ("old", "used"):
            retention.commit(group)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.call("commit_offsets", "used", {("t", 0): CommittedOffset(6)})
    with Broker(tmp_path) as broker:
        assert [group.group for group in Client(broker).call("list_groups")] == ["used"]


def test_a_running_broker_expires_offsets():
    with Broker(offsets_retention=0.1) as broker:
        client = Client(broker)
        client.create("t")
        client.call("commit_offsets", "g", {("t", 0): CommittedOffset(1)})
        until(lambda: client.call("fetch_offsets", "g") == {})
        assert client.call("describe_groups", ["g"])["g"].state == "Dead"
