"""A batch that the broker in the same process refuses for some of its records."""

from __future__ import annotations

import pytest
from kafka.errors import InvalidRecordError, KafkaError

from compat.kafka import KafkaProducer
from compat.kafka.admin import KafkaAdminClient, NewTopic
from dafka import Broker


@pytest.fixture
def producer():
    with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1, 1, topic_configs={"cleanup.policy": "compact"})])
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=500) as producer:
            yield producer


def test_each_record_fails_for_its_own_reason_in_futures_and_callbacks(producer):
    told = {}
    futures = [producer.send("t", b"v", key) for key in (b"a", None, b"b", None)]
    for number, future in enumerate(futures):
        future.add_errback(lambda error, number=number: told.update({number: error}))
    producer.flush(100)
    kinds = [KafkaError, InvalidRecordError, KafkaError, InvalidRecordError]
    assert [type(future.exception) for future in futures] == kinds
    assert [type(told[number]) for number in range(4)] == kinds
    for future, kind in zip(futures, kinds, strict=True):
        with pytest.raises(kind) as caught:
            future.get(0)
        assert ("without a key" in str(caught.value)) == (kind is InvalidRecordError)


def test_batches_that_are_right_are_taken_beside_one_that_is_wrong(producer):
    futures = []
    for number in range(200):
        futures.append(producer.send("t", bytes(1000), b"k" if number != 100 else None))
    producer.flush(100)
    failed = [number for number, future in enumerate(futures) if future.exception is not None]
    assert 100 in failed
    assert len(failed) < 50
    for number in failed:
        assert isinstance(futures[number].exception, InvalidRecordError) == (number == 100)
