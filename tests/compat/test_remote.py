"""The clients with a broker in another process: the same programs, over TCP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import forking
import kafka
import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer
from ports import free_port
from timing import until

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.errors import KafkaConfigurationError, KafkaError, KafkaTimeoutError
from compat.kafka.structs import OffsetAndMetadata
from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.remote.remote import Remote

SERVER = """
import sys
from dafka import Broker
with Broker(sys.argv[1], listen=sys.argv[2], default_partitions=2) as broker:
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


class Server:
    """A broker in a process of its own, which ends at the end of its input."""

    def __init__(self, folder: str, listen: str = "") -> None:
        self._folder = folder
        listen = listen or f"127.0.0.1:{free_port()}"  # which nobody takes while it is away
        path = f"import sys; sys.path[:0] = {sys.path!r}\n"
        self._process = forking.Popen(
            [sys.executable, "-W", "ignore", "-c", path + SERVER, folder, listen],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.bootstrap_servers = self._process.stdout.readline().strip()
        assert self.bootstrap_servers

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)  # until all its threads have stopped

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=200)

    def restarted(self) -> Server:
        """The same broker, at the same address, after ``kill``."""
        return Server(self._folder, self.bootstrap_servers)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.communicate(timeout=200)


@pytest.fixture
def server(tmp_path) -> Iterator[Server]:
    running = Server(str(tmp_path / "data"))
    yield running
    running.stop()


@pytest.fixture
def servers(server) -> str:
    return server.bootstrap_servers


@pytest.fixture
def producer(servers) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=servers) as made:
        yield made


@pytest.fixture
def new_consumer(servers) -> Iterator[Callable[..., KafkaConsumer]]:
    made: list[KafkaConsumer] = []

    def make(*topics: str, **config: Any) -> KafkaConsumer:
        config = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 100_000, **config}
        made.append(KafkaConsumer(*topics, bootstrap_servers=servers, **config))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


def take(consumer: Any, count: int) -> list[bytes]:
    return [next(consumer).value for _ in range(count)]


def test_records_there_and_back(producer, new_consumer):
    assert isinstance(producer._client.broker, Remote)
    futures = [producer.send("t", b"%d" % number, b"key", [("h", b"x")]) for number in range(5000)]
    offsets = [future.get(100).offset for future in futures]
    assert offsets == list(range(5000))  # one key, one partition, and each knows its own offset
    consumer = new_consumer("t")
    records = [next(consumer) for _ in range(5000)]
    assert [record.value for record in records] == [b"%d" % number for number in range(5000)]
    assert (records[0].key, records[0].headers) == (b"key", [("h", b"x")])


def test_members_of_a_group_whose_assignment_the_broker_computes(producer, new_consumer):
    for number in range(20):
        producer.send("t", b"%d" % number, partition=number % 2)
    producer.flush(100)
    options = {"group_id": "g", "group_protocol": "consumer", "enable_auto_commit": False}
    one = new_consumer("t", **options)
    often = ConfigChange("consumer.heartbeat.interval.ms", ConfigOperation.SET, "100")
    one._client.call(one._client.broker.alter_configs, {Resource(ResourceType.GROUP, "g"): [often]})
    assert sorted(map(int, take(one, 20))) == list(range(20))
    one.commit()
    other = new_consumer("t", **options)

    def shared() -> bool:
        one.poll(50)
        other.poll(50)
        return len(one.assignment()) == len(other.assignment()) == 1

    until(shared, 100)
    assert one.assignment() | other.assignment() == {TopicPartition("t", 0), TopicPartition("t", 1)}
    assert all(other.committed(partition) == 10 for partition in other.assignment())
    other.close()
    until(lambda: one.poll(50) is not None and len(one.assignment()) == 2, 100)


def test_positions_offsets_and_times(producer, new_consumer):
    first = producer.send("t", b"a", partition=0, timestamp_ms=1000).get(100)
    producer.send("t", b"b", partition=0, timestamp_ms=2000).get(100)
    partition = first.topic_partition
    consumer = new_consumer()
    consumer.assign([partition])
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 2}
    assert consumer.offsets_for_times({partition: 1500})[partition].offset == 1
    consumer.seek(partition, 1)
    assert (take(consumer, 1), consumer.position(partition)) == ([b"b"], 2)
    assert consumer.partitions_for_topic("t") == {0, 1}


def test_a_group_goes_on_where_it_was(producer, new_consumer):
    for number in range(10):
        producer.send("t", b"%d" % number, partition=0)
    producer.flush(100)
    first = new_consumer("t", group_id="g", enable_auto_commit=False)
    take(first, 4)
    first.commit()
    partition = TopicPartition("t", 0)
    assert first.committed(partition) == 4
    first.close()
    second = new_consumer("t", group_id="g")
    assert take(second, 6) == [b"%d" % number for number in range(4, 10)]
    second.commit({partition: OffsetAndMetadata(9, "note", -1)})
    assert second.committed(partition, metadata=True).metadata == "note"


def test_transactions(servers, new_consumer):
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="tx")
    producer.init_transactions()
    for values, commit in (([b"a", b"b"], True), ([b"c", b"d"], False), ([b"e"], True)):
        producer.begin_transaction()
        for value in values:
            producer.send("t", value, partition=0)
        producer.flush(100)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    committed = new_consumer("t", isolation_level="read_committed")
    assert take(committed, 3) == [b"a", b"b", b"e"]
    everything = new_consumer("t")
    assert take(everything, 5) == [b"a", b"b", b"c", b"d", b"e"]
    producer.close()


def test_administration(servers):
    with_admin = KafkaAdminClient(bootstrap_servers=servers)
    with_admin.create_topics({"made": {"num_partitions": 3}})
    assert "made" in with_admin.list_topics()
    with_admin.delete_topics(["made"])
    assert "made" not in with_admin.list_topics()
    with_admin.close()


def test_compressed_and_large_records(servers, new_consumer):
    with KafkaProducer(bootstrap_servers=servers, compression_type="gzip") as producer:
        large = os.urandom(900_000)
        for _ in range(5):
            producer.send("t", large, partition=1)
        producer.flush(100)
    consumer = new_consumer("t")
    assert take(consumer, 5) == [large] * 5


MEMBER = """
import sys, threading
from compat.kafka import KafkaConsumer
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
with KafkaConsumer(sys.argv[2], bootstrap_servers=sys.argv[1], group_id=sys.argv[3]) as consumer:
    before = None
    while not over.is_set():
        consumer.poll(100)
        now = sorted(partition.partition for partition in consumer.assignment())
        if now != before:
            print(*now, flush=True)
            before = now
"""


class OtherProcess:
    """A member of a group in a process of its own; ``partitions`` is what it reads."""

    def __init__(self, servers: str, topic: str, group: str) -> None:
        path = f"import sys; sys.path[:0] = {sys.path!r}\n"
        self._process = forking.Popen(
            [sys.executable, "-W", "ignore", "-c", path + MEMBER, servers, topic, group],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.partitions: set[int] = set()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.partitions = set(map(int, line.split()))

    def close(self) -> None:
        self._process.communicate(timeout=200)


def test_members_of_one_group_here_elsewhere_and_with_other_clients():
    """In the broker's process, in another one with this facade, with kafka-python, and with librdkafka."""
    with Broker(listen="127.0.0.1:0", default_partitions=8) as broker:
        servers = broker.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers) as producer:
            producer.send("t", b"first").get(100)
        here = KafkaConsumer("t", bootstrap_servers=servers, group_id="g")
        theirs = kafka.KafkaConsumer("t", bootstrap_servers=servers, group_id="g")
        librdkafka = LibrdkafkaConsumer({"bootstrap.servers": servers, "group.id": "g"})
        librdkafka.subscribe(["t"])
        other = OtherProcess(servers, "t", "g")

        def shares() -> list[set[int]]:
            here.poll(50)
            theirs.poll(50)
            librdkafka.poll(0.05)
            return [
                {one.partition for one in here.assignment()},
                {one.partition for one in theirs.assignment()},
                {one.partition for one in librdkafka.assignment()},
                other.partitions,
            ]

        try:
            deadline = time.monotonic() + 100
            while not _all_of(shares(), 8):
                assert time.monotonic() < deadline, shares()
        finally:
            librdkafka.close()
            theirs.close()
            other.close()
            here.close()


def _all_of(shares: list[set[int]], count: int) -> bool:
    """Whether everybody has some and all have each once."""
    return all(shares) and sorted(number for share in shares for number in share) == list(range(count))


def test_nothing_acknowledged_is_lost_when_the_broker_is_killed_and_comes_back(server, tmp_path):
    servers = server.bootstrap_servers
    acknowledged: list[bytes] = []
    seen: set[bytes] = set()
    written, answered = threading.Event(), threading.Event()

    def produce() -> None:
        number = 0
        while not written.is_set():
            value = b"%d" % number
            producer.send("t", value).add_callback(lambda metadata, value=value: acknowledged.append(value))
            number += 1
            time.sleep(0.002)

    def consume() -> None:
        while not answered.is_set() or not seen.issuperset(acknowledged):
            for records in consumer.poll(200).values():
                seen.update(record.value for record in records)

    producer = KafkaProducer(bootstrap_servers=servers, retries=1000)
    consumer = KafkaConsumer("t", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
    writing, reading = threading.Thread(target=produce), threading.Thread(target=consume, daemon=True)
    writing.start()
    reading.start()
    _until(lambda: len(seen) > 50)
    server.kill()
    again = server.restarted()
    count = len(acknowledged)
    _until(lambda: len(acknowledged) > count + 50)
    written.set()
    writing.join(100)
    producer.flush(100)
    answered.set()
    reading.join(100)
    assert not reading.is_alive()
    assert seen.issuperset(acknowledged)
    consumer.close()
    producer.close()
    again.stop()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_broker_that_hangs_is_a_timeout_and_no_hang(server):
    producer = KafkaProducer(
        bootstrap_servers=server.bootstrap_servers,
        request_timeout_ms=500,
        delivery_timeout_ms=1000,
        linger_ms=0,
        max_block_ms=1000,
    )

    def sends(value: bytes) -> bool:  # again, if a busy machine has not answered in half a second
        with suppress(KafkaError):
            return producer.send("t", value).get(100) is not None
        return False

    _until(lambda: sends(b"before"))
    server.pause()
    try:
        future = producer.send("t", b"during")
        started = time.monotonic()
        with pytest.raises(Exception, match=r"(?i)timed?.?out|expired|not answered"):
            future.get(20)
        with pytest.raises(KafkaTimeoutError):
            producer.send("unknown", b"x")
        assert time.monotonic() - started < 29
    finally:
        server.resume()
    _until(lambda: sends(b"after"))
    producer.close(100)


def test_a_poll_ends_in_time_with_a_broker_that_is_gone(server, new_consumer):
    consumer = new_consumer("t", group_id="g", enable_auto_commit=False)
    consumer.poll(1000)
    server.kill()
    for _ in range(5):
        started = time.monotonic()
        assert consumer.poll(200) == {}
        assert time.monotonic() - started < 29


def test_an_address_without_a_broker_and_other_protocols_than_plaintext_are_errors():
    for milliseconds in (300, 3000, 30_000):  # a busy machine may not have tried in the shortest
        with pytest.raises(KafkaTimeoutError, match=r"over TCP: 127\.0\.0\.1:1: ") as raised:
            KafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=milliseconds)
        if "Connection refused" in str(raised.value):
            break
    assert "over TCP: 127.0.0.1:1: Connection refused" in str(raised.value)
    with pytest.raises(KafkaConfigurationError, match="security_protocol='SASL_SSL'"):
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", security_protocol="SASL_SSL")


def test_a_broker_that_has_gone_is_a_few_lines_in_the_log(server, producer, new_consumer, caplog):
    producer.send("t", b"one").get(100)
    consumer, of_a_group = new_consumer("t"), new_consumer("t", group_id="g")
    assert (take(consumer, 1), take(of_a_group, 1)) == ([b"one"], [b"one"])
    caplog.clear()
    server.kill()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        producer.send("t", b"later")
        consumer.poll(100)
        of_a_group.poll(100)
    port = server.bootstrap_servers.rpartition(":")[2]  # others may look for brokers of their own
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    again = server.restarted()
    for client in (consumer, of_a_group, producer):
        client.close()
    again.stop()
    assert sum("no metadata" in message for message in said) <= 3  # one of each client
    away = [message for message in said if "cannot be reached" in message and port in message]
    assert len(away) <= 2  # the address, and its broker
