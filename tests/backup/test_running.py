"""Backups of a broker that is written to, killed, stopped and started: what they restore to.

``DAFKA_TEST_BACKUPS`` sets how many are taken of a broker that is written to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import forking
import pytest
from cli.tools import DAFKA, environment
from kafka.structs import OffsetAndMetadata
from log import crash_broker
from log.crash import start
from log.expecting import expect_undamaged
from log.killed_broker import __file__ as PROGRAM
from timing import SECONDS, until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.admin import KafkaAdminClient, NewTopic
from dafka import Broker
from dafka.backup import creating
from dafka.backup.creating import create
from dafka.backup.repository import Repository
from dafka.backup.restoring import restore
from dafka.backup.source import Source, ValueFile

BACKUPS = int(os.environ.get("DAFKA_TEST_BACKUPS", "2"))


class Said:
    """What a program says, a line of JSON at a time; the newest one."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        self.newest: dict[str, Any] = {}
        self.lines = 0
        self._program, self._output = program, program.stdout
        self._thread = Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._output is not None
        for line in self._output:
            if line.endswith(b"\n"):
                self.newest = json.loads(line)
                self.lines += 1

    def end(self) -> None:
        self._thread.join(SECONDS)

    def after(self, lines: int) -> dict[str, Any]:
        """What was said when so many more lines have come."""
        wanted = self.lines + lines
        until(lambda: self.lines >= wanted, "the program says nothing", by=self._program)
        return self.newest


@pytest.mark.timeout(300 + 30 * BACKUPS)
@pytest.mark.parametrize("durability", ["process", "power"])
def test_everything_acknowledged_before_is_in_a_backup_of_a_broker_that_is_written_to(
    tmp_path: Path, durability: str
) -> None:
    """Records, transactions, committed offsets, retention, compaction and deleted topics, one by one."""
    data, folder = tmp_path / "data", tmp_path / "backups"
    program = start(data, 1, durability, PROGRAM)
    said = Said(program)
    taken = []
    try:
        for number in range(BACKUPS):
            before = said.after(5 + 10 * number)
            name = create(str(data), str(folder)).name
            taken.append((name, before, said.after(1)))
    finally:
        program.kill()
        program.wait()
        said.end()
    killed = create(str(data), str(folder)).name  # of what a killed broker has left
    taken.append((killed, said.newest, said.newest))
    for name, before, after in taken:
        restored = tmp_path / name
        restore(str(folder), str(restored), name)
        crash_broker.check(restored, {**before, "deleted": after["deleted"]})
    crash_broker.check(data, said.newest)  # the original goes on as if nothing had been


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "data") as running:
        yield running


def rows(address: str, topic: str, **options: Any) -> list[tuple[Any, ...]]:
    """Everything about each record of partition 0 that a reader sees, up to the end it may read to."""
    partition = TopicPartition(topic, 0)
    with closing(KafkaConsumer(bootstrap_servers=address, **options)) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        found: list[tuple[Any, ...]] = []
        deadline = time.monotonic() + SECONDS
        while consumer.position(partition) < end:
            assert time.monotonic() < deadline
            for record in consumer.poll(100).get(partition, []):
                found.append(
                    (record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
                )
        return found


def test_records_settings_and_groups_are_the_same_after_a_restore(tmp_path: Path, broker: Broker) -> None:
    address = broker.bootstrap_servers
    KafkaAdminClient(bootstrap_servers=address).create_topics(
        [NewTopic("orders", 1, 1, topic_configs={"retention.bytes": "123456789"})]
    )
    with KafkaProducer(bootstrap_servers=address) as producer:
        for number in range(500):
            value = os.urandom(100 if number % 50 else 200_000)
            headers = [("number", b"%d" % number)]
            producer.send(
                "orders", value, b"key %d" % (number % 9), headers=headers, timestamp_ms=10**12 + number
            )
    with closing(KafkaConsumer(bootstrap_servers=address, group_id="billing")) as consumer:
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(321, "as far as this", -1)})
    made = create(broker.path, str(tmp_path / "backups"))
    assert made.values and not made.damaged  # some of it was in files

    restored = tmp_path / "restored"
    restore(str(tmp_path / "backups"), str(restored))
    with Broker(restored) as other:
        there = other.bootstrap_servers
        assert rows(there, "orders") == rows(address, "orders")
        admin = KafkaAdminClient(bootstrap_servers=there)
        with closing(KafkaConsumer(bootstrap_servers=there, group_id="billing")) as consumer:
            committed = consumer.committed(TopicPartition("orders", 0), metadata=True)
        assert (committed.offset, committed.metadata) == (321, "as far as this")
        before = KafkaAdminClient(bootstrap_servers=address)
        assert admin.describe_cluster()["cluster_id"] == before.describe_cluster()["cluster_id"]
        with KafkaProducer(bootstrap_servers=there) as producer:
            assert producer.send("orders", b"next").get(SECONDS).offset == 500
    expect_undamaged(restored)


def test_a_transaction_over_two_topics_is_in_both_of_a_backup_or_in_none(
    tmp_path: Path, broker: Broker
) -> None:
    address, topics, over = broker.bootstrap_servers, ["left", "right"], Event()
    KafkaAdminClient(bootstrap_servers=address).create_topics([NewTopic(topic, 1, 1) for topic in topics])
    numbers: list[int] = []

    def write() -> None:
        with KafkaProducer(bootstrap_servers=address, transactional_id="both") as producer:
            producer.init_transactions()
            while not over.is_set():
                producer.begin_transaction()
                for topic in topics:
                    producer.send(topic, b"%d" % len(numbers))
                producer.commit_transaction()
                numbers.append(len(numbers))

    writer = Thread(target=write)
    writer.start()
    try:
        names, least = [], []
        for _ in range(3):
            wanted = len(numbers) + 20
            until(lambda wanted=wanted: len(numbers) >= wanted, "no transactions")
            least.append(len(numbers))
            names.append(create(broker.path, str(tmp_path / "backups")).name)
    finally:
        over.set()
        writer.join(SECONDS)
    for name, count in zip(names, least, strict=True):
        restore(str(tmp_path / "backups"), str(tmp_path / name), name)
        with Broker(tmp_path / name) as other:
            KafkaProducer(
                bootstrap_servers=other.bootstrap_servers, transactional_id="both"
            ).init_transactions()
            left, right = (
                [row[3] for row in rows(other.bootstrap_servers, topic, isolation_level="read_committed")]
                for topic in topics
            )
            assert left == right == [b"%d" % number for number in range(len(left))]
            assert len(left) >= count


def test_a_transaction_that_is_open_in_a_backup_can_be_ended_after_the_restore(
    tmp_path: Path, broker: Broker
) -> None:
    address = broker.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=address, transactional_id="open")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("payments", b"not yet").get(SECONDS)
    create(broker.path, str(tmp_path / "backups"))
    producer.commit_transaction()  # after the backup: it knows nothing of it
    assert [row[3] for row in rows(address, "payments", isolation_level="read_committed")] == [b"not yet"]
    producer.close()

    restored = tmp_path / "restored"
    restore(str(tmp_path / "backups"), str(restored))
    with Broker(restored) as other:
        there = other.bootstrap_servers
        assert rows(there, "payments", isolation_level="read_committed") == []
        assert [row[3] for row in rows(there, "payments")] == [b"not yet"]
        with KafkaProducer(bootstrap_servers=there, transactional_id="open") as again:
            again.init_transactions()  # aborts what was open
            again.begin_transaction()
            again.send("payments", b"now")
            again.commit_transaction()
        found = [row[3] for row in rows(there, "payments", isolation_level="read_committed")]
        assert found == [b"now"]


@pytest.mark.parametrize("kills", [4])
def test_a_backup_that_is_killed_goes_on_with_what_was_copied(
    tmp_path: Path, broker: Broker, kills: int
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(60):
            producer.send("large", os.urandom(700_000)).get(SECONDS)
    folder = tmp_path / "backups"
    copied: list[set[str]] = [set()]
    for kill in range(kills):
        child = forking.Popen(
            [*DAFKA, "backup", "create", broker.path, str(folder)],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        enough = 10 * (kill + 1)
        until(lambda: child.poll() is not None or len(_values(folder)) >= enough, "nothing is copied")  # noqa: B023
        child.send_signal(signal.SIGKILL)
        child.wait(SECONDS)
        names = _values(folder)
        assert copied[-1] <= names  # nothing is copied anew, or lost
        copied.append(names)
    times = {name: (folder / "values" / name).stat().st_mtime_ns for name in copied[-1]}
    made = create(broker.path, str(folder))
    assert {name for name, _, _ in made.values} >= copied[-1]
    for name, before in times.items():
        assert (folder / "values" / name).stat().st_mtime_ns == before
    restore(str(folder), str(tmp_path / "restored"))
    with Broker(tmp_path / "restored") as other:
        assert rows(other.bootstrap_servers, "large") == rows(broker.bootstrap_servers, "large")


def _values(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder / "values"))
    except FileNotFoundError:
        return set()


def test_a_restore_that_is_killed_goes_on_and_overwrites_nothing(tmp_path: Path, broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(40):
            producer.send("large", os.urandom(700_000)).get(SECONDS)
    folder, restored = tmp_path / "backups", tmp_path / "restored"
    create(broker.path, str(folder))
    child = forking.Popen(
        [*DAFKA, "backup", "restore", str(folder), str(restored)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    work = tmp_path / "restored.restoring"
    until(lambda: child.poll() is not None or len(_values(work / "restored")) >= 5, "nothing is restored")
    child.kill()
    child.wait(SECONDS)
    if not restored.exists():  # a busy machine may have let it end
        restore(str(folder), str(restored))
    assert not work.exists()
    with Broker(restored) as other:
        assert rows(other.bootstrap_servers, "large") == rows(broker.bootstrap_servers, "large")


def test_files_that_a_stopping_broker_deletes_meanwhile_are_not_missed(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that stops deletes the files of deleted rows, even while another process reads an earlier
    state."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for topic in ("gone", "stays"):
            producer.send(topic, os.urandom(500_000)).get(SECONDS)
    reading = Source.read
    times = []

    def read(self: Source, file: ValueFile) -> bytes | None:
        if not times:
            times.append(file.name)
            admin.delete_topics(["gone"])
            values = Path(broker.path) / "values"
            with closing(Source(broker.path)) as later:  # rows go with the next commit, before their files
                until(lambda: file.name not in {each.name for each in later.files()}, "its row is there")
            for path in values.iterdir():  # as at a stop, which cannot be had while the transaction is open
                if path.name == file.name:
                    path.unlink()
        return reading(self, file)

    monkeypatch.setattr(Source, "read", read)
    monkeypatch.setattr(creating, "PASSES", 0)
    made = create(broker.path, str(tmp_path / "backups"))
    assert times[0] not in {name for name, _, _ in made.values}
    assert not made.damaged
    restore(str(tmp_path / "backups"), str(tmp_path / "restored"))
    expect_undamaged(tmp_path / "restored")


def test_a_second_backup_copies_only_what_is_new(tmp_path: Path, broker: Broker) -> None:
    folder = str(tmp_path / "backups")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(300):
            producer.send("orders", os.urandom(150_000 if number % 30 == 0 else 5000))
    first = create(broker.path, folder)
    second = create(broker.path, folder)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("orders", os.urandom(150_000))
    third = create(broker.path, folder)
    assert first.new_bytes == first.bytes
    assert second.new_bytes < 400_000  # at most the blocks of a database that was tidied up meanwhile
    assert third.new_bytes < second.new_bytes + 600_000 < first.bytes
    assert Repository(folder).names() == sorted({first.name, second.name, third.name})
