"""A store as its user has it: its folder and address, what it has, and what it says it does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.commit.retention import Retention
from dafka.log import LogLockedError, LogPartition

SIZE = 1000


@pytest.fixture
def tower() -> Iterator[Tower]:
    with Tower() as one:
        yield one


def fill(tower: Tower, topic: str, count: int) -> str:
    """Have so many records stored; their partition."""
    with Producer(topic, tower=tower) as producer:
        for number in range(count):
            producer.send(b"%d." % number + bytes(SIZE))
        producer.flush(100)
        return producer.address


def numbers(consumer: Consumer, count: int) -> list[int]:
    taken: list[int] = []
    while len(taken) < count:
        records = consumer.poll(20.0, count - len(taken))
        assert records, f"{len(taken)} of {count} have come"
        taken += [int(record.value.partition(b".")[0]) for record in records if record.value]
    return taken


def test_it_tells_the_heads_of_what_it_has(tower, tmp_path):
    with Store(tmp_path / "db", tower=tower) as store:
        assert store.heads() == {}
        one, other = fill(tower, "one", 3), fill(tower, "other", 5)
        assert store.heads() == {(b"one", one): 2, (b"other", other): 4}


def test_a_folder_that_is_opened_again_has_what_it_had_and_its_address(tower, tmp_path):
    with Store(tmp_path / "db", tower=tower) as store:
        partition, address = fill(tower, "hello", 5), store.address
    with Store(tmp_path / "db", tower=tower) as store:
        assert (store.heads(), store.address) == ({(b"hello", partition): 4}, address)
        with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
            assert numbers(consumer, 5) == list(range(5))
        assert store.metrics()["records_served"] >= 5
    assert repr(store) == f"<Store {str(tmp_path / 'db')!r} {address}>"


def test_an_address_that_is_given_is_the_stores(tower, tmp_path):
    with Store(tmp_path / "db", tower=tower, address="AB" * 16) as store:
        assert store.address == "AB" * 16


def test_a_folder_has_one_store_at_a_time(tower, tmp_path):
    with Store(tmp_path / "db", tower=tower), pytest.raises(LogLockedError):
        Store(tmp_path / "db", tower=tower)
    with Store(tmp_path / "db", tower=tower):
        pass


@pytest.mark.parametrize(
    "wrong",
    [
        {"durability": "disk"},
        {"on_damage": "hide"},
        {"retention_check_interval": 0},
        {"retention_bytes": "x"},
        {"topic_retention": 5},
        {"topic_retention": {"t": None}},
        {"topic_retention": {"t": (1, 2, 3)}},
    ],
)
def test_invalid_settings_are_named_and_leave_no_folder(tower, tmp_path, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)).partition("_")[0]):
        Store(tmp_path / "db", tower=tower, **wrong)
    assert not (tmp_path / "db").exists()


def test_retention_of_each_topic_is_the_one_given_for_it(tower, tmp_path, monkeypatch):
    looked_at: list[bytes] = []
    wanted = LogPartition.sequence_for_retention

    def noted(partition: LogPartition, **bounds: Any) -> int:
        looked_at.append(partition.topic)
        return wanted(partition, **bounds)

    monkeypatch.setattr(LogPartition, "sequence_for_retention", noted)
    options: dict[str, Any] = {"retention_check_interval": 0.05, "topic_retention": {"all": Retention()}}
    with Store(tmp_path / "db", tower=tower, retention_bytes=100_000, **options) as store:
        little, everything = fill(tower, "little", 3000), fill(tower, "all", 3000)
        looked_at.clear()
        until(lambda: looked_at.count(b"little") >= 3)  # so all that is to go has gone
        positions = store._node.role.positions
        assert positions[b"little", little.encode()][0] > 0  # stored values go as a whole
        assert positions[b"all", everything.encode()][0] == 0
        with Consumer(["little", "all"], tower=tower, offset_reset="earliest") as consumer:
            firsts: dict[str, int] = {}
            while len(firsts) < 2:
                for record in consumer.poll(20.0):
                    firsts.setdefault(record.topic, record.sequence)
            assert firsts["all"] == 0
            assert firsts["little"] > 0
            assert [(gap.topic, gap.first, gap.next) for gap in consumer.gaps] == [
                (b"little", 0, firsts["little"])
            ]


def test_closing_commits_what_has_come(tower, tmp_path):
    store = Store(tmp_path / "db", tower=tower)
    partition = fill(tower, "hello", 200)
    store.close()
    store.close()
    with Store(tmp_path / "db", tower=tower) as again:
        assert again.heads() == {(b"hello", partition): 199}


def test_a_store_that_joins_late_gets_what_another_one_has(tower, tmp_path):
    with Store(tmp_path / "one", tower=tower) as first:
        fill(tower, "hello", 50)
        with Store(tmp_path / "other", tower=tower, high_water_mark=1001) as late:
            deadline = time.monotonic() + 100
            while late.heads() != first.heads():
                assert time.monotonic() < deadline
                time.sleep(0.02)


def test_durable_against_power_cuts_it_does_the_same(tower, tmp_path: Path):
    with Store(tmp_path / "db", tower=tower, durability="power") as store:
        partition = fill(tower, "hello", 5)
        assert store.heads() == {(b"hello", partition): 4}
