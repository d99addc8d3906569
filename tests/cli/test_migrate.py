"""dafka migrate: everything arrives once, whatever happens on the way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import forking
import pytest
from broker.users import add
from cli.tools import DAFKA, environment
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from ports import free_port
from timing import until

from dafka import Broker
from dafka.migrating import servers
from dafka.migrating.errors import MigrationError

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 100.0
LONG = "DAFKA_TEST_APACHE_KAFKA"


Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


@pytest.fixture
def source() -> Iterator[str]:
    with Broker(listen="127.0.0.1:0") as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def destination() -> Iterator[str]:
    with Broker(listen="127.0.0.1:0") as broker:
        yield broker.bootstrap_servers


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return forking.Popen(
        [*DAFKA, "migrate", *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def migrate(folder: Path, *arguments: str, status: int = 0) -> str:
    """What it prints, on both channels."""
    process = start(folder, *arguments)
    out, error = process.communicate(timeout=2 * SECONDS)
    assert process.returncode == status, out + error
    return out + error


def create(servers: str, topic: str, partitions: int, **configs: str) -> None:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": servers})
    (created,) = admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values()
    created.result(SECONDS)


def fill(servers: str, topic: str, partitions: int, count: int, compression: str = "none") -> None:
    producer = Producer({"bootstrap.servers": servers, "compression.type": compression, "linger.ms": 5})
    for number in range(count):
        producer.produce(
            topic,
            None if number % 50 == 49 else b"value %d" % number,
            b"key %d" % (number % 7) if number % 2 else None,
            partition=number % partitions,
            headers=[("number", b"%d" % number)] if number % 3 == 0 else [],
            timestamp=1_600_000_000_000 + 1000 * number,
        )
    assert producer.flush(SECONDS) == 0


def rows(servers: str, topic: str, partitions: int) -> list[Row]:
    """All committed records, in the order of partitions and offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "not used",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    found: list[Row] = []
    for number in range(partitions):
        partition = TopicPartition(topic, number, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=SECONDS)
        consumer.assign([partition])
        deadline = time.monotonic() + SECONDS
        while (position := consumer.position([partition])[0].offset) < end and end:
            assert time.monotonic() < deadline, f"{topic}-{number} stays at {position} of {end}"
            for message in consumer.consume(1000, timeout=0.2):
                assert message.error() is None
                headers = tuple(message.headers() or ())
                found.append(
                    (
                        *(number, message.offset(), message.key(), message.value()),
                        *(headers, message.timestamp()[1]),
                    )
                )
    consumer.close()
    return found


def end_offset(servers: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "not used"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS)[1])
    finally:
        consumer.close()


def test_records_arrive_with_partitions_offsets_keys_headers_and_timestamps(
    source: str, destination: str, tmp_path: Path
) -> None:
    create(source, "orders", 3, delete_retention_ms="123456", max_message_bytes="2000000")
    for compression in ("none", "gzip", "lz4", "zstd", "snappy"):
        fill(source, "orders", 3, 300, compression)
    create(source, "empty", 2)
    before = rows(source, "orders", 3)

    printed = migrate(tmp_path, source, destination)
    assert "verified orders: 1,500 records" in printed
    assert rows(destination, "orders", 3) == before
    assert (
        len(AdminClient({"bootstrap.servers": destination}).list_topics("empty").topics["empty"].partitions)
        == 2
    )
    admin = AdminClient({"bootstrap.servers": destination})
    (configs,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "orders")]).values()
    settings = configs.result(SECONDS)
    assert settings["delete.retention.ms"].value == "123456"
    assert settings["max.message.bytes"].value == "2000000"


def test_into_a_folder_and_out_of_it_again(source: str, destination: str, tmp_path: Path) -> None:
    create(source, "orders", 2)
    fill(source, "orders", 2, 200)
    before = rows(source, "orders", 2)
    migrate(tmp_path, source, "data")
    migrate(tmp_path, "data", destination)
    assert rows(destination, "orders", 2) == before


def test_only_topics_that_are_named(source: str, destination: str, tmp_path: Path) -> None:
    for topic in ("orders-a", "orders-b", "bills"):
        create(source, topic, 1)
    migrate(tmp_path, source, destination, "--topic", "orders-*")
    topics = AdminClient({"bootstrap.servers": destination}).list_topics(timeout=SECONDS).topics
    assert set(topics) == {"orders-a", "orders-b"}


def test_aborted_records_stay_and_offsets_of_groups_are_translated(
    source: str, destination: str, tmp_path: Path
) -> None:
    create(source, "payments", 1)
    producer = Producer({"bootstrap.servers": source, "transactional.id": "payments"})
    producer.init_transactions(SECONDS)
    for transaction in range(4):  # each takes six offsets: five records and the marker
        producer.begin_transaction()
        for number in range(5):
            producer.produce("payments", b"%d %d" % (transaction, number))
        assert producer.flush(SECONDS) == 0
        if transaction == 1:
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    for group, offset in (("early", 3), ("in the aborted one", 8), ("late", 14), ("at the end", 24)):
        consumer = Consumer({"bootstrap.servers": source, "group.id": group})
        consumer.commit(offsets=[TopicPartition("payments", 0, offset)], asynchronous=False)
        consumer.close()

    migrate(tmp_path, source, destination, "--group", "*")
    expected = [b"%d %d" % (transaction, number) for transaction in (0, 2, 3) for number in range(5)]
    assert [row[3] for row in rows(destination, "payments", 1)] == expected
    for group, offset in (("early", 3), ("in the aborted one", 5), ("late", 7), ("at the end", 15)):
        consumer = Consumer({"bootstrap.servers": destination, "group.id": group})
        (position,) = consumer.committed([TopicPartition("payments", 0)], timeout=SECONDS)
        consumer.close()
        assert position.offset == offset, group


def test_killed_again_and_again_every_record_arrives_once(
    source: str, destination: str, tmp_path: Path
) -> None:
    create(source, "orders", 2)
    for _ in range(10):
        fill(source, "orders", 2, 1000)
    before = rows(source, "orders", 2)
    create(destination, "orders", 2)
    for kills in range(1, 4):
        process = start(tmp_path, source, destination)
        reached = end_offset(destination, "orders")
        until(lambda: end_offset(destination, "orders") > reached or process.poll() is not None, "progress")  # noqa: B023
        process.kill()
        process.communicate()
        assert kills
    printed = migrate(tmp_path, source, destination)
    assert "were copied before" in printed
    assert "verified orders: 10,000 records" in printed
    assert rows(destination, "orders", 2) == before


def test_run_again_it_copies_what_is_new(source: str, destination: str, tmp_path: Path) -> None:
    create(source, "orders", 1)
    fill(source, "orders", 1, 10)
    migrate(tmp_path, source, destination)
    fill(source, "orders", 1, 5)
    printed = migrate(tmp_path, source, destination)
    assert "10 records were copied before" in printed
    assert rows(destination, "orders", 1) == rows(source, "orders", 1)


@pytest.mark.parametrize("by", ["a line of input", "SIGUSR1"])
def test_it_follows_until_it_is_told_to_switch(
    source: str, destination: str, tmp_path: Path, by: str
) -> None:
    create(source, "orders", 1)
    fill(source, "orders", 1, 10)
    create(destination, "orders", 1)
    process = start(tmp_path, source, destination, "--follow")
    until(lambda: end_offset(destination, "orders") == 10, "the first ten", by=process)
    fill(source, "orders", 1, 20)
    until(lambda: end_offset(destination, "orders") == 30, "what came later", by=process)
    if by == "SIGUSR1":
        process.send_signal(signal.SIGUSR1)
        out, error = process.communicate(timeout=SECONDS)
    else:
        out, error = process.communicate("\n", timeout=SECONDS)
    assert process.returncode == 0, error
    assert "verified orders: 30 records" in out
    assert rows(destination, "orders", 1) == rows(source, "orders", 1)


@pytest.mark.parametrize("side", ["source", "destination"])
def test_it_goes_on_when_a_broker_was_away(tmp_path: Path, side: str) -> None:
    with (
        Broker(tmp_path / "source", listen=f"127.0.0.1:{free_port()}") as source,
        Broker(tmp_path / "destination", listen=f"127.0.0.1:{free_port()}") as destination,
    ):
        ours, theirs = source.bootstrap_servers, destination.bootstrap_servers
        create(ours, "orders", 1)
        fill(ours, "orders", 1, 100)
        create(theirs, "orders", 1)
        process = start(tmp_path, ours, theirs, "--follow", "--verbose")
        until(lambda: end_offset(theirs, "orders") == 100, "the first hundred", by=process)
        away = source if side == "source" else destination
        away.stop()
        if side == "destination":
            fill(ours, "orders", 1, 50)
        away.start()
        if side == "source":
            fill(ours, "orders", 1, 50)
        until(lambda: end_offset(theirs, "orders") == 150, "what came later", by=process)
        out, error = process.communicate("\n", timeout=SECONDS)
        assert process.returncode == 0, error
        assert "verified orders: 150 records" in out
        assert rows(theirs, "orders", 1) == rows(ours, "orders", 1)


def test_interrupted_it_says_how_to_go_on(source: str, destination: str, tmp_path: Path) -> None:
    create(source, "orders", 1)
    fill(source, "orders", 1, 10)
    create(destination, "orders", 1)
    process = start(tmp_path, source, destination, "--follow")
    until(lambda: end_offset(destination, "orders") == 10, "the first ten", by=process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "the same command goes on, with migration-" in error
    assert "verified orders: 10 records" in migrate(tmp_path, source, destination)


def test_interrupted_before_a_broker_answers_it_ends_at_once(source: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS)
        process = start(tmp_path, source, f"127.0.0.1:{silent.getsockname()[1]}")
        silent.accept()[0].close()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    said = [
        line for line in error.splitlines() if not line.startswith("no answer from ")
    ]  # after two seconds
    assert len(said) == 1 and said[0].startswith("interrupted")


def test_records_of_others_in_the_destination_are_an_error(
    source: str, destination: str, tmp_path: Path
) -> None:
    create(source, "orders", 1)
    fill(source, "orders", 1, 10)
    create(destination, "orders", 1)
    fill(destination, "orders", 1, 1)
    printed = migrate(tmp_path, source, destination, status=1)
    assert "orders-0 has records in" in printed and "Traceback" not in printed


def test_writing_to_the_destination_meanwhile_is_noticed(
    source: str, destination: str, tmp_path: Path
) -> None:
    create(source, "orders", 1)
    fill(source, "orders", 1, 10)
    migrate(tmp_path, source, destination)
    fill(destination, "orders", 1, 1)
    fill(source, "orders", 1, 10)
    assert "something else writes to it" in migrate(tmp_path, source, destination, status=1)


def test_a_checkpoint_of_another_migration_is_refused(source: str, destination: str, tmp_path: Path) -> None:
    create(source, "orders", 1)
    migrate(tmp_path, source, "one", "--checkpoint", "progress")
    printed = migrate(tmp_path, source, destination, "--checkpoint", "progress", status=1)
    assert "belongs to a migration between other clusters" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "data"], "neither HOST:PORT nor a folder"),
        (["{source}", "data", "--topic", "no-such"], "has no topic no-such"),
        (["{source}", "data", "--group", "no-such"], "has no group no-such"),
        (["{source}", "{source}"], "the same cluster"),
        (["{source}", "data", "--checkpoint", "/"], "in use, or cannot be written"),
    ],
)
def test_impossible_migrations_are_one_line(
    source: str, tmp_path: Path, arguments: list[str], words: str
) -> None:
    printed = migrate(tmp_path, *(each.format(source=source) for each in arguments), status=1)
    (line,) = printed.splitlines()
    assert words in line


def test_a_broker_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "CONNECT_SECONDS", 0.3)
    with pytest.raises(MigrationError, match=r"no broker answers within 0\.3 s at 127\.0\.0\.1:1"):
        servers.opened("127.0.0.1:1").__enter__()


@pytest.mark.skipif(not os.environ.get(LONG), reason=f"starts Apache Kafka; set {LONG}=1")
def test_from_apache_kafka_and_back(tmp_path: Path) -> None:
    def apache() -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHON": sys.executable}
        command = [str(ROOT / "scripts" / "apache_kafka"), "run"]
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    nodes = [apache(), apache()]
    try:
        addresses = [node.stdout.readline().strip() if node.stdout else "" for node in nodes]
        if not all(addresses):
            pytest.skip("there is no Apache Kafka here")
        create(addresses[0], "orders", 3)
        fill(addresses[0], "orders", 3, 3000, "lz4")
        before = rows(addresses[0], "orders", 3)
        migrate(tmp_path, addresses[0], "data")
        migrate(tmp_path, "data", addresses[1])
        assert rows(addresses[1], "orders", 3) == before
    finally:
        for node in nodes:
            node.communicate(timeout=SECONDS)


def test_a_side_with_accounts_is_reached_with_its_properties(tmp_path, monkeypatch):
    monkeypatch.setattr("dafka.broker.running.at", lambda _: None)  # by TCP, as from another process
    monkeypatch.setattr("dafka.broker.running.brokers", lambda: [])
    monkeypatch.setattr(servers, "CONNECT_SECONDS", SECONDS)
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0") as broker:
        add(broker, "alice", "right")
        address = broker.listeners["SASL_PLAINTEXT"]
        config = tmp_path / "client.properties"
        form = 'sasl.jaas.config=ScramLoginModule required username="alice" password="{}";'
        login = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        config.write_text(login + form.format("right"))
        with servers.opened(address, config=str(config)) as side:
            assert side.cluster_id
        config.write_text(login + form.format("wrong"))
        with (  # at once
            pytest.raises(MigrationError, match=r"^SaslAuthenticationFailed"),
            servers.opened(address, config=str(config)),
        ):
            pass
        monkeypatch.setattr(servers, "CONNECT_SECONDS", 0.5)
        with pytest.raises(MigrationError), servers.opened(address):
            pass
