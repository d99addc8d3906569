"""aiokafka: a client of its own on asyncio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from clients.adapters.client import SECONDS, Member, Transaction, TransactionalClient
from clients.adapters.python_names import (
    MEMBER_SETTINGS,
    consumer_settings,
    from_client,
    producer_settings,
)
from clients.records import Record, to_line


class Aiokafka(TransactionalClient):
    name = "aiokafka"

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
        async def produce() -> None:
            settings = producer_settings(servers, acks, compression, idempotent)
            async with AIOKafkaProducer(**settings) as producer:
                await _send(producer, topic, records)

        asyncio.run(asyncio.wait_for(produce(), SECONDS))

    def consume(self, servers: str, topic: str, partitions: int, *, committed: bool = False) -> list[Record]:
        async def consume() -> list[Record]:
            async with AIOKafkaConsumer(**consumer_settings(servers, committed)) as consumer:
                assigned = [TopicPartition(topic, number) for number in range(partitions)]
                consumer.assign(assigned)
                ends = await consumer.end_offsets(assigned)
                records = []
                for partition in assigned:
                    while await consumer.position(partition) < ends[partition]:
                        for batch in (await consumer.getmany(timeout_ms=200)).values():
                            records += map(from_client, batch)
                return records

        return asyncio.run(asyncio.wait_for(consume(), SECONDS))

    def transact(
        self, servers: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]
    ) -> None:
        async def transact() -> None:
            async with AIOKafkaProducer(
                bootstrap_servers=servers, transactional_id=transactional_id
            ) as producer:
                for records, commit in transactions:
                    await producer.begin_transaction()
                    await _send(producer, topic, records)
                    await (producer.commit_transaction() if commit else producer.abort_transaction())

        asyncio.run(asyncio.wait_for(transact(), SECONDS))

    def member(self, servers: str, group: str, topic: str) -> Member:
        return Member.python(self.name, servers, group, topic)


def run_member(servers: str, group: str, topic: str, over: Callable[[], bool]) -> None:
    """The program of a member."""
    asyncio.run(_member(servers, group, topic, over))


async def _member(servers: str, group: str, topic: str, over: Callable[[], bool]) -> None:
    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        async def on_partitions_assigned(self, assigned: Any) -> None:
            print("assigned", *(partition.partition for partition in assigned), flush=True)

    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        partition_assignment_strategy=[RangePartitionAssignor],
        **MEMBER_SETTINGS,
    )
    await consumer.start()
    consumer.subscribe([topic], listener=Listener())
    while not over():
        for batch in (await consumer.getmany(timeout_ms=100)).values():
            for record in batch:
                print("record", to_line(from_client(record)), flush=False)
        sys.stdout.flush()
    await consumer.stop()


async def _send(producer: AIOKafkaProducer, topic: str, records: Sequence[Record]) -> None:
    futures = [
        await producer.send(
            topic,
            record.value,
            record.key,
            record.partition,
            record.timestamp,
            list(record.headers),
        )
        for record in records
    ]
    await asyncio.gather(*futures)
