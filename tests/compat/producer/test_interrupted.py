"""Interrupts in the middle of send(): accepted records arrive, and nothing hangs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.producer import _accumulator, _batches
from dafka import Broker
from dafka.broker import connecting
from dafka.hub import hub
from tests.compat.interrupting import InterruptedCall

Producers = Callable[..., KafkaProducer]
Consumers = Callable[..., KafkaConsumer]


def test_a_batch_whose_encoding_is_interrupted_is_sent(
    new_producer: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = new_producer(batch_size=300)
    producer.partitions_for("t")
    here, encode, interrupts = threading.get_ident(), _batches.encode_batch, [1]

    def interrupted(*args: Any, **kwargs: Any) -> bytes:
        if threading.get_ident() == here and interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return encode(*args, **kwargs)

    monkeypatch.setattr(_batches, "encode_batch", interrupted)
    futures = []
    with pytest.raises(KeyboardInterrupt):
        while True:
            futures.append(producer.send("t", b"x" * 100, partition=0))
    futures += [producer.send("t", b"y" * 100, partition=0) for _ in range(10)]
    producer.flush(100)
    # The interrupted send's own record was appended before it was interrupted.
    assert [future.get(0).offset for future in futures] == [
        offset + (offset >= len(futures) - 10) for offset in range(len(futures))
    ]


def test_a_producer_goes_on_sending_whichever_call_ctrl_c_ends(new_producer: Producers) -> None:
    for number in count(1):
        producer = new_producer()
        producer.send("t", b"first", partition=0).get(100)  # what sends them sleeps now
        interruption = InterruptedCall(number, _accumulator, _batches, hub)
        with suppress(KeyboardInterrupt), interruption:
            producer.send("t", b"second", partition=0)
        producer.send("t", b"later", partition=0).get(100)
        producer.close()
        if not interruption.interrupted:
            break
    assert number > 5


def test_a_callback_that_exits_ends_nothing(
    new_producer: Producers, caplog: pytest.LogCaptureFixture
) -> None:
    producer = new_producer()
    producer.send("t", b"1").add_callback(lambda _: sys.exit(3)).get(100)
    assert producer.send("t", b"2").get(100).offset >= 0
    assert "SystemExit" in caplog.text


def test_a_timestamp_that_no_batch_can_hold_is_refused_at_once(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=50)
    good = producer.send("t", b"good", partition=0)
    for timestamp in (-(2**63), 2**63 - 1, 2**62 + 1):
        with pytest.raises(TypeError, match=str(timestamp)):
            producer.send("t", b"bad", partition=0, timestamp_ms=timestamp)
    also_good = producer.send("t", b"far", partition=0, timestamp_ms=1)
    assert (good.get(100).offset, also_good.get(100).offset) == (0, 1)


def test_a_batch_size_above_the_brokers_limit_loses_no_records(new_producer: Producers) -> None:
    producer = new_producer(batch_size=5_000_000, linger_ms=50)
    futures = [producer.send("t", bytes(1000), partition=0) for _ in range(3000)]
    assert [future.get(100).offset for future in futures] == list(range(3000))


def test_clients_go_on_when_their_broker_is_stopped_and_started_again(tmp_path: Path) -> None:
    broker = Broker(tmp_path).start()
    address = broker.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=address)
    consumer = KafkaConsumer("t", bootstrap_servers=address, auto_offset_reset="earliest")
    assert producer.send("t", b"before").get(100).offset == 0
    assert next(consumer).value == b"before"
    broker.stop()
    broker.start()
    try:
        assert producer.send("t", b"after").get(100).offset == 1
        assert next(consumer).value == b"after"
    finally:
        producer.close()
        consumer.close()
        broker.stop()


def test_a_relative_embedded_folder_stays_the_same_when_the_program_changes_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_STARTED_IN", str(tmp_path))
    monkeypatch.setenv("DAFKA_EMBEDDED", "data")
    (tmp_path / "elsewhere").mkdir()
    with KafkaProducer() as producer:
        producer.send("t", b"here").get(100)
        monkeypatch.chdir(tmp_path / "elsewhere")
        consumer = KafkaConsumer("t", auto_offset_reset="earliest")
        assert next(consumer).value == b"here"
        consumer.close()
    connecting._embedded.pop(os.path.realpath(tmp_path / "data")).stop()
    assert (tmp_path / "data").is_dir()
    assert not (tmp_path / "elsewhere" / "data").exists()


def test_a_callback_may_take_a_lock_that_its_program_holds_while_it_polls(
    broker: Broker, new_producer: Producers, new_consumer: Consumers
) -> None:
    producer, consumer = new_producer(), new_consumer("t", auto_offset_reset="earliest")
    lock, seen = threading.Lock(), []

    def count(metadata: Any) -> None:
        with lock:
            seen.append(metadata.offset)

    for _ in range(20):
        producer.send("t", b"x").add_callback(count)
        with lock:
            consumer.poll(timeout_ms=20)
    producer.flush(100)
    assert seen == list(range(20))
    assert producer.send("t", b"y").add_callback(lambda _: producer.close()).get(100).offset == 20
