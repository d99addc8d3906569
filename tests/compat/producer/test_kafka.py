"""What ``KafkaProducer`` promises: where records go, when, and what its futures say."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import kafka.codec
import pytest

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.errors import IllegalStateError, TopicAuthorizationFailedError
from compat.kafka.producer._batches import Batch
from compat.kafka.producer.future import FutureRecordMetadata, RecordMetadata

Consumers = Callable[..., KafkaConsumer]
Producers = Callable[..., KafkaProducer]


def values(consumer: KafkaConsumer, count: int) -> list[object]:
    return [next(consumer).value for _ in range(count)]


# -- one record --------------------------------------------------------------------------------------


def test_send_returns_a_future_of_the_records_metadata(producer: KafkaProducer) -> None:
    future = producer.send("t", b"value", key=b"key", headers=[("h", b"12")], timestamp_ms=1234)
    assert isinstance(future, FutureRecordMetadata)
    metadata = future.get(100)
    partition = TopicPartition("t", 0)
    assert metadata == RecordMetadata("t", 0, partition, 0, 1234, None, 3, 5, 3)
    assert future.succeeded() and not future.failed() and future.is_done
    assert future.value == metadata and future.exception is None


def test_a_record_without_timestamp_gets_the_time_of_send(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    before = int(time.time() * 1000)
    sent = producer.send("t", b"v").get(100).timestamp
    assert before <= sent <= int(time.time() * 1000)
    assert next(new_consumer("t")).timestamp == sent


def test_offsets_count_up_over_batches(new_producer: Producers) -> None:
    producer = new_producer(batch_size=200)
    futures = [producer.send("t", b"x" * 50) for _ in range(100)]
    assert [future.get(100).offset for future in futures] == list(range(100))


# -- serializers -------------------------------------------------------------------------------------


# -- partitions --------------------------------------------------------------------------------------


def test_records_of_one_partition_keep_their_order(
    new_producer: Producers, new_consumer: Consumers, four: str
) -> None:
    producer = new_producer(batch_size=500)
    for number in range(3000):
        producer.send(four, b"%d" % number, partition=number % 4)
    producer.flush(100)
    seen: dict[int, list[int]] = {}
    for record in new_consumer(four):
        seen.setdefault(record.partition, []).append(int(record.value))
    assert seen == {number: list(range(number, 3000, 4)) for number in range(4)}


# -- when records leave ------------------------------------------------------------------------------


def test_lingering_holds_records_back_until_the_time_is_over(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=150)
    start = time.monotonic()
    futures = [producer.send("t", b"v") for _ in range(5)]
    assert futures[-1].get(100).offset == 4
    assert 0.14 <= time.monotonic() - start < 30


def test_a_full_batch_does_not_linger(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=60_000, batch_size=1000)
    futures = [producer.send("t", b"x" * 100) for _ in range(20)]
    assert futures[0].get(100).offset == 0
    assert not futures[-1].is_done


def test_flush_does_not_wait_for_the_linger(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=60_000)
    futures = [producer.send("t", b"v") for _ in range(10)]
    producer.flush(100)
    assert all(future.is_done for future in futures)


def test_close_sends_buffered_records(new_producer: Producers, new_consumer: Consumers) -> None:
    producer = new_producer(linger_ms=60_000)
    future = producer.send("t", b"v")
    producer.close()
    assert future.succeeded()
    producer.close()
    assert values(new_consumer("t"), 1) == [b"v"]


def test_leaving_a_with_block_closes(new_producer: Producers) -> None:
    with new_producer() as producer:
        future = producer.send("t", b"v")
    assert future.is_done
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send("t", b"v")


def test_a_producer_that_is_dropped_sends_its_records(new_consumer: Consumers, broker) -> None:  # type: ignore[no-untyped-def]
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
    future = producer.send("t", b"v")
    del producer
    assert future.get(100).offset == 0


@pytest.mark.parametrize("acks", [0, 1, -1, "all"])
def test_every_setting_of_acks_delivers(
    new_producer: Producers, new_consumer: Consumers, acks: object
) -> None:
    producer = new_producer(acks=acks, enable_idempotence=False)
    metadata = producer.send("t", b"v").get(100)
    assert metadata.offset == (-1 if acks == 0 else 0)
    assert values(new_consumer("t", consumer_timeout_ms=5000), 1) == [b"v"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_arrive(new_producer: Producers, new_consumer: Consumers, codec: str) -> None:
    if not getattr(kafka.codec, f"has_{codec}")():
        pytest.skip(f"{codec} is not installed")
    producer = new_producer(compression_type=codec)
    sent = [b"%d" % number * 20 for number in range(500)]
    for value in sent:
        producer.send("t", value)
    producer.flush(100)
    assert values(new_consumer("t"), 500) == sent


def test_a_record_larger_than_a_batch_goes_alone(new_producer: Producers, new_consumer: Consumers) -> None:
    producer = new_producer(batch_size=100)
    sent = [b"a", b"x" * 500_000, b"b"]
    for value in sent:
        producer.send("t", value)
    producer.flush(100)
    assert values(new_consumer("t"), 3) == sent


def test_no_batching_at_all(new_producer: Producers) -> None:
    producer = new_producer(batch_size=0)
    assert [producer.send("t", b"v").get(100).offset for _ in range(3)] == [0, 1, 2]


# -- many threads ------------------------------------------------------------------------------------


def test_eight_threads_share_a_producer(new_producer: Producers, new_consumer: Consumers, four: str) -> None:
    producer = new_producer(batch_size=2000)

    def send(thread: int) -> list[int]:
        futures = [
            producer.send(four, b"%d %d" % (thread, number), key=b"%d" % thread) for number in range(2000)
        ]
        return [future.get(100).offset for future in futures]

    with ThreadPoolExecutor(8) as pool:
        for offsets in pool.map(send, range(8)):
            assert offsets == sorted(offsets)
    seen: dict[int, list[int]] = {}
    for record in new_consumer(four):
        thread, number = map(int, record.value.split())
        seen.setdefault(thread, []).append(number)
    assert seen == {thread: list(range(2000)) for thread in range(8)}


class Interrupted(list[Any]):
    """Records of a batch: now and then another thread has a turn before or after each step with them."""

    def __len__(self) -> int:
        let_others_run()
        length = super().__len__()
        let_others_run()
        return length

    def append(self, record: Any) -> None:
        let_others_run()
        super().append(record)
        let_others_run()


def let_others_run() -> None:
    if random.random() < 0.1:
        time.sleep(0)


def test_each_future_tells_the_place_of_its_own_record_however_threads_take_turns(
    new_producer: Producers, new_consumer: Consumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Batch.__init__

    def begin_interrupted(batch: Batch, *arguments: Any) -> None:
        begin(batch, *arguments)
        batch.records = Interrupted()

    monkeypatch.setattr(Batch, "__init__", begin_interrupted)
    producer = new_producer(batch_size=400)  # ten records: most of the time somebody seals a batch
    told: dict[bytes, Any] = {}

    def send(thread: int) -> None:
        for number in range(1000):
            value = b"%d %d" % (thread, number)
            told[value] = producer.send("t", value)

    with ThreadPoolExecutor(4) as threads:
        for sent in [threads.submit(send, number) for number in range(4)]:
            sent.result(100)
    producer.flush()
    consumer = new_consumer("t", auto_offset_reset="earliest")
    stored = {record.value: record.offset for record in islice(consumer, len(told))}
    assert stored == {value: future.get(0).offset for value, future in told.items()}


def test_threads_that_send_during_close_lose_nothing_they_were_promised(new_producer: Producers) -> None:
    producer = new_producer()
    futures: list[FutureRecordMetadata] = []
    started = threading.Event()

    def send() -> None:
        while True:
            try:
                futures.append(producer.send("t", b"v"))
            except IllegalStateError:
                return
            started.set()

    thread = threading.Thread(target=send)
    thread.start()
    assert started.wait(100)
    producer.close()
    thread.join(100)
    assert futures[-1].get(100).offset == len(futures) - 1


# -- errors ------------------------------------------------------------------------------------------


def test_an_error_that_lasts_fails_the_future(producer: KafkaProducer) -> None:
    class Refusing:
        running = True

        def metadata(self, topics: object, create: bool = False) -> object:
            raise TopicAuthorizationFailedError({"t"})

    producer._client._broker = Refusing()
    future = producer.send("t", b"value", key=b"k")
    assert future.failed() and not future.succeeded() and future.value is None
    with pytest.raises(TopicAuthorizationFailedError):
        future.get()


# -- everything else ---------------------------------------------------------------------------------


def test_metrics_count_records(producer: KafkaProducer) -> None:
    for _ in range(7):
        producer.send("t", b"v")
    producer.flush(100)
    assert producer.metrics()["producer-metrics"]["record-send-total"] == 7
    assert len(producer.metrics(raw=True)) > 1


def test_metrics_can_be_switched_off(new_producer: Producers) -> None:
    assert new_producer(metrics_enabled=False).metrics() is None


def test_its_text_has_client_id_and_transactional_id(new_producer: Producers) -> None:
    producer = new_producer(client_id="me")
    assert str(producer) == "<KafkaProducer client_id=me transactional_id=None>"
    assert producer.bootstrap_connected()
    assert new_producer().config["client_id"].startswith("kafka-python-producer-")
