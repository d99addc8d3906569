"""compat.kafka over TCP does with Apache Kafka what it does with this broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from clients.adapters.client import SECONDS
from clients.conftest import MakeTopic
from clients.groups.settings import set_group
from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.admin import KafkaAdminClient
from compat.kafka.share import ShareConsumer

Open = Callable[..., Any]
ABORTED = 1
WRITTEN = {b"%d-%d" % (transaction, number) for transaction in (0, 2) for number in range(3)}


@pytest.fixture
def open_client(servers: str) -> Iterator[Open]:
    """Opens clients that are closed in the end."""
    with ExitStack() as stack:

        def made(make: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
            client = make(*arguments, bootstrap_servers=servers, **settings)
            stack.callback(client.close)
            return client

        yield made


@pytest.fixture
def written(open_client: Open, new_topic: MakeTopic) -> str:
    """A topic with three transactions, of which one is aborted; each raises the producer's epoch."""
    topic = new_topic(2)
    transactional_id = f"id-{topic}"
    admin = open_client(KafkaAdminClient)
    producer = open_client(KafkaProducer, transactional_id=transactional_id)
    producer.init_transactions()
    epochs = []
    for transaction in range(3):
        producer.begin_transaction()
        for number in range(3):
            producer.send(topic, b"%d-%d" % (transaction, number), partition=number % 2)
        producer.flush(SECONDS)
        described = admin.describe_transactions([transactional_id])[transactional_id]
        epochs.append(described.producer_epoch)
        if transaction == ABORTED:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    assert epochs == [epochs[0], epochs[0] + 1, epochs[0] + 2]
    return topic


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_each_protocol_reads_and_commits(open_client: Open, written: str, protocol: str) -> None:
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    group = f"group-{uuid4().hex[:8]}"
    consumer = open_client(KafkaConsumer, written, group_id=group, group_protocol=protocol, **settings)
    values: list[bytes] = []

    def read() -> bool:
        for records in consumer.poll(200).values():
            values.extend(record.value for record in records)
        return len(values) >= len(WRITTEN)

    until(read, values, SECONDS)
    consumer.commit()
    assert sorted(values) == sorted(WRITTEN)
    ends = [consumer.committed(TopicPartition(written, number)) for number in range(2)]
    assert all(ends)


def test_a_share_group_has_each_committed_record_once(servers: str, open_client: Open, written: str) -> None:
    group = f"share-{uuid4().hex[:8]}"
    set_group(
        servers, group, {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}
    )
    consumer = open_client(ShareConsumer, written, group_id=group)
    values: list[bytes] = []

    def read() -> bool:
        for records in consumer.poll(timeout_ms=200).values():
            values.extend(record.value for record in records)
        return len(values) >= len(WRITTEN)

    until(read, values, SECONDS)
    assert sorted(values) == sorted(WRITTEN)
    assert not any(consumer.commit().values())
