"""Reading: ranges of messages, bounded, from any position; places by their timestamps."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, batch, with_largest_timestamp

from dafka.log import Log
from dafka.protocol.batch_writer import encode_batch


@pytest.mark.parametrize("tail_bytes", [0, 200, 8 * 1024 * 1024])
def test_reading_is_bounded_by_count_and_bytes_and_gives_one_message_at_least(
    folder: Path, tail_bytes: int
) -> None:
    with Log(folder, tail_bytes=tail_bytes) as log:
        partition = log.partition(b"hello", ADDRESS)
        for first in range(0, 300, 100):
            log.write([(partition, [bytes([first // 100]) * 10] * 100)])
        assert log.read(partition, 95, count=7, max_bytes=1000)[1] == [bytes(10)] * 5 + [b"\1" * 10] * 2
        assert len(log.read(partition, 50, count=1000, max_bytes=1000)[1]) == 100
        assert len(log.read(partition, 50, count=1000, max_bytes=1009)[1]) == 100
        assert len(log.read(partition, 50, count=1000, max_bytes=500)[1]) == 50
        assert len(log.read(partition, 50, count=1000, max_bytes=1)[1]) == 1
        assert log.read(partition, 50, count=0, max_bytes=1000) == (50, [])
        assert log.read(partition, 300, count=1, max_bytes=1000) == (300, [])
        assert len(log.read_offsets(partition, 50, max_bytes=1000)) == 100
        assert len(log.read_offsets(partition, 50, max_bytes=1009)) == 100
        assert len(log.read_offsets(partition, 50, max_bytes=0)) == 1
        assert log.read_offsets(partition, 300, max_bytes=1000) == []


def test_a_message_larger_than_what_was_asked_for_comes_alone(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [bytes(20_000)])])
        log.write([(partition, [b"tiny"])])
        assert log.read(partition, 0, count=9, max_bytes=10) == (0, [bytes(20_000)])
        assert [content for _, _, content in log.read_offsets(partition, 0, max_bytes=10)] == [bytes(20_000)]


def test_a_timestamp_finds_the_first_raw_message_of_that_time_or_later(folder: Path) -> None:
    now = [0.0]
    with Log(folder, clock=lambda: now[0]) as log:
        partition = log.partition(b"hello", ADDRESS)
        for seconds in (10, 10, 20, 15, 30):  # a clock may be set back
            now[0] = seconds
            log.write([(partition, [b"1", b"2"])])
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert log.offset_for_timestamp(partition, 0) == (0, 10_000)
        assert log.offset_for_timestamp(partition, 10_001) == (4, 20_000)
        assert log.offset_for_timestamp(partition, 20_000) == (4, 20_000)
        assert log.offset_for_timestamp(partition, 20_001) == (8, 30_000)
        assert log.offset_for_timestamp(partition, 30_001) is None


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_timestamp_finds_the_first_record_inside_a_batch(folder: Path, compression: str | None) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write(
            [(partition, [batch(0, 5, 9, 7, compression=compression), batch(3, 2, compression=compression)])]
        )
        log.write([(partition, [batch(4, 8, 30, 10, compression=compression)])])
        assert log.offset_for_timestamp(partition, -1) == (0, 5)
        assert log.offset_for_timestamp(partition, 6) == (1, 9)
        assert log.offset_for_timestamp(partition, 10) == (5, 30)
        assert log.offset_for_timestamp(partition, 31) is None


def test_looking_for_a_timestamp_reads_no_values_that_have_none_as_late(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for base, times in enumerate(([5], [6], [7], [60])):
            content = encode_batch([(time, b"key", bytes(9000), ()) for time in times], base_offset=base)
            if base == 0:
                content = with_largest_timestamp(content, 100)
            log.write([(partition, [content])])
        assert list(log.search_timestamp(partition, 50)) == [None, (3, 60)]
        assert list(log.search_timestamp(partition, 61)) == [None]


def test_a_partition_may_change_while_a_timestamp_is_looked_for(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for base in range(6):
            content = encode_batch([(5, b"key", bytes(9000), ())], base_offset=base)
            log.write([(partition, [with_largest_timestamp(content, 100)])])
        steps = log.search_timestamp(partition, 50)
        assert next(steps) is None
        log.trim(partition, before_sequence=4)
        assert next(steps) is None
        log.write([(partition, [batch(6, 70)])])
        assert list(steps) == [None, (6, 70)]
        steps = log.search_timestamp(partition, 50)
        assert next(steps) is None
        log.drop(partition)
        assert list(steps) == []


def test_records_with_the_time_of_the_broker_have_their_batch_s_timestamp(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [batch(0, 5, 9, timestamp_type=1)])])
        assert log.offset_for_timestamp(partition, 7) == (0, 9)
