"""Keys, values and headers of a record on their way to bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.errors import (
    MessageSizeTooLargeError,
)
from compat.kafka.producer import _values, kafka
from compat.kafka.serializer import JsonSerializer, Serializer
from dafka import Broker
from dafka.protocol.batch import HEADERS_LIMIT

Producers = Callable[..., KafkaProducer]
Consumers = Callable[..., KafkaConsumer]


def test_the_limit_is_on_kafka_pythons_estimate(broker: Broker) -> None:
    from kafka.record.default_records import DefaultRecordBatchBuilder

    limit = DefaultRecordBatchBuilder.estimate_size_in_bytes(b"key", b"x" * 5000, [("h", b"1")])
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=limit) as producer:
        assert producer.send("t", b"x" * 5000, key=b"key", headers=[("h", b"1")]).get(100).offset == 0
        with pytest.raises(MessageSizeTooLargeError, match=str(limit + 1)):
            producer.send("t", b"x" * 5001, key=b"key", headers=[("h", b"1")])


def test_a_record_with_more_headers_than_consumers_read_is_refused(
    broker: Broker, new_consumer: Consumers
) -> None:
    """The broker of the same process does not examine what it is sent."""
    headers = [("", b"")] * (HEADERS_LIMIT + 1)
    large = 2**26
    broker.create_topic("large", configs={"max.message.bytes": str(large)})
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=large) as producer:
        with pytest.raises(MessageSizeTooLargeError, match=f"{HEADERS_LIMIT} headers"):
            producer.send("large", b"", headers=headers)
        producer.send("large", b"", headers=headers[1:]).get(100)
    assert len(next(new_consumer("large")).headers) == HEADERS_LIMIT


def test_a_record_that_decompresses_to_more_than_consumers_read_is_refused(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOST_OCTETS", "DECOMPRESSED_LIMIT"):
        monkeypatch.setattr(_values, name, 100_000, raising=False)
    monkeypatch.setattr(kafka, "MOST_OCTETS", 100_000, raising=False)
    address = broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=address, compression_type="gzip") as producer:
        producer.send("t", bytes(99_000)).get(100)
        with pytest.raises(MessageSizeTooLargeError, match="at most 100000 bytes"):
            producer.send("t", bytes(100_000))


def test_sizes_of_a_missing_key_or_value_are_minus_one(producer: KafkaProducer) -> None:
    metadata = producer.send("t", key=b"only").get(100)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (4, -1)
    assert metadata.serialized_header_size == -1


def test_buffers_are_copied_when_they_are_sent(new_producer: Producers, new_consumer: Consumers) -> None:
    producer = new_producer(linger_ms=10_000)
    value, key = bytearray(b"before"), bytearray(b"key")
    producer.send("t", value, key=memoryview(key))
    value[:], key[:] = b"after!", b"yek"
    producer.flush(100)
    record = next(new_consumer("t"))
    assert (record.key, record.value) == (b"key", b"before")


def test_headers_arrive_as_they_were_sent(producer: KafkaProducer, new_consumer: Consumers) -> None:
    headers = [("a", b"1"), ("a", b""), ("\N{SNOWMAN}", b"\x00\xff")]
    producer.send("t", b"v", headers=headers)
    headers.append(("later", b""))
    producer.flush(100)
    assert next(new_consumer("t")).headers == headers[:3]


def test_serializers_may_be_objects_and_functions(new_producer: Producers, new_consumer: Consumers) -> None:
    with pytest.warns(DeprecationWarning, match="key_serializer"):
        producer = new_producer(key_serializer=str.encode, value_serializer=JsonSerializer())
    producer.send("t", {"a": [1]}, key="k")
    producer.flush(100)
    record = next(new_consumer("t"))
    assert (record.key, record.value) == (b"k", b'{"a": [1]}')


def test_a_serializer_is_told_topic_and_headers_and_closed_with_the_producer(
    new_producer: Producers,
) -> None:
    class Spy(Serializer):
        seen: list[object]
        closed = False

        def serialize(self, topic: str, headers: object, data: object) -> bytes:
            self.seen = [topic, headers, data]
            return b"x"

        def close(self) -> None:
            self.closed = True

    spy = Spy()
    producer = new_producer(value_serializer=spy)
    producer.send("t", 5, headers=[("h", b"1")])
    producer.close()
    assert spy.seen == ["t", [("h", b"1")], 5] and spy.closed


def test_send_raises_the_exception_of_a_serializer(new_producer: Producers) -> None:
    producer = new_producer(value_serializer=JsonSerializer())
    with pytest.raises(TypeError, match="not JSON serializable"):
        producer.send("t", object())
    assert producer.send("t", 1).get(100).offset == 0
