"""Retention in a store: by time and by bytes, for all topics and for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.commit.retention import Retention
from dafka.log import LogPartition

LARGE = bytes(100_000)


@pytest.fixture
def tower() -> Iterator[Tower]:
    with Tower() as running:
        yield running


def fill(tower: Tower, topic: str, count: int) -> str:
    """Publish records and have them stored; the producer's address."""
    with Producer(topic, tower=tower) as producer:
        for _ in range(count):
            producer.send(LARGE)
        producer.flush(100)
        return producer.address


def first_sequences(store: Store) -> dict[str, int]:
    partitions = store._hub.run(store._node.log.partitions)
    return {partition.topic.decode(): partition.first_sequence for partition in partitions}


def test_a_store_keeps_so_many_bytes_of_each_partition_and_others_of_some_topics(
    tower: Tower, tmp_path: Path
) -> None:
    options = {"tower": tower, "retention_check_interval": 0.05}
    bounds = {"kept": Retention(), b"less": Retention(bytes=500_000)}
    with Store(tmp_path, retention_bytes=2_000_000, topic_retention=bounds, **options) as store:
        for topic in ("plain", "kept", "less"):
            fill(tower, topic, 40)
        until(lambda: first_sequences(store).get("less", 0) >= 30)
        until(lambda: first_sequences(store)["plain"] >= 15)
        found = first_sequences(store)
        assert found["kept"] == 0
        assert 15 <= found["plain"] <= 21
        assert 30 <= found["less"] <= 36


def test_records_older_than_the_bound_go_and_a_consumer_is_told(tower: Tower, tmp_path: Path) -> None:
    with Store(tmp_path, tower=tower):
        address = fill(tower, "t", 20)
    with Store(tmp_path, tower=tower, retention_ms=1, retention_check_interval=0.05) as store:
        until(lambda: first_sequences(store)["t"] == 20)
        with Consumer(["t"], tower=tower, start={address: 3}) as consumer:
            until(lambda: [*consumer.poll(timeout=0.1), *consumer.gaps] != [])
            assert [(gap.first, gap.next) for gap in consumer.gaps] == [(3, 20)]


def test_a_trimmed_partition_is_handed_on_from_store_to_store(tower: Tower, tmp_path: Path) -> None:
    with Store(
        tmp_path / "first", tower=tower, retention_bytes=2_000_000, retention_check_interval=0.05
    ) as trimming:
        address = fill(tower, "t", 40)
        until(lambda: first_sequences(trimming)["t"] >= 15)
    before = Store(tmp_path / "first", tower=tower)
    begins = first_sequences(before)["t"]
    for name in ("second", "third"):
        after = Store(tmp_path / name, tower=tower)
        until(lambda after=after: after.heads() == {(b"t", address): 39})
        assert first_sequences(after) == {"t": begins}
        before.close()
        before = after
    with before, Consumer(["t"], tower=tower, offset_reset="earliest") as consumer:
        assert [next(consumer).sequence for _ in range(begins, 40)] == list(range(begins, 40))
        assert [(gap.first, gap.next) for gap in consumer.gaps] == [(0, begins)]


def test_a_partition_that_cannot_be_cleaned_keeps_no_other_from_it(
    tower: Tower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = LogPartition.sequence_for_retention

    def fail_for_one(partition: LogPartition, **bounds: object) -> int:
        if partition.topic == b"bad":
            raise ArithmeticError("nobody has thought of it")
        return wanted(partition, **bounds)

    monkeypatch.setattr(LogPartition, "sequence_for_retention", fail_for_one)
    with Store(tmp_path, tower=tower, retention_bytes=500_000, retention_check_interval=0.05) as store:
        fill(tower, "bad", 20)
        fill(tower, "good", 20)
        until(lambda: first_sequences(store).get("good", 0) >= 10)
        assert first_sequences(store)["bad"] == 0


def test_invalid_bounds_of_a_topic_are_refused(tower: Tower, tmp_path: Path) -> None:
    for ms in (-5, 2**63):
        with pytest.raises(ValueError, match=f"retention_ms is .* from 0 to {2**63 - 1}.*not {ms}"):
            Store(tmp_path / "data", tower=tower, topic_retention={"t": Retention(ms=ms)})
    assert not (tmp_path / "data").exists()
