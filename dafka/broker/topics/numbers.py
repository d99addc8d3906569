"""The numbers of the partitions in a broker's log, for looking into a folder whose broker does not run."""

from __future__ import annotations

from uuid import UUID

from dafka.broker.topics.table import leader_addresses
from dafka.broker.topics.topic import NATIVE_ROWS, NATIVES, TOPIC_ROWS, TOPICS
from dafka.log import Log


def partition_numbers(log: Log) -> dict[tuple[bytes, bytes], int]:
    """{(topic, address): number}; partitions without a topic, as all in a store's log, are left out.

    Raises DamagedError.
    """
    found: dict[tuple[bytes, bytes], int] = {}
    names: dict[str, bytes] = {}
    for name, row in log.table(TOPICS, TOPIC_ROWS).items():
        topic, topic_id = name.encode(), UUID(row["id"])
        names[topic_id.hex] = topic
        for first, count in row["led"]:
            numbers = range(first, first + count)
            addresses = leader_addresses(topic_id, numbers)
            found |= {(topic, address): number for address, number in zip(addresses, numbers, strict=True)}
    for key, (address, _) in log.table(NATIVES, NATIVE_ROWS).items():
        topic_id_hex, _, number = key.partition("/")
        if topic_id_hex in names:
            found[names[topic_id_hex], address.encode("latin-1")] = int(number)
    return found
