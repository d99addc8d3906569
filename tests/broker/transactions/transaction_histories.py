"""Interleaved transactions beside a model of one page of the records that were written, by seeds.

scripts/transactions --seeds 5000          # seeds 0 to 4999, on every core
scripts/transactions --seed 123            # one of them again

Time passes, disks fail, topics go, records are deleted while somebody reads them, the log refuses a marker,
and brokers stop or crash. In all cases readers see what the model says, and in the end every open transaction
is over when its time is.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

import gevent  # noqa: E402 - needs the path
import kafka.errors as errors  # noqa: E402
import pytest  # noqa: E402
from broker.clients import MEGABYTE, Client  # noqa: E402
from broker.transactions.transactional import (  # noqa: E402
    Producer,
    everything,
    fetch,
    offset_of,
    state_of,
    visible,
)
from histories import main  # noqa: E402
from timing import until  # noqa: E402

from dafka import Broker  # noqa: E402
from dafka.broker import limits  # noqa: E402
from dafka.broker.interface.broker import FetchFrom  # noqa: E402
from dafka.broker.transactions.transaction import LAST_EPOCH  # noqa: E402
from dafka.hub.clock import Clock  # noqa: E402
from dafka.log import AppendError, LogPartition, LogWriteError  # noqa: E402

PARTITIONS = 3
Chunks = tuple[LogPartition, list[bytes], int]
TIMEOUT = 60.0  # of transactions, in seconds


class Model:
    """Per partition the written records as [producer or None, value, state]; markers are records, too."""

    def __init__(self) -> None:
        self.records: list[list[list[object]]] = [[] for _ in range(PARTITIONS)]
        self.touched: dict[str, set[int]] = {}
        self.offsets: dict[str, int] = {}
        self.offset: int | None = None
        self.starts = [0] * PARTITIONS

    def write(self, partition: int, value: bytes, producer: str | None) -> int:
        self.records[partition].append([producer, value, "open" if producer else "committed"])
        return len(self.records[partition]) - 1

    def end(self, producer: str, commit: bool) -> None:
        for partition in self.touched.pop(producer):
            for record in self.records[partition]:
                if record[0] == producer and record[2] == "open":
                    record[2] = "committed" if commit else "aborted"
            self.records[partition].append([producer, None, "marker"])
        offset = self.offsets.pop(producer, None)
        if commit and offset is not None:
            self.offset = offset

    def stable(self, partition: int) -> int:
        states = [record[2] for record in self.records[partition]]
        return states.index("open") if "open" in states else len(states)

    def begin(self, producer: str, *partitions: int) -> None:
        self.touched.setdefault(producer, set()).update(partitions)

    def committed(self, partition: int, start: int) -> list[object]:
        known = self.records[partition][start : self.stable(partition)]
        return [value for _, value, state in known if state == "committed"]

    def everything(self, partition: int) -> list[object]:
        records = self.records[partition][self.starts[partition] :]
        return [value for _, value, state in records if state != "marker"]


class World:
    """A broker whose clock, disk and crashes the test controls, and four producers."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folders = (folder / f"broker{number}" for number in range(1000))
        self.ahead = 0.0
        monkeypatch.setattr("dafka.broker.records.transaction_index.ABORTED_BLOCK", 2)
        self.path = next(self.folders)
        self._open()
        self.client.create("t", PARTITIONS)
        self.client.create("u")
        self.producers = {name: Producer(self.client, name, TIMEOUT) for name in "abcd"}
        self.earlier: dict[str, list[tuple[int, int]]] = {name: [] for name in self.producers}

    def _open(self) -> None:
        broker = Broker(self.path)
        broker._options = replace(broker._options, clock=Clock(lambda: time.time() + self.ahead))
        self.broker = broker.start()
        self.client = Client(self.broker)

    def restart(self, folder: Path | None = None) -> None:
        self.broker.stop()
        self.path = folder or self.path
        self._open()
        for producer in self.producers.values():
            producer.client = self.client

    def crash(self, monkeypatch: pytest.MonkeyPatch, during: Callable[[], object], before: int) -> None:
        """The log refuses one marker; the broker then restarts from what is on disk ``before`` that round."""
        log, crashed, rounds = self.client.core.log, next(self.folders), []
        begin = log.begin

        def refuse_once(chunks: Sequence[Chunks], *rest: object, **more: object) -> object:
            rounds.append(len(chunks))
            if len(rounds) == 1 and chunks:
                partition = chunks[-1][0]
                raise AppendError(log.path, "refused", partition.topic, partition.address, 0)
            if len(rounds) == before:
                shutil.copytree(self.path, crashed)
            return begin(chunks, *rest, **more)

        with monkeypatch.context() as patch:
            patch.setattr(log, "begin", refuse_once)
            during()
        if crashed.exists():
            self.restart(crashed)

    def pass_time(self) -> None:
        self.ahead += 2 * TIMEOUT
        self.client.core._transactions._timeouts._deadlines.check()

    def failing_late(self, monkeypatch: pytest.MonkeyPatch, during: Callable[[], object]) -> None:
        """Every deadline passes during a write, and all writes fail."""

        def fail(*rows: object) -> None:
            self.pass_time()
            gevent.sleep(0.01)
            raise LogWriteError(str(self.path), "no space")

        with monkeypatch.context() as patch:
            patch.setattr(self.client.core.log._storage, "commit", fail)
            during()

    def all_end(self, names: set[str]) -> bool:
        return all(state_of(self.client, name).startswith("Complete") for name in names)

    def reading(self, partition: int, offset: int) -> gevent.Greenlet:
        """A read_committed reader that has read everything and waits shortly for more."""
        wanted = {("t", partition): FetchFrom(offset, MEGABYTE)}
        limits = {"max_wait": 0.02, "min_bytes": MEGABYTE, "max_bytes": MEGABYTE, "read_committed": True}

        def begin() -> gevent.Greenlet:
            green = gevent.spawn(self.client.core.fetch, wanted, **limits)
            gevent.sleep(0)
            return green

        return self.client.connection.hub.run(begin)

    def delete_records(self, partition: int, before: int) -> None:
        answer = self.client.call("delete_records", {("t", partition): before})["t", partition]
        assert (answer.error, answer.low_watermark) == (None, before)
        self.client.connection.hub.run(self.client.core._producers.forget_old, gevent.sleep)


ACTIONS = {
    "send": 40,
    "late write": 6,
    "plain": 10,
    "commit": 12,
    "abort": 8,
    "offset": 8,
    "init": 4,
    "wrong epoch": 3,
    "again": 5,
    "restart": 1,
    "full": 2,
    "late": 1,
    "deleted topic": 3,
    "trim": 4,
    "crash": 2,
}


LATE = (errors.InvalidProducerEpochError, errors.InvalidProducerIdMappingError)
"""What a batch of a transaction gets whose end has raised the epoch, whatever its partition knows of it."""


def play(seed: int) -> None:
    """Play the history of a seed; AssertionError says what did not hold."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="dafka-test-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "ENDED_AT_ONCE", chance.choice((1, 500)))
        patch.setattr("dafka.broker.transactions.timeouts.FAILED_PAUSE", 0.1)
        last_epoch = chance.choice((4, LAST_EPOCH))
        for module in ("identities", "epoch_ends"):
            patch.setattr(f"dafka.broker.transactions.{module}.LAST_EPOCH", last_epoch)
        world = World(Path(folder), patch)
        try:
            take_steps(world, Model(), chance, patch)
        finally:
            world.broker.stop()


def take_steps(world: World, model: Model, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(200):
        name = chance.choice("abcd")
        producer = world.producers[name]
        partition = chance.randrange(PARTITIONS)
        value = b"%d" % step
        (action,) = chance.choices(list(ACTIONS), list(ACTIONS.values()))
        if name not in model.touched:  # clients of both kinds, one after the other
            producer.raising = chance.random() < 0.5
        if action == "send":
            answer = producer.send(value, ("t", partition))
            model.begin(name, partition)
            assert answer.base_offset == model.write(partition, value, name)
        elif action == "plain":
            answer = world.client.produce("t", value, partition=partition)
            assert answer.base_offset == model.write(partition, value, None)
        elif action in ("commit", "abort"):
            before = producer.who
            error = producer.end(action == "commit")
            if name in model.touched:
                assert error is None
                model.end(name, action == "commit")
            elif producer.raising:
                assert error is (errors.InvalidTxnStateError if action == "commit" else None)
            else:
                assert error in (None, errors.InvalidTxnStateError)
            if producer.raising and error is None:
                world.earlier[name].append(before[1:])
                retried = world.client.call("end_transaction_with_epoch", *before, action == "commit")
                assert retried == (None, producer.producer_id, producer.epoch)
                wrong = world.client.call("end_transaction_with_epoch", *before, action != "commit")
                assert wrong.error is errors.InvalidTxnStateError
        elif action == "late write" and world.earlier[name]:
            now = producer.producer_id, producer.epoch
            producer.producer_id, producer.epoch = chance.choice(world.earlier[name])
            assert producer.write(value, ("t", partition)).error in LATE
            producer.producer_id, producer.epoch = now
        elif action == "offset":
            assert producer.send_offset(step) is None
            model.begin(name)
            model.offsets[name] = step
        elif action == "init":
            producer.init()
            if name in model.touched:
                model.end(name, False)
        elif action == "wrong epoch":
            wrong = producer.epoch + chance.choice((1, 3))
            identity = world.client.call("init_producer_id", name, 60.0, producer.producer_id, wrong)
            assert identity.error is errors.ProducerFencedError
            if name in model.touched:
                model.end(name, False)
                assert producer.write(value, ("t", partition)).error in LATE
                producer.init()
        elif action == "again" and partition in model.touched.get(name, ()):
            known = [
                number
                for number, record in enumerate(model.records[partition])
                if record[0] == name and record[2] != "marker"
            ]
            producer.sequences["t", partition] -= 1
            repeated = producer.write(model.records[partition][known[-1]][1], ("t", partition))
            assert repeated.base_offset == known[-1]
        elif action == "restart":
            world.restart()
        elif action == "full" and name in model.touched:
            log = world.client.core.log
            with monkeypatch.context() as patch:
                patch.setattr(log._storage, "commit", fails(log.path))
                assert producer.end(chance.random() < 0.5) is errors.KafkaStorageError
        elif action == "late" and name in model.touched:
            world.failing_late(monkeypatch, lambda producer=producer: producer.end(True))
            all_time_out(world, model)
        elif action == "deleted topic":
            assert producer.raising or producer.add(("u", 0)) is None
            producer.write(value, ("u", 0))
            model.begin(name)
            world.client.call("delete_topics", ["u"])
            world.client.create("u")
            producer.sequences.pop(("u", 0), None)
            if chance.random() < 0.5:
                world.restart()
                world.pass_time()
                all_time_out(world, model)
        elif action == "trim":
            start, end = model.starts[partition], model.stable(partition)
            where = chance.randrange(start, end + 1)
            reader = world.reading(partition, start)
            expected = model.committed(partition, start)
            world.delete_records(partition, where)
            model.starts[partition] = where
            fetched = world.client.connection.hub.run(reader.get)["t", partition]
            assert visible(fetched) == expected
        elif action == "crash" and name in model.touched:
            commit = chance.random() < 0.5
            before = chance.randrange(3, 8)  # the second one is the rest of the first
            world.crash(monkeypatch, lambda producer=producer, commit=commit: producer.end(commit), before)
            model.end(name, commit)
            until(lambda name=name: world.all_end({name}))
            producer.init()
            adopt_order(world, model)
        compare(world, model, partition, chance)
    world.pass_time()
    until(lambda: world.all_end(set(model.touched)))
    for number in range(PARTITIONS):
        fetched = fetch(world.client, model.starts[number], number)
        assert fetched.last_stable_offset == fetched.high_watermark


def all_time_out(world: World, model: Model) -> None:
    ended = sorted(model.touched)
    until(lambda: world.all_end(set(ended)))
    for name in ended:
        producer = world.producers[name]
        model.end(name, False)
        if producer.raising:  # it may abort, too, and goes on
            world.earlier[name].append((producer.producer_id, producer.epoch))
            assert producer.end(True) is errors.InvalidTxnStateError
            assert producer.end(False) is None
        else:
            assert producer.end(True) in (errors.ProducerFencedError, errors.InvalidProducerIdMappingError)
            producer.init()
    until(lambda: not len(world.client.core.log.table("transactions.open")))
    adopt_order(world, model)


def fails(path: str) -> Callable[..., None]:
    def fail(*rows: object) -> None:
        raise LogWriteError(path, "no space")

    return fail


def compare(world: World, model: Model, partition: int, chance: random.Random) -> None:
    where = chance.randrange(model.starts[partition], len(model.records[partition]) + 1)
    fetched = fetch(world.client, where, partition)
    assert fetched.last_stable_offset == model.stable(partition)
    assert visible(fetched) == model.committed(partition, where)
    client = world.client
    assert everything(client, partition, model.starts[partition]) == model.everything(partition)
    assert offset_of(client) == model.offset


def adopt_order(world: World, model: Model) -> None:
    """Markers of several ends come in any order, and one that a crash has torn apart may come twice."""
    for partition, records in enumerate(model.records):
        end = fetch(world.client, model.starts[partition], partition).high_watermark
        assert end >= len(records)
        records += [[None, None, "marker"] for _ in range(end - len(records))]


if __name__ == "__main__":
    main("scripts/transactions", (__doc__ or "").partition("\n")[0], play, 1000)
