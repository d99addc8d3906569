"""Members, transactions and topics that come and go, all at once, while calls are cut off, rounds fail and
the broker restarts: acknowledged records stay, aborted ones are never seen, and no offset goes back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
import gevent.event
import kafka.errors as errors
import pytest
from broker.clients import MEGABYTE, Client, batch
from broker.transactions.transactional import visible
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from dafka import Broker
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import (
    LATEST,
    CommittedOffset,
    FetchFrom,
    JoinRequest,
    LeavingMember,
    TopicSpec,
)
from dafka.hub.hub import get_hub
from dafka.log import LogWriteError
from dafka.protocol.batch import read_header, with_producer
from dafka.protocol.batch_reader import decode_batch

SECONDS = 1.2
PARTITIONS = 2
TRIED_AGAIN = (errors.KafkaStorageError, errors.ConcurrentTransactionsError)
READS = ConsumerProtocolSubscription(["t"], b"", []).encode(version=1)


class CutOffError(Exception):
    """A call whose outcome its caller does not learn."""


class World:
    """A broker that restarts, and whose calls and commits fail now and then."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.broker = Broker(folder)
        self.up = gevent.event.Event()
        self.ended = self.failing = False
        self._numbers = iter(range(10**9))

    def start(self) -> None:
        self.broker.start()
        self.core = Client(self.broker).core
        storage = self.core.log._storage
        commit = storage.commit

        def unreliable(*rows: Any) -> None:
            if self.failing and self.random.random() < 0.03:
                raise LogWriteError(self.core.log.path, "no space")
            commit(*rows)

        storage.commit = unreliable
        self.up.set()

    def call(self, method: str, *args: Any, **more: Any) -> Any:
        """Call the broker's interface; CutOffError if the broker stops or the caller loses patience."""
        self.up.wait()
        call = gevent.spawn(_outcome, getattr(self.core, method), args, more)
        if self.random.random() < 0.05:
            gevent.sleep(self.random.choice([0, 0.0005]))
            call.kill()
        result = call.get()
        if not isinstance(result, list):
            raise CutOffError
        return result[0]

    def value(self) -> bytes:
        """A value that nobody has written."""
        return b"%d" % next(self._numbers)

    def restart_now_and_then(self) -> None:
        while not self.ended:
            gevent.sleep(self.random.uniform(0.2, 0.8))
            self.up.clear()
            self.broker.stop()
            self.start()

    def run(self, lives: list[Callable[[], None]], enough: Callable[[], bool]) -> None:
        """Have everybody live until the time is over, and enough has happened."""

        def again_and_again(live: Callable[[], None]) -> None:
            while not self.ended:
                try:
                    live()
                except CutOffError:
                    gevent.sleep(0.001)

        greens = [gevent.spawn(again_and_again, live) for live in lives]
        greens.append(gevent.spawn(self.restart_now_and_then))
        self.failing = True
        gevent.sleep(SECONDS)
        with gevent.Timeout(100):
            while not enough():
                gevent.sleep(0.05)
        self.ended = True
        gevent.joinall(greens, timeout=200, raise_error=True)
        assert all(green.ready() for green in greens), "somebody waits for ever"
        self.failing = False

    def batches(self, topic: str, partition: int, read_committed: bool) -> Iterator[Any]:
        """All fetches of a partition, until nothing more comes."""
        offset, limits = 0, {"max_wait": 0.0, "min_bytes": 1, "max_bytes": MEGABYTE}
        while True:
            wanted = {(topic, partition): FetchFrom(offset, MEGABYTE)}
            (fetched,) = self.call("fetch", wanted, read_committed=read_committed, **limits).values()
            assert fetched.error is None
            if not fetched.batches:
                return
            yield fetched
            offset = read_header(fetched.batches[-1]).next_offset


def _outcome(call: Callable[..., Any], args: tuple[Any, ...], more: dict[str, Any]) -> list[Any] | None:
    try:
        return [call(*args, **more)]
    except BrokerStoppedError:
        return None


class Members:
    """Members of one group that commit ever larger offsets of what is assigned to them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.acknowledged = dict.fromkeys(range(PARTITIONS), 0)

    def live(self) -> None:
        world = self.world
        member_id = ""
        for _ in range(world.random.randrange(1, 8)):
            request = JoinRequest(member_id, 1.0, 1.0, "consumer", [("range", READS)])
            joined = world.call("join_group", "g", request)
            if joined.error is not None:
                member_id = ""
                continue
            member_id = joined.member_id
            ids = sorted(member.member_id for member in joined.members)
            shares = {one: bytes(range(PARTITIONS))[place :: len(ids)] for place, one in enumerate(ids)}
            who = joined.generation, member_id
            synced = world.call("sync_group", "g", *who, assignments=shares)
            if synced.error is None:
                self._work(who, synced.assignment)
        world.call("leave_group", "g", [LeavingMember(member_id)])

    def _work(self, who: tuple[int, str], assignment: bytes) -> None:
        world = self.world
        positions = {}
        for partition in assignment:
            found = world.call("fetch_offsets", "g", [("t", partition)])
            positions[partition] = found["t", partition].offset if found else 0
            assert positions[partition] >= self.acknowledged[partition]
        while not world.ended and world.call("heartbeat", "g", *who, max_wait=0.002) is None:
            for partition in positions:
                offsets = {("t", partition): CommittedOffset(positions[partition] + 1)}
                (error,) = world.call(
                    "commit_offsets", "g", offsets, generation=who[0], member_id=who[1]
                ).values()
                if error is None:
                    positions[partition] += 1
                    self.acknowledged[partition] = max(self.acknowledged[partition], positions[partition])


class Transactions:
    """A transactional producer, and which of its values must be seen and which never."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.committed: set[bytes] = set()
        self.aborted: set[bytes] = set()

    def live(self) -> None:
        world = self.world
        identity = world.call("init_producer_id", self.name, 60.0)
        if identity.error is not None:
            assert identity.error in TRIED_AGAIN
            return
        who = self.name, identity.producer_id, identity.epoch
        sequences = dict.fromkeys(range(PARTITIONS), 0)
        for _ in range(5):
            values = set()
            for partition in world.random.choices(range(PARTITIONS), k=3):
                key, value = ("t", partition), world.value()
                if world.call("add_partitions_to_transaction", *who, [key])[key] is not None:
                    return
                content = with_producer(
                    batch(value), who[1], who[2], sequences[partition], transactional=True
                )
                if world.call("produce", {key: [content]}, transactional_id=self.name)[key].error is not None:
                    return
                sequences[partition] += 1
                values.add(value)
            commit = world.random.random() < 0.6
            error = errors.KafkaStorageError
            while error in TRIED_AGAIN:
                error = world.call("end_transaction", *who, commit)
            assert error is None
            (self.committed if commit else self.aborted).update(values)

    def check(self) -> None:
        """Look what readers of committed records see."""
        never = set(self.aborted)
        values: list[bytes | None] = []
        for partition in range(PARTITIONS):
            for fetched in self.world.batches("t", partition, True):
                values += visible(fetched)
        assert len(values) == len(set(values))
        assert never.isdisjoint(values)


class Topics:
    """A topic that is deleted and created again, with records of its own each time."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    def live(self) -> None:
        world, name = self.world, self.name
        world.call("delete_topics", [name])
        if world.call("create_topics", {name: TopicSpec(1)})[name].error is not None:
            return
        acknowledged: dict[int, bytes | None] = {}
        for _ in range(world.random.randrange(1, 30)):
            value = world.value()
            produced = world.call("produce", {(name, 0): [batch(value)]})[name, 0]
            if produced.error is None:
                acknowledged[produced.base_offset] = value
            else:
                assert produced.error is errors.KafkaStorageError
        found = {}
        for fetched in world.batches(name, 0, False):
            for content in fetched.batches:
                columns = decode_batch(content)
                found.update(zip(columns.offsets, columns.values, strict=True))
        assert found == acknowledged


@pytest.mark.parametrize("seed", range(2))
def test_acknowledged_records_stay_and_aborted_ones_are_never_seen(tmp_path, seed):
    world = World(tmp_path, seed)
    members = Members(world)
    transactions = [Transactions(world, name) for name in "xyz"]
    topics = [Topics(world, name) for name in "uv"]

    def scenario() -> None:
        world.start()
        assert world.core.create_topics({"t": TopicSpec(PARTITIONS)})["t"].error is None
        lives = [members.live] * 4 + [one.live for one in (*transactions, *topics)]

        def enough() -> bool:
            return any(members.acknowledged.values()) and any(one.committed for one in transactions)

        world.run([*lives, transactions[0].check], enough)
        world.up.clear()
        world.broker.stop()
        world.start()
        core = world.core
        for one in transactions:  # aborts what is open
            assert core.init_producer_id(one.name, 60.0).error is None
        seen: set[bytes | None] = set()
        for partition in range(PARTITIONS):
            key = ("t", partition)
            ends = [core.list_offsets({key: LATEST}, read_committed=how)[key].offset for how in (True, False)]
            assert ends[0] == ends[1]
            (fetched,) = core.fetch(
                {key: FetchFrom(0, 50 * MEGABYTE)},
                max_wait=0.0,
                min_bytes=1,
                max_bytes=50 * MEGABYTE,
                read_committed=True,
            ).values()
            seen.update(visible(fetched))
        for one in transactions:
            assert one.committed <= seen
            assert one.aborted.isdisjoint(seen)
        assert any(one.committed for one in transactions)
        assert any(members.acknowledged.values())
        assert list(core.log.table("transactions.open")) == []
        assert core._pending.bytes == 0

    try:
        get_hub().run(scenario)
    finally:
        world.ended = True
        world.broker.stop()
