"""Stored bytes that are not what was written: found on reading, named with their place, no more lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c
from log.messages import ADDRESS, EVERYTHING, batch, chunk_rows, database, numbered

from dafka.log import DamagedError, Log, LogReadError

LARGE = 10_000  # keeps chunks from being merged


@pytest.fixture
def three_chunks(folder: Path) -> Path:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for first in range(0, 15, 5):
            log.write([(partition, numbered(first, 5, LARGE))], {("table", "key"): "value"})
    return folder


def change(folder: Path, row: int, value: object) -> None:
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (value, row))


def flipped(position: int) -> Callable[[bytes], object]:
    return lambda value: value[:position] + bytes([value[position] ^ 1]) + value[position + 1 :]


@pytest.mark.parametrize(
    "harm",
    [
        *map(flipped, (0, 1, 4, 8, 20, 30, 5_000, -5)),
        lambda value: value[:-1] + bytes([value[-1] ^ 128]),
        lambda value: value[:-1],
        lambda value: value + b"\0",
        lambda value: b"",
        lambda value: value[:3],
        lambda value: None,
        lambda value: 5,
        lambda value: "text",
    ],
)
def test_a_damaged_value_is_found_and_named_and_the_others_can_be_read(
    three_chunks: Path, harm: Callable[[bytes], object]
) -> None:
    number, _, value = chunk_rows(three_chunks)[1]
    change(three_chunks, number, harm(value))
    with Log(three_chunks) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert partition.next_sequence == 15
        assert log.read(partition, 0, count=15, max_bytes=EVERYTHING) == (0, numbered(0, 5, LARGE))
        assert len(log.read_offsets(partition, 3, max_bytes=EVERYTHING)) == 2
        for read in (
            lambda: log.read(partition, 7, count=1, max_bytes=EVERYTHING),
            lambda: log.read_offsets(partition, 5, max_bytes=EVERYTHING),
        ):
            with pytest.raises(DamagedError, match="sequences 5 to 9 of topic b'hello'") as caught:
                read()
            assert caught.value.path == str(three_chunks)
            assert caught.value.place in str(caught.value)
        assert log.read(partition, 10, count=9, max_bytes=EVERYTHING)[1] == numbered(10, 5, LARGE)
        log.write([(partition, numbered(15, 1))])


def test_a_value_under_another_s_key_is_found(three_chunks: Path) -> None:
    (one, _, first), (two, _, second), _ = chunk_rows(three_chunks)
    assert len(first) == len(second)
    change(three_chunks, one, second)
    change(three_chunks, two, first)
    with Log(three_chunks) as log, pytest.raises(DamagedError, match="checksum"):
        log.read(log.partition(b"hello", ADDRESS), 0, count=1, max_bytes=1)


def test_a_missing_value_is_found(three_chunks: Path) -> None:
    number, _, _ = chunk_rows(three_chunks)[1]
    with Log(three_chunks) as log:
        partition = log.partition(b"hello", ADDRESS)
        with database(three_chunks) as rows:
            rows.execute("DELETE FROM Cache WHERE rowid = ?", (number,))
        with pytest.raises(DamagedError, match="missing"):
            log.read(partition, 5, count=1, max_bytes=1)


def test_small_damaged_chunks_are_left_out_of_merging_and_appending_goes_on(folder: Path) -> None:
    with Log(folder) as log:
        for sequence in range(10):
            log.write([(log.partition(b"hello", ADDRESS), numbered(sequence, 1))])
    number, _, value = chunk_rows(folder)[4]
    change(folder, number, flipped(20)(value))
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(10, 100):
            log.write([(partition, numbered(sequence, 1))])
        assert log.read(partition, 0, count=100, max_bytes=EVERYTHING) == (0, numbered(0, 4))
        with pytest.raises(DamagedError, match="sequences 4 to 4"):
            log.read(partition, 4, count=100, max_bytes=EVERYTHING)
        assert log.read(partition, 5, count=100, max_bytes=EVERYTHING) == (5, numbered(5, 95))
        assert len(chunk_rows(folder)) < 40


def test_a_damaged_table_value_is_found_and_named(three_chunks: Path) -> None:
    with database(three_chunks) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE key = ?", (b'j"other"1234', b"t\5tablekey"))
    with Log(three_chunks) as log:
        with pytest.raises(DamagedError, match="key 'key' of table 'table'"):
            log.table("table").get("key")
        log.write([], {("table", "key"): "new"})
        assert log.table("table").get("key") == "new"


def test_a_chunk_without_a_partition_is_damage(three_chunks: Path) -> None:
    with database(three_chunks) as rows:
        rows.execute("DELETE FROM Cache WHERE substr(key, 1, 1) = x'70'")
    with pytest.raises(DamagedError, match="partition number 0"):
        Log(three_chunks)


@pytest.mark.parametrize("first", [0, 3])
def test_chunks_that_overlap_are_damage(three_chunks: Path, first: int) -> None:
    _, key, value = chunk_rows(three_chunks)[1]
    overlapping = key[:5] + first.to_bytes(8, "big") + key[13:]
    with database(three_chunks) as rows:
        rows.execute("INSERT INTO Cache (key, raw, value) VALUES (?, 1, ?)", (overlapping, value))
    with pytest.raises(DamagedError, match=r"the index of topic b'hello'.*overlap"):
        Log(three_chunks)


def test_a_key_with_an_impossible_range_is_damage(three_chunks: Path) -> None:
    _, key, value = chunk_rows(three_chunks)[2]
    with database(three_chunks) as rows:
        row = (key[:13] + bytes(8) + key[21:], value)
        rows.execute("INSERT INTO Cache (key, raw, value) VALUES (?, 1, ?)", row)
    with pytest.raises(DamagedError, match="impossible range"):
        Log(three_chunks)


def test_pages_of_the_database_that_are_overwritten_are_a_named_error(three_chunks: Path) -> None:
    size = (three_chunks / "cache.db").stat().st_size
    with open(three_chunks / "cache.db", "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with pytest.raises((DamagedError, LogReadError), match=str(three_chunks)):
        Log(three_chunks)


def test_a_batch_whose_records_cannot_be_told_apart_is_found_by_its_beginning(folder: Path) -> None:
    content = bytearray(batch(0, 5, 9))
    content[22] = 7  # attributes: a codec that does not exist
    content[17:21] = crc32c(bytes(content[21:])).to_bytes(4, "big")
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [bytes(content)])])
        assert log.offset_for_timestamp(partition, 6) == (0, 9)
