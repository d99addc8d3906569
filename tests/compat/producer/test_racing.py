"""Many threads send with one producer, each interrupted by the others in the midst of any line.

A record joins its batch without a lock, so threads are switched between instructions, far more often than the
interpreter does: of each record that was acknowledged the place is known, it is there once, and a thread's
records are in their order.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from compat.kafka import KafkaProducer
from compat.kafka.errors import IllegalStateError, KafkaTimeoutError, NotLeaderForPartitionError
from compat.kafka.producer import _accumulator, _batches, kafka
from dafka.testing import TestBroker

TRACED = {module.__file__ for module in (kafka, _batches, _accumulator)}
THREADS = 4
RECORDS = 120
PARTITIONS = 2


def switching(chance: random.Random, rate: float) -> Callable[..., Any]:
    """A trace function that gives other threads their turn between instructions of the producer."""

    def trace(frame: Any, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in TRACED:
            return None
        frame.f_trace_opcodes = True
        if chance.random() < rate:
            time.sleep(0 if chance.random() < 0.9 else 0.0005)
        return trace

    return trace


class Sending:
    """A thread, and the futures of its records."""

    def __init__(self, producer: KafkaProducer, name: int, seed: int) -> None:
        self.producer = producer
        self.name = name
        self.chance = random.Random(1000 * seed + name)
        self.sent: list[tuple[bytes, Any]] = []

    def run(self, rate: float, count: int) -> None:
        sys.settrace(switching(self.chance, rate))
        try:
            for number in range(count):
                value = b"%d-%d-" % (self.name, number) + bytes(self.chance.choice((0, 5, 40, 300)))
                self.sent.append((value, self.producer.send("t", value, **self._where())))
                if self.chance.random() < 0.02:
                    self.producer.flush()
        except IllegalStateError:  # it was closed
            pass
        finally:
            sys.settrace(None)

    def _where(self) -> dict[str, Any]:
        dice = self.chance.random()
        if dice < 0.3:
            return {}
        if dice < 0.6:
            return {"key": b"%d" % self.chance.randrange(4)}
        return {"partition": self.chance.randrange(PARTITIONS)}


def check(broker: TestBroker, threads: list[Sending], *, all_sent: bool) -> None:
    found = {(one.partition, one.offset): one.value for one in broker.records("t")}
    values = list(found.values())
    assert len(set(values)) == len(values), "a record is there twice"
    last: dict[tuple[int, int], int] = defaultdict(lambda: -1)
    known = set()
    for thread in threads:
        for value, future in thread.sent:
            if future.succeeded():
                metadata = future.get(0)
                assert found[metadata.partition, metadata.offset] == value
                place = thread.name, metadata.partition
                assert metadata.offset > last[place]
                last[place] = metadata.offset
                known.add(value)
            else:
                assert future.failed() and not all_sent
                known.add(value)
    assert set(values) <= known | {b""}
    if all_sent:
        assert len(values) == sum(len(thread.sent) for thread in threads)


@pytest.mark.parametrize("seed", range(6))
def test_each_record_is_where_its_future_says(broker, new_producer, seed):
    broker.create_topic("t", PARTITIONS)
    chance = random.Random(seed)
    producer = new_producer(
        batch_size=chance.choice((150, 300, 1000)),
        linger_ms=chance.choice((0, 1, 5)),
        compression_type=chance.choice((None, "gzip")),
        retry_backoff_ms=1,
    )
    threads = [Sending(producer, name, seed) for name in range(THREADS)]
    producer.partitions_for("t")
    with ThreadPoolExecutor(THREADS) as pool:
        rate = chance.choice((0.01, 0.05))
        running = [pool.submit(thread.run, rate, RECORDS) for thread in threads]
        while not all(one.done() for one in running):
            if chance.random() < 0.3:
                broker.fail_next_produce(NotLeaderForPartitionError, topic="t", written=chance.random() < 0.5)
            time.sleep(0.02)
        for one in running:
            one.result()
    broker.clear_faults()
    producer.flush()
    check(broker, threads, all_sent=True)


@pytest.mark.parametrize("seed", range(6))
def test_closing_amid_sending_loses_nothing_that_was_taken(broker, new_producer, seed):
    broker.create_topic("t", PARTITIONS)
    chance = random.Random(seed)
    producer = new_producer(batch_size=chance.choice((150, 1000)), linger_ms=chance.choice((0, 5)))
    producer.partitions_for("t")
    threads = [Sending(producer, name, seed) for name in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        running = [pool.submit(thread.run, 0.02, 10**6) for thread in threads]
        time.sleep(chance.uniform(0.01, 0.3))
        try:
            producer.close(chance.choice((0.0, 0.01, 60)))
        except KafkaTimeoutError:
            producer.close(60)
        for one in running:
            one.result(60)
    deadline = time.monotonic() + 60
    for thread in threads:
        for _, future in thread.sent:
            while not future.is_done:
                assert time.monotonic() < deadline, "nothing became of a record that was taken"
                time.sleep(0.001)
    check(broker, threads, all_sent=True)
    assert threading.active_count() < 200
