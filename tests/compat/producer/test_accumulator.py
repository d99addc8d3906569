"""The records that a producer has accepted and that are not acknowledged: their bound, and flush."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import gevent
import pytest
from timing import until

from compat.kafka import KafkaProducer
from compat.kafka.errors import (
    KafkaTimeoutError,
)
from compat.kafka.producer import _accumulator
from compat.kafka.producer._accumulator import RecordAccumulator
from compat.kafka.producer._batches import Batch, PartitionQueue
from compat.kafka.structs import TopicPartition
from dafka.hub.hub import get_hub
from dafka.testing import TestBroker
from tests.compat.producer.queues import Accumulator

Producers = Callable[..., KafkaProducer]


def test_send_waits_when_too_much_is_under_way(
    broker: TestBroker, new_producer: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_accumulator, "BYTES_UNDER_WAY", 50_000)
    producer = new_producer(batch_size=1000)
    producer.partitions_for("t")
    hanging = broker.hang()

    def go_on() -> None:
        until(lambda: producer._accumulator.pool.under_way > 40_000)
        hanging.close()

    helper = threading.Thread(target=go_on)
    helper.start()
    most = 0
    for _ in range(2000):
        producer.send("t", b"x" * 100)
        most = max(most, producer._accumulator.pool.under_way)
    helper.join()
    producer.flush(100)
    assert 40_000 < most < 60_000
    assert producer._accumulator.pool.under_way == 0 and not producer._accumulator.incomplete


def test_whether_the_broker_is_in_another_process_is_known(new_producer: Producers) -> None:
    assert not new_producer()._accumulator.is_remote
    with KafkaProducer(bootstrap_servers="127.0.0.1:1", api_version=(2, 6)) as elsewhere:
        assert elsewhere._accumulator.is_remote


@pytest.mark.parametrize("is_remote", [True, False])
def test_a_thread_that_sends_much_lets_the_hub_go_on_for_a_broker_in_another_process(
    broker: TestBroker, new_producer: Producers, monkeypatch: pytest.MonkeyPatch, is_remote: bool
) -> None:
    producer = new_producer(batch_size=1000)
    producer._accumulator.is_remote = is_remote
    producer.partitions_for("t")
    given: list[int] = []
    pool = producer._accumulator.pool
    monkeypatch.setattr(producer._client.hub, "give_way", lambda: given.append(pool.under_way))
    monkeypatch.setattr(_accumulator, "LAG", 20_000)
    with broker.hang():
        for _ in range(400):
            producer.send("t", b"x" * 100)
    producer.flush(100)
    if is_remote:
        assert 20_000 < given[0] < 25_000
        assert 15 < len(given) < 40  # one for each batch from then on
    else:
        assert not given


def test_send_gives_up_waiting_after_max_block_ms(
    broker: TestBroker, new_producer: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_accumulator, "BYTES_UNDER_WAY", 5_000)
    producer = new_producer(batch_size=1000, max_block_ms=1000)
    producer.partitions_for("t")
    accepted = []
    with broker.hang(), pytest.raises(KafkaTimeoutError, match="1000 ms"):
        for _ in range(1000):
            accepted.append(producer.send("t", b"x" * 100))
    assert [future.get(100).offset for future in accepted] == list(range(len(accepted)))


def test_a_batch_that_was_acknowledged_before_its_thread_could_count_it_is_not_under_way(
    new_producer: Producers,
) -> None:
    pool = new_producer()._accumulator.pool
    batch = Batch(PartitionQueue(get_hub(), TopicPartition("t", 0), 1000, None, Accumulator()), 1000)
    batch.size = 100
    batch.resolve(0, -1, None)
    pool.give_back(batch)
    pool.take(batch)
    assert pool.under_way == 0


def test_one_sender_runs_though_two_threads_have_it_started_again(new_producer: Producers) -> None:
    hub, started = get_hub(), list[bool]()
    accumulator = RecordAccumulator(hub, new_producer().config, is_remote=False)
    accumulator.serve(lambda: started.append(True))

    def start_twice() -> None:
        accumulator._start()
        accumulator._start()
        gevent.sleep(0)

    hub.run(start_twice)
    assert len(started) == 1
    hub.run(accumulator.close_queues)  # the sender ends
    hub.run(start_twice)
    assert len(started) == 2


def test_flush_that_takes_too_long_is_a_timeout_and_loses_nothing(
    broker: TestBroker, new_producer: Producers
) -> None:
    producer = new_producer()
    producer.partitions_for("t")
    with broker.hang():
        future = producer.send("t", b"v")
        with pytest.raises(KafkaTimeoutError, match=r"0\.01"):
            producer.flush(0.01)
        with pytest.raises(KafkaTimeoutError):
            producer.close(0.01)
    assert future.get(100).offset == 0


def test_flush_does_not_wait_for_records_that_are_sent_after_it(new_producer: Producers) -> None:
    producer = new_producer(batch_size=500)
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            producer.send("t", b"v")
            time.sleep(0)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        for _ in range(5):
            producer.flush(100)
    finally:
        stop.set()
        thread.join(100)


def test_flush_waits_for_records_that_other_threads_appended_before_it(new_producer: Producers) -> None:
    producer = new_producer(compression_type="gzip", batch_size=4000)
    value = os.urandom(500)
    stop, enough, early = threading.Event(), threading.Event(), []

    def send() -> None:
        while not stop.is_set():
            producer.send("t", value)

    def send_and_flush() -> None:
        while not stop.is_set():
            future = producer.send("t", value)
            producer.flush(100)
            early.append(not future.is_done)
            if len(early) >= 200:
                enough.set()

    threads = [threading.Thread(target=target) for target in (send, send_and_flush, send_and_flush)]
    for thread in threads:
        thread.start()
    in_time = enough.wait(100)
    stop.set()
    for thread in threads:
        thread.join()
    assert in_time
    assert not any(early)
