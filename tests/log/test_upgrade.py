"""Folders of every layout that a release had are opened, and hold what they held; newer ones are refused."""

from __future__ import annotations

import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from log.expecting import expect_undamaged
from log.make_layout import COMMITTED, CONFIGS, FOLDER, LARGE, VALUES
from log.messages import database
from timing import SECONDS

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from dafka import Broker
from dafka.backup.creating import create
from dafka.backup.restoring import restore
from dafka.broker import connect
from dafka.broker.interface.admin import Resource, ResourceType
from dafka.log import LogVersionError
from dafka.log.limits import LAYOUT

LAYOUTS = sorted(int(path.name.partition(".")[0]) for path in FOLDER.glob("*.tar.xz"))


@pytest.fixture(params=LAYOUTS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(FOLDER / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data") if hasattr(
            tarfile, "data_filter"
        ) else archive.extractall(tmp_path)
    return tmp_path / "data"


def values(address: str, topic: str, number: int, **options: str) -> dict[int, bytes]:
    partition = TopicPartition(topic, number)
    with closing(KafkaConsumer(bootstrap_servers=address, **options)) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        found: dict[int, bytes] = {}
        while consumer.position(partition) < end:
            found |= {one.offset: one.value for one in consumer.poll(100).get(partition, [])}
        return found


def check(folder: Path) -> None:
    with Broker(folder, offsets_retention=None) as broker:  # the folder may be years old
        address, connection = broker.bootstrap_servers, connect(broker.bootstrap_servers)
        assert sorted(connection.call("metadata", None).topics) == ["orders", "payments"]
        resource = Resource(ResourceType.TOPIC, "orders")
        described = connection.call("describe_configs", {resource: None})[resource].entries
        assert {one.name: one.value for one in described}.items() >= CONFIGS.items()
        assert values(address, "orders", 1) == dict(list(enumerate([*VALUES, LARGE]))[5:])
        assert connection.call("fetch_offsets", "billing")["orders", 1][:2] == COMMITTED
        committed = {"isolation_level": "read_committed"}
        assert list(values(address, "payments", 0, **committed).values()) == [b"committed"]
        with KafkaProducer(bootstrap_servers=address, transactional_id="payments") as producer:
            producer.init_transactions()  # ends what was open
            producer.begin_transaction()
            producer.send("payments", b"goes on").get(SECONDS)
            producer.commit_transaction()
        assert list(values(address, "payments", 0, **committed).values()) == [b"committed", b"goes on"]
    expect_undamaged(folder)


def test_a_folder_of_an_older_version_holds_what_it_held(folder: Path) -> None:
    check(folder)


def test_so_does_a_backup_of_it(folder: Path, tmp_path: Path) -> None:
    create(str(folder), str(tmp_path / "backups"))
    restore(str(tmp_path / "backups"), str(tmp_path / "restored"))
    check(tmp_path / "restored")


def test_there_is_a_folder_of_each_layout() -> None:
    assert list(range(1, LAYOUT + 1)) == LAYOUTS


def test_a_folder_of_a_newer_version_is_refused_by_all_and_not_touched(folder: Path, tmp_path: Path) -> None:
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE key = 'layout'", (LAYOUT + 1,))
    before = (folder / "cache.db").read_bytes()
    with pytest.raises(LogVersionError, match="upgrade dafka"):
        Broker(folder).start()
    with pytest.raises(LogVersionError, match="upgrade dafka"):
        create(str(folder), str(tmp_path / "backups"))
    assert (folder / "cache.db").read_bytes() == before
