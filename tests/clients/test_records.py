"""Every client reads the records of every other client."""

from __future__ import annotations

import pytest
from clients.adapters import CLIENTS
from clients.adapters.client import Client
from clients.conftest import MakeTopic, available
from clients.records import Record, in_order, written
from timing import until

PARTITIONS = 3
COUNT = 120


def plain(client: Client, count: int = COUNT) -> list[Record]:
    """Records with keys and headers, in turns of partitions."""
    stretch = count // PARTITIONS
    return [
        Record(
            f"value {number} from {client.name}".encode(),
            f"key {number}".encode(),
            (("writer", client.name.encode()),),
            1_700_000_000_000 + number,
            number // stretch,
        )
        for number in range(count)
    ]


def comparable(records: list[Record], client: Client) -> list[Record]:
    """In order; without timestamps if the client cannot write them."""
    if client.name == "kcat":
        records = [record._replace(timestamp=0) for record in records]
    return in_order(records)


@pytest.mark.parametrize(
    ("compression", "acks"),
    [("none", "1"), ("none", "all"), ("gzip", "1"), ("snappy", "all"), ("lz4", "1"), ("zstd", "all")],
)
def test_every_compression_with_every_acks(
    client: Client, servers: str, topic: str, compression: str, acks: str
) -> None:
    records = plain(client)
    client.produce(servers, topic, records, acks=acks, compression=compression)
    read = client.consume(servers, topic, PARTITIONS)
    assert comparable(read, client) == comparable(written(records), client)


def test_without_acknowledgements(client: Client, servers: str, topic: str) -> None:
    if client.name == "kcat":
        pytest.skip("kcat ends without waiting for what it has sent")
    records = plain(client)
    client.produce(servers, topic, records)  # the partitions are ready: records refused now would be lost
    client.produce(servers, topic, records, acks="0")
    until(lambda: len(client.consume(servers, topic, PARTITIONS)) >= 2 * len(records))
    read = client.consume(servers, topic, PARTITIONS)
    assert comparable(read, client) == comparable(written([*records, *records]), client)


def test_an_idempotent_producer(client: Client, servers: str, topic: str) -> None:
    records = plain(client)
    client.produce(servers, topic, records, idempotent=True)
    read = client.consume(servers, topic, PARTITIONS)
    assert comparable(read, client) == comparable(written(records), client)


def test_clients_read_each_others_records(client: Client, servers: str, topic: str) -> None:
    records = plain(client)
    client.produce(servers, topic, records, compression="lz4")
    for reader in CLIENTS:
        if reader.missing() is None:
            read = reader.consume(servers, topic, PARTITIONS)
            assert comparable(read, client) == comparable(written(records), client), reader.name


def test_nothing_is_something_else_than_empty(client: Client, servers: str, topic: str) -> None:
    if client.name == "kcat":
        pytest.skip("kcat reads lines: it cannot tell the two apart")
    records = [
        Record(None, b"deleted"),
        Record(b"", b""),
        Record(b"without a key", None),
        Record(b"headers", b"k", (("empty", b""), ("twice", b"1"), ("twice", b"2"))),
    ]
    if client.name not in ("kafka-python", "aiokafka"):  # which cannot write it
        records.append(Record(b"", b"", (("none", None),)))
    client.produce(servers, topic, records)
    assert in_order(client.consume(servers, topic, PARTITIONS)) == written(records)


def test_large_records(client: Client, servers: str, new_topic: MakeTopic) -> None:
    large = new_topic(1, max_message_bytes=str(12 << 20))
    records = [Record(bytes([65 + number]) * (9 << 20), b"large") for number in range(3)]
    client.produce(servers, large, records)
    read = client.consume(servers, large, 1)
    assert comparable(read, client) == comparable(written(records), client)


def test_records_beyond_the_topics_limit_are_refused(client: Client, servers: str, topic: str) -> None:
    with pytest.raises(Exception, match=r"(?i)large|MSG_SIZE|10"):
        client.produce(servers, topic, [Record(b"x" * (2 << 20), b"larger than max.message.bytes")])
    client.produce(servers, topic, [Record(b"small", b"k")])
    read = client.consume(servers, topic, PARTITIONS)
    assert [record.value for record in read] == [b"small"]


def test_clients_are_there() -> None:
    """Skipped clients have a reason; the Python ones come with the tests' own requirements."""
    for client in CLIENTS:
        if client.name in ("kafka-python", "confluent-kafka", "aiokafka"):
            assert available(client) is client
