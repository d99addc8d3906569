"""A topic, its partitions, and the rows about them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from dafka.broker.topics.topic import NATIVE_ROWS, TOPIC_ROWS, Partition, Topic
from dafka.log import Log, LogPartition

ID = UUID(int=5)
ADDRESS = b"A" * 32


class Listener:
    def __init__(self) -> None:
        self.heard: list[Partition] = []

    def partition_grew(self, partition: Partition) -> None:
        self.heard.append(partition)


def partition(log: Log | None = None, number: int = 0, *, writable: bool = True, floor: int = 0) -> Partition:
    topic = Topic("t", ID, {})
    return Partition(topic, number, ADDRESS, log, writable=writable, floor=floor)  # type: ignore[arg-type]


class CountingLog(Log):
    """Counts how often it is asked what it has of a partition."""

    asked = 0

    def find(self, topic: bytes, address: bytes) -> LogPartition | None:
        self.asked += 1
        return super().find(topic, address)


def test_a_partition_that_was_never_written_is_empty_and_asks_the_log_once(tmp_path: Path) -> None:
    with CountingLog(tmp_path / "log") as log:
        quiet = partition(log, floor=7)
        assert log.asked == 0
        assert (quiet.high_watermark, quiet.log_start, quiet.next_sequence, quiet.bytes) == (0, 7, 0, 0)
        assert log.asked == 1
        log.write([(quiet.stored, [b"a"])])
        assert quiet.high_watermark == 1


def test_ends_of_a_partition_written_before_are_looked_up_when_asked_for(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        log.write([(log.partition(b"t", ADDRESS), [b"a", b"b"])])
    with CountingLog(tmp_path / "log") as log:
        written = partition(log)
        assert log.asked == 0
        assert (written.high_watermark, written.next_sequence, log.asked) == (2, 2, 1)
        assert written.stored is log.find(b"t", ADDRESS)


def test_a_partition_has_the_ends_of_its_records_in_the_log(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        written = partition(log)
        log.write([(written.stored, [b"a", b"b", b"c"])])
        assert (written.high_watermark, written.log_start, written.next_sequence) == (3, 0, 3)
        assert written.bytes > 0
        log.trim(written.stored, before_offset=2)
        assert written.log_start == 2
        assert written.stored is log.find(b"t", ADDRESS)


def test_records_below_the_floor_do_not_count(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        native = partition(log, writable=False, floor=2)
        log.write([(native.stored, [b"a", b"b", b"c"])])
        assert (native.log_start, native.high_watermark) == (2, 3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_watcher_is_called_until_it_is_taken_off(count: int) -> None:
    watched = partition()
    listeners = [Listener() for _ in range(count)]
    for listener in listeners:
        watched.watch(listener)
        watched.watch(listener)  # a second time changes nothing
    watched.wake()
    assert [listener.heard for listener in listeners] == [[watched]] * count
    watched.unwatch(Listener())
    for listener in listeners:
        watched.unwatch(listener)
    watched.wake()
    assert [len(listener.heard) for listener in listeners] == [1] * count
    assert watched.watchers == []


def test_the_row_of_a_topic_has_the_numbers_of_its_own_partitions_as_ranges() -> None:
    topic = Topic("t", ID, {"retention.ms": "5"})
    topic.partitions = [partition(number=number, writable=number not in (2, 3)) for number in range(6)]
    row = topic.row()
    assert row == {"id": ID.hex, "configs": {"retention.ms": "5"}, "led": [[0, 2], [4, 2]]}
    assert TOPIC_ROWS.key("t")
    assert TOPIC_ROWS.value("t", row)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "x"},
        {"configs": {"a": 1}},
        {"led": [[0, -1]]},
        {"led": [[0, 10**9]]},
        {"deleted": 1},
        {"more": 1},
    ],
)
def test_other_rows_are_not_a_topics(change: dict[str, object]) -> None:
    row = Topic("t", ID, {}).row()
    assert TOPIC_ROWS.value("t", row)
    assert TOPIC_ROWS.value("t", {**row, "deleted": True})
    assert not TOPIC_ROWS.value("t", {**row, **change})
    assert not TOPIC_ROWS.key("a b")


def test_the_row_of_a_native_partition_has_its_address_and_its_first_offset() -> None:
    key = f"{ID.hex}/3"
    assert NATIVE_ROWS.key(key)
    assert NATIVE_ROWS.value(key, [ADDRESS.decode(), 5])
    for wrong in (["A" * 256, 5], ["A", -1], ["A"], "A"):
        assert not NATIVE_ROWS.value(key, wrong)
    assert not NATIVE_ROWS.key("t/3")
