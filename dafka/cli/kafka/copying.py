"""Copying a topic within a cluster."""

from __future__ import annotations

from collections.abc import Mapping

import click

from dafka.broker.looking.rows import NewRecord
from dafka.cli.kafka.at_cluster import Cluster
from dafka.cli.kafka.read_topics import ReadTopics

TopicPartition = tuple[str, int]

_POLL_MS = 1000


def copy_topic(
    cluster: Cluster,
    source: ReadTopics,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    destination: str,
) -> int:
    """Copy the committed records between these offsets to the same partitions of ``destination``.

    Returns how many. Raises click.ClickException for the first record that was refused, and if the source is
    deleted meanwhile; KafkaError if the broker leaves.
    """
    from kafka import TopicPartition as Key

    from compat.kafka import KafkaConsumer
    from dafka.cli.kafka import any_records

    left = {Key(*key) for key, offset in starts.items() if offset < ends[key]}
    consumer = KafkaConsumer(
        **cluster.configs, enable_auto_commit=False, isolation_level="read_committed", max_poll_records=5000
    )
    producer = any_records.producer(**cluster.configs, linger_ms=5, max_request_size=2**27)
    refused: list[BaseException] = []
    copied = 0
    try:
        consumer.assign(left)
        for key in left:
            consumer.seek(key, starts[key])
        while left:
            found = consumer.poll(_POLL_MS)
            if not found:
                source.check()
            for key, records in found.items():
                for record in records:
                    if record.offset < ends[key]:
                        same = NewRecord(
                            record.key, record.value, record.headers, record.partition, record.timestamp
                        )
                        any_records.send(producer, destination, same).add_errback(refused.append)
                        copied += 1
            if refused:
                break
            done = {key for key in left if (consumer.position(key) or 0) >= ends[key]}
            consumer.pause(*done)
            left -= done
        producer.flush()
    finally:
        consumer.close()
        producer.close()
    if refused:
        raise click.ClickException(f"a record was refused: {refused[0]}")
    return copied
