"""Transactions of every client, read by every client."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid

import forking
import pytest
from clients.adapters import CLIENTS
from clients.adapters.client import SECONDS, Client, Transaction, TransactionalClient
from clients.records import Record
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from timing import until

PARTITIONS = 3

# Sends in a transaction, says so, and stays there until it is killed.
UNFINISHED = """
import sys
from confluent_kafka import Producer
servers, topic, transactional_id = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
producer.init_transactions(60)
producer.begin_transaction()
for number in range(10):
    producer.produce(topic, b"never committed", partition=number % 3)
assert producer.flush(60) == 0
print("written", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def transactional_id() -> str:
    return f"transactions-{uuid.uuid4().hex[:8]}"


def records(word: str) -> list[Record]:
    return [Record(f"{word} {number}".encode(), b"k", partition=number % PARTITIONS) for number in range(12)]


def words(read: list[Record]) -> set[str]:
    return {(record.value or b"").decode().split()[0] for record in read}


def test_committed_records_are_read_and_aborted_ones_are_not(
    client: Client, servers: str, topic: str, transactional_id: str
) -> None:
    if not isinstance(client, TransactionalClient):
        pytest.skip(f"{client.name} has no transactions")
    client.transact(
        servers,
        topic,
        transactional_id,
        [
            Transaction(records("first"), commit=True),
            Transaction(records("aborted"), commit=False),
            Transaction(records("second"), commit=True),
        ],
    )
    for reader in CLIENTS:
        if reader.missing() is None:
            read = reader.consume(servers, topic, PARTITIONS, committed=True)
            assert len(read) == 24 and words(read) == {"first", "second"}, reader.name
            read = reader.consume(servers, topic, PARTITIONS)
            assert len(read) == 36 and words(read) == {"first", "aborted", "second"}, reader.name


def test_nothing_behind_an_open_transaction_is_read_until_it_ends(
    servers: str, topic: str, transactional_id: str
) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(SECONDS) == 0
    plain = Producer({"bootstrap.servers": servers})
    plain.produce(topic, b"plain, behind it", partition=0)
    assert plain.flush(SECONDS) == 0

    consumer = reader(servers, "read_committed")
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(1) is None
    producer.commit_transaction(SECONDS)
    values = [message.value() for message in consumer.consume(2, timeout=SECONDS)]
    assert values == [b"open", b"plain, behind it"]
    consumer.close()


def test_a_producer_is_fenced_by_the_next_one_with_its_id(
    servers: str, topic: str, transactional_id: str
) -> None:
    settings = {"bootstrap.servers": servers, "transactional.id": transactional_id}
    old, new = Producer(settings), Producer(settings)
    old.init_transactions(SECONDS)
    old.begin_transaction()
    old.produce(topic, b"of the old one")
    assert old.flush(SECONDS) == 0
    new.init_transactions(SECONDS)
    with pytest.raises(KafkaException) as caught:
        old.commit_transaction(SECONDS)
    assert caught.value.args[0].fatal()
    new.begin_transaction()
    new.produce(topic, b"of the new one")
    new.commit_transaction(SECONDS)
    assert committed_values(servers, topic) == [b"of the new one"]


def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    servers: str, topic: str, transactional_id: str
) -> None:
    source = Producer({"bootstrap.servers": servers})
    for number in range(10):
        source.produce(topic, str(number), partition=0)
    assert source.flush(SECONDS) == 0
    consumer = reader(servers, "read_committed", group=transactional_id)
    consumer.subscribe([topic])
    assert len(consumer.consume(10, timeout=SECONDS)) == 10

    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
    producer.init_transactions(SECONDS)
    for commit, wanted in ((False, -1001), (True, 10)):
        producer.begin_transaction()
        producer.produce(topic, b"result", partition=1)
        positions = consumer.position([TopicPartition(topic, 0)])
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SECONDS)
        if commit:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
        (position,) = consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS)
        assert position.offset == wanted
    consumer.close()


def test_a_transaction_of_a_killed_producer_is_aborted_by_its_successor(
    servers: str, topic: str, transactional_id: str
) -> None:
    command = [sys.executable, "-c", UNFINISHED, servers, topic, transactional_id]
    process = forking.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    process.kill()
    process.communicate()

    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"committed", partition=0)
    producer.commit_transaction(SECONDS)
    assert committed_values(servers, topic) == [b"committed"]


def test_a_transaction_is_aborted_when_its_time_is_over(
    servers: str, topic: str, transactional_id: str
) -> None:
    settings = {
        "bootstrap.servers": servers,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 1500,
    }
    producer = Producer(settings)
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"too late", partition=0)
    assert producer.flush(SECONDS) == 0
    plain = Producer({"bootstrap.servers": servers})
    plain.produce(topic, b"in time", partition=0)
    assert plain.flush(SECONDS) == 0
    began = time.monotonic()
    until(lambda: committed_values(servers, topic) == [b"in time"], "aborted by the broker")
    assert time.monotonic() - began < SECONDS
    with pytest.raises(KafkaException):
        producer.commit_transaction(SECONDS)


def reader(servers: str, isolation: str, group: str = "not used") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def committed_values(servers: str, topic: str) -> list[bytes | None]:
    read = CLIENTS[0].consume(servers, topic, PARTITIONS, committed=True)
    return [record.value for record in read]
