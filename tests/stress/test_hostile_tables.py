"""Rows of tables with a right checksum and a wrong shape: a folder from somebody else is at worst refused."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from broker.clients import Client, batch
from broker.transactions.transactional import Producer
from hypothesis import settings
from kafka.errors import KafkaError

from dafka import Broker
from dafka.broker.interface.admin import Resource, ResourceType
from dafka.broker.interface.broker import CommittedOffset, FetchFrom
from dafka.log import DamagedError, Log
from dafka.protocol.batch import with_producer
from dafka.protocol.errors import DafkaError
from dafka.testing.broker import MEMORY, has_memory

ADDRESS = b"A" * 32
EXAMPLES = settings.default.max_examples  # see DAFKA_TEST_EXAMPLES; they are the same in every run
TABLES = (
    *("topics", "natives", "deleted", "offsets", "groups", "transactions", "transactions.open", "producers"),
    *("aborted", "epochs", "epoch", "producer.ids", "configs", "broker", "log.compaction", "log.lost"),
    "topologies",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's folder with rows in every table."""
    path = tmp_path_factory.mktemp("hostile") / "data"
    with Log(path) as log:
        log.write([(log.partition(b"t", ADDRESS), [b"native"])])
    with Broker(path) as broker:
        client = Client(broker)
        client.create("gone")
        client.produce("gone", b"value")
        client.call("delete_topics", ["gone"])
        client.call("commit_offsets", "g", {("t", 0): CommittedOffset(1, "metadata", 0)})
        content = with_producer(batch(b"x"), 1234, 0, 0)
        client.call("produce", {("t", 0): [content]})
        producer = Producer(client)
        producer.send(b"aborted", ("t", 0))
        producer.abort()
        producer.send(b"open", ("t", 0))
        producer.send_offset(1)
    with Log(path) as log:
        number = str(log.partitions()[0].number)
        (topic,) = log.table("topics")
        topic_id = log.table("topics").get(topic)["id"]
        more: dict[tuple[str, str], Any] = {
            ("configs", "default"): {"log.retention.ms": "1000"},
            ("epochs", f"{topic_id}/0"): [[0, 0]],
            ("groups", "g"): 1,
            ("groups", "s"): [1, "streams", 3],
            ("topologies", "s"): [1, [["0", ["t"], [], [["c", 0, 0, {"a": "b"}]], [], [], [["t"]]]]],
            ("log.compaction", number): {"clean": 0, "sections": [[0, 1, 0]]},
            ("log.lost", number): 1,
        }
        log.write([], more)
        assert [table for table in TABLES if not len(log.table(table))] == []
    return path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, in memory if possible: brokers are opened in it hundreds of times."""
    if not has_memory():
        yield tmp_path
        return
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def strange(chance: random.Random, known: Any, depth: int = 0) -> Any:
    """Any value that a table can hold, or what is known with a part of it replaced."""
    kind = chance.randrange(12 if depth < 3 else 8)
    if kind < 8:
        values = (None, True, -1, 2**70, -(2**63), 1e300, float("nan"), "", "\0\udcff", b"", b"\xff" * 33)
        value = chance.choice(values)
        return value if depth == 0 or type(value) is not bytes else 0.5
    if kind == 8:
        return [strange(chance, None, depth + 1) for _ in range(chance.randrange(5))]
    if kind == 9:
        return {str(number): strange(chance, None, depth + 1) for number in range(chance.randrange(4))}
    if type(known) is list and known:
        place = chance.randrange(len(known))
        return [*known[:place], strange(chance, known[place], depth + 1), *known[place + 1 :]]
    if type(known) is dict and known:
        name = chance.choice(list(known))
        changed = {**known, name: strange(chance, known[name], depth + 1)}
        return (
            changed if chance.random() < 0.7 else {key: value for key, value in known.items() if key != name}
        )
    if type(known) is bytes:
        return known + b"x"
    return strange(chance, None, depth + 1)


def open_and_use(path: Path, place: tuple[str, str]) -> None:
    """A broker answers every row with one of its named errors."""
    try:
        broker = Broker(path).start()
    except DamagedError as error:
        assert repr(place[0]) in str(error) and repr(place[1]) in str(error)
        return
    try:
        client = Client(broker)
        resource = Resource(ResourceType.TOPIC, "t")
        for call in (
            lambda: client.call("metadata", None),
            lambda: client.call("list_groups"),
            lambda: client.call("describe_streams_groups", ["s"]),
            lambda: client.call("fetch_offsets", "g"),
            lambda: client.call("commit_offsets", "g", {("t", 0): CommittedOffset(1)}),
            lambda: client.call("describe_transactions", ["x"]),
            lambda: client.call("list_transactions"),
            lambda: client.call("describe_producers", [("t", 0)]),
            lambda: client.call("init_producer_id", None, 1.0),
            lambda: client.call("describe_configs", {resource: None}),
            lambda: client.call("produce", {("t", 0): [batch(b"value")]}),
            lambda: client.call(
                "fetch",
                {("t", 0): FetchFrom(0, 1000)},
                max_wait=0,
                min_bytes=1,
                max_bytes=1000,
                read_committed=True,
            ),
        ):
            with suppress(DafkaError, KafkaError):
                call()
    finally:
        broker.stop()


@pytest.mark.parametrize("table", TABLES)
def test_a_value_of_another_shape_is_damage_with_its_place_or_does_no_harm(
    table: str, folder: Path, place: Path
) -> None:
    chance = random.Random(table)
    for number in range(EXAMPLES // 5):
        path = place / str(number)
        shutil.copytree(folder, path)
        with Log(path) as log:
            rows = log.table(table)
            key = chance.choice(list(rows))
            log.write([], {(table, key): strange(chance, rows.get(key)) or 0})
        open_and_use(path, (table, key))
        shutil.rmtree(path)


@pytest.mark.parametrize("table", TABLES)
def test_a_key_of_another_shape_is_damage_with_its_place_or_does_no_harm(
    table: str, folder: Path, place: Path
) -> None:
    chance = random.Random(table)
    for number in range(EXAMPLES // 10):
        path = place / str(number)
        shutil.copytree(folder, path)
        with Log(path) as log:
            known = chance.choice(list(log.table(table)))
            places = (
                "",
                "\udcff",
                "x",
                "/",
                "//",
                known + "/x",
                "x" + known,
                known[:-1],
                known.replace("/", ":"),
            )
            key = chance.choice(places)
            log.write([], {(table, key): log.table(table).get(known)})
        open_and_use(path, (table, key))
        shutil.rmtree(path)


def test_a_value_that_is_nested_very_deeply_is_damage(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    shutil.copytree(folder, path)
    from log.messages import database

    from dafka.log.table import pack_key, seal

    row = pack_key("topics", "t")
    with database(path) as cache:
        value = seal(row, b"j" + b"[" * 500 + b"]" * 500)
        assert cache.execute("UPDATE Cache SET value = ?, size = 0 WHERE key = ?", (value, row)).rowcount == 1
    with pytest.raises(DamagedError, match=r"key 't' of table 'topics'.*nested more than 300 deep"):
        Broker(path).start()
