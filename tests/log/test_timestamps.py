"""The first record of a chunk with a given timestamp or a later one."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from log.messages import batch, with_largest_timestamp

from dafka.log.chunk import BATCH, RAW, Chunk
from dafka.log.timestamps import first_record_since


def raw(*stamps: tuple[int, int], first: int = 0) -> Chunk:
    """Raw messages; each stamp is a number of them and their time."""
    return Chunk(RAW, first, [b"x"] * sum(count for count, _ in stamps), stamps, 100)


def batches(*contents: bytes) -> Chunk:
    return Chunk(BATCH, 0, contents, (), 100)


@pytest.mark.parametrize(
    ("timestamp", "floor", "found"),
    [
        (0, 0, (10, 100)),
        (100, 0, (10, 100)),
        (101, 0, (12, 200)),
        (200, 0, (12, 200)),
        (201, 0, None),
        (0, 11, (11, 100)),
        (0, 12, (12, 200)),
        (0, 13, None),
    ],
)
def test_a_raw_message_has_the_time_of_its_round(timestamp: int, floor: int, found: object) -> None:
    assert first_record_since(raw((2, 100), (1, 200), first=10), timestamp, floor) == found


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize(
    ("timestamp", "floor", "found"),
    [
        (0, 0, (0, 5)),
        (6, 0, (1, 9)),
        (10, 0, (3, 20)),  # of the second batch: the first one's largest is 9
        (21, 0, None),
        (0, 2, (2, 7)),
        (8, 2, (3, 20)),
    ],
)
def test_the_records_of_batches_are_looked_into(
    compression: str | None, timestamp: int, floor: int, found: object
) -> None:
    chunk = batches(batch(0, 5, 9, 7, compression=compression), batch(3, 20))
    assert first_record_since(chunk, timestamp, floor) == found


def test_with_log_append_time_every_record_has_the_time_of_its_batch() -> None:
    chunk = batches(batch(4, 5, 9, 7, timestamp_type=1))
    assert first_record_since(chunk, 8) == (4, 9)
    assert first_record_since(chunk, 8, 6) == (6, 9)


def test_a_batch_without_records_is_skipped() -> None:
    empty = bytearray(batch(0, 30))
    empty[57:61] = bytes(4)
    empty[17:21] = crc32c(bytes(empty[21:])).to_bytes(4, "big")
    assert first_record_since(batches(bytes(empty), batch(1, 30)), 30) == (1, 30)


def test_a_batch_whose_header_alone_has_such_a_time_is_skipped() -> None:
    chunk = batches(with_largest_timestamp(batch(0, 5), 50), batch(1, 40))
    assert first_record_since(chunk, 30) == (1, 40)


def test_a_batch_that_cannot_be_read_is_found_at_its_beginning() -> None:
    unknown = bytearray(batch(3, 5, 9))
    unknown[22] = 7  # a codec that does not exist
    unknown[17:21] = crc32c(bytes(unknown[21:])).to_bytes(4, "big")
    assert first_record_since(batches(bytes(unknown)), 6) == (3, 9)
