"""confluent-kafka: librdkafka from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from clients.adapters.client import LARGEST, SECONDS, Member, Transaction, TransactionalClient
from clients.records import Record, to_line
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition


class Confluent(TransactionalClient):
    name = "confluent-kafka"

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
        producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": acks,
                "compression.type": compression,
                "enable.idempotence": idempotent,
                "message.max.bytes": LARGEST,
                "linger.ms": 5,
            }
        )
        _send(producer, topic, records)

    def consume(self, servers: str, topic: str, partitions: int, *, committed: bool = False) -> list[Record]:
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "not used",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "receive.message.max.bytes": 4 * LARGEST,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
            records, at_end = [], set()
            while len(at_end) < partitions:
                message = consumer.poll(SECONDS)
                assert message is not None, f"nothing came for {SECONDS} s"
                if message.error() is None:
                    records.append(_record(message))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
                else:
                    raise RuntimeError(message.error())
            return records
        finally:
            consumer.close()

    def transact(
        self, servers: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]
    ) -> None:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
        producer.init_transactions(SECONDS)
        for records, commit in transactions:
            producer.begin_transaction()
            _send(producer, topic, records)
            if commit:
                producer.commit_transaction(SECONDS)
            else:
                producer.abort_transaction(SECONDS)

    def member(self, servers: str, group: str, topic: str) -> Member:
        return Member.python(self.name, servers, group, topic)


def run_member(servers: str, group: str, topic: str, over: Callable[[], bool]) -> None:
    """The program of a member."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            "topic.metadata.refresh.interval.ms": 1000,
            "partition.assignment.strategy": "range",
        }
    )

    def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        print("assigned", *(partition.partition for partition in partitions), flush=True)

    consumer.subscribe([topic], on_assign=assigned)
    while not over():
        for message in consumer.consume(500, timeout=0.1):
            if message.error() is None:
                print("record", to_line(_record(message)), flush=False)
            else:
                print(message.error(), file=sys.stderr, flush=True)
        sys.stdout.flush()
    consumer.close()


def _send(producer: Producer, topic: str, records: Sequence[Record]) -> None:
    """And wait for the acknowledgements."""
    errors: list[Any] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error)

    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=record.partition,
            headers=list(record.headers),
            timestamp=record.timestamp,
            on_delivery=delivered,
        )
        producer.poll(0)
    assert producer.flush(SECONDS) == 0, f"not acknowledged within {SECONDS} s"
    if errors:
        raise RuntimeError(errors[0])


def _record(message: Message) -> Record:
    return Record(
        message.value(),
        message.key(),
        tuple(message.headers() or ()),
        message.timestamp()[1],
        message.partition(),
        message.offset(),
    )
