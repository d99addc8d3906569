"""kafka-python, as it is on PyPI."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from clients.adapters.client import SECONDS, Member, Transaction, TransactionalClient
from clients.adapters.python_names import (
    MEMBER_SETTINGS,
    consumer_settings,
    from_client,
    producer_settings,
)
from clients.records import Record, to_line
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor


class KafkaPython(TransactionalClient):
    name = "kafka-python"

    def produce(
        self,
        servers: str,
        topic: str,
        records: Sequence[Record],
        *,
        acks: str = "all",
        compression: str = "none",
        idempotent: bool = False,
    ) -> None:
        producer = KafkaProducer(**producer_settings(servers, acks, compression, idempotent), linger_ms=5)
        try:
            for future in [_send(producer, topic, record) for record in records]:
                future.get(timeout=SECONDS)
        finally:
            producer.close()

    def consume(self, servers: str, topic: str, partitions: int, *, committed: bool = False) -> list[Record]:
        consumer = KafkaConsumer(**consumer_settings(servers, committed), enable_auto_commit=False)
        try:
            assigned = [TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(assigned)
            ends = consumer.end_offsets(assigned)
            records = []
            while any(consumer.position(partition) < ends[partition] for partition in assigned):
                for batch in consumer.poll(timeout_ms=200).values():
                    records += map(from_client, batch)
            return records
        finally:
            consumer.close()

    def transact(
        self, servers: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]
    ) -> None:
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)
        try:
            producer.init_transactions()
            for records, commit in transactions:
                producer.begin_transaction()
                futures = [_send(producer, topic, record) for record in records]
                producer.flush(SECONDS)
                for future in futures:
                    future.get(timeout=SECONDS)
                if commit:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
        finally:
            producer.close()

    def member(self, servers: str, group: str, topic: str) -> Member:
        return Member.python(self.name, servers, group, topic)


def run_member(servers: str, group: str, topic: str, over: Callable[[], bool]) -> None:
    """The program of a member."""

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            print("assigned", *(partition.partition for partition in assigned), flush=True)

    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        partition_assignment_strategy=[RangePartitionAssignor],
        **MEMBER_SETTINGS,
    )
    consumer.subscribe([topic], listener=Listener())
    while not over():
        for batch in consumer.poll(timeout_ms=100).values():
            for record in batch:
                print("record", to_line(from_client(record)), flush=False)
        sys.stdout.flush()
    consumer.close()


def _send(producer: KafkaProducer, topic: str, record: Record) -> Any:
    return producer.send(
        topic,
        record.value,
        record.key,
        list(record.headers),
        partition=record.partition,
        timestamp_ms=record.timestamp,
    )
