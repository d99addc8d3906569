"""What is done to a batch without opening it."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords
from protocol.material import NOW, assembled, built_by_kafka_python, codecs, record_lists

from dafka.protocol.batch import (
    HEADER_OCTETS,
    BatchError,
    check_batch,
    is_batch,
    number_batch,
    read_header,
    split_batches,
    with_offset,
    with_producer,
)
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.errors import DafkaError

RECORDS = [(NOW + 5, b"key", b"value", []), (NOW, None, b"two", []), (NOW + 9, None, None, [])]
BATCH = built_by_kafka_python(RECORDS)


def cause(content: bytes) -> str:
    with pytest.raises(BatchError) as caught:
        check_batch(content)
    assert isinstance(caught.value, DafkaError)
    return caught.value.cause


def with_octets(position: int, octets: bytes) -> bytes:
    return BATCH[:position] + octets + BATCH[position + len(octets) :]


@pytest.mark.parametrize("compression", codecs)
def test_the_header_says_what_kafka_python_reads(compression: str | None) -> None:
    batch = encode_batch(
        [(NOW, None, b"x" * 1000, ())] * 3,
        base_offset=40,
        compression=compression,
        timestamp_type=1,
        producer_id=7,
        producer_epoch=8,
        base_sequence=9,
    )
    header, theirs = read_header(batch), DefaultRecordBatch(batch)
    assert header.base_offset == theirs.base_offset == 40
    assert header.size == len(batch)
    assert header.leader_epoch == theirs.leader_epoch
    assert header.magic == theirs.magic == 2
    assert header.crc == theirs.crc
    assert header.attributes == theirs.attributes
    assert header.last_offset_delta == theirs.last_offset_delta == 2
    assert header.next_offset == theirs.next_offset == 43
    assert header.timestamp_type == theirs.timestamp_type == 1
    assert header.max_timestamp == theirs.max_timestamp == NOW
    assert header.compression == compression
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 8, 9)
    assert header.count == 3
    assert not header.is_control


def test_the_base_timestamp_is_the_first_records_and_the_maximum_the_latest() -> None:
    header = read_header(BATCH)
    assert (header.base_timestamp, header.max_timestamp) == (NOW + 5, NOW + 9)


def test_a_header_is_read_at_any_position() -> None:
    assert read_header(b"xyz" + BATCH, 3) == read_header(BATCH)


def test_a_control_batch_is_told() -> None:
    assert read_header(assembled(b"", 0, attributes=0x30)).is_control


def test_an_unknown_codec_is_a_batch_error() -> None:
    with pytest.raises(BatchError, match="codec 7"):
        _ = read_header(assembled(b"", 0, attributes=7)).compression


def test_a_whole_batch_is_a_batch() -> None:
    assert is_batch(BATCH)
    assert check_batch(BATCH) == read_header(BATCH)


@given(st.binary(max_size=200))
def test_raw_bytes_are_not_a_batch(content: bytes) -> None:
    assert not is_batch(content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "short"),
        (BATCH[:60], "short"),
        (BATCH[:-1], "length"),
        (BATCH + b"\0", "length"),
        (with_octets(16, b"\x01"), "magic"),
        (with_octets(8, b"\xff\xff\xff\xff"), "length"),
        (with_octets(17, b"\0\0\0\0"), "crc"),
        (with_octets(70, b"\xff"), "crc"),
    ],
)
def test_anything_but_exactly_one_whole_batch_is_not_a_batch(content: bytes, expected: str) -> None:
    assert not is_batch(content)
    assert cause(content) == expected


@pytest.mark.parametrize(("count", "last"), [(-1, 0), (1, -1), (3, 1), (2**31 - 1, 0)])
def test_counts_that_cannot_be_are_a_batch_error(count: int, last: int) -> None:
    assert cause(assembled(b"", count, last_offset_delta=last)) == "count"


@given(st.integers(0, 8 * len(BATCH) - 1))
def test_any_bit_that_flips_behind_the_numbering_is_noticed(bit: int) -> None:
    damaged = bytearray(BATCH)
    damaged[bit // 8] ^= 1 << bit % 8
    numbering = bit // 8 < 8 or 12 <= bit // 8 < 16  # base offset and leader epoch are not checked
    assert is_batch(bytes(damaged)) == numbering


@given(record_lists, st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_a_batch_is_numbered_without_touching_its_checksum(
    records: list[tuple[int, bytes, bytes, list[tuple[str, bytes]]]], offset: int, epoch: int
) -> None:
    batch = encode_batch(records)
    numbered = with_offset(batch, offset, epoch)
    header = check_batch(numbered)
    assert (header.base_offset, header.leader_epoch) == (offset, epoch)
    assert header.next_offset == offset + len(records)
    assert with_offset(numbered, 0) == batch
    assert DefaultRecordBatch(numbered).validate_crc()


def test_a_large_batch_in_memory_that_can_be_written_is_numbered_there() -> None:
    batch = encode_batch([(1, None, bytes(200_000), ())], compression=None)
    memory = bytearray(b"before" + batch + b"behind")
    view = memoryview(memory)[6:-6]
    assert number_batch(view, 2**40, 7) is view
    assert memory == b"before" + with_offset(batch, 2**40, 7) + b"behind"


@pytest.mark.parametrize("size", [100, 200_000])
def test_other_batches_are_copied_to_be_numbered(size: int) -> None:
    batch = encode_batch([(1, None, bytes(size), ())])
    others: list[Any] = [batch, memoryview(batch)]
    if size == 100:
        others.append(memoryview(bytearray(batch)))
    for other in others:
        assert number_batch(other, 5, 6) == with_offset(batch, 5, 6)
        assert other == batch


def test_a_record_set_is_split_into_its_batches() -> None:
    batches = [encode_batch([(NOW, None, b"x" * n, ())], base_offset=n) for n in range(5)]
    assert split_batches(b"".join(batches)) == batches
    records = MemoryRecords(b"".join(batches))
    assert [bytes(records.next_batch()._buffer) for _ in batches] == batches
    assert split_batches(b"") == []


@pytest.mark.parametrize(
    "buffer",
    [
        BATCH + BATCH[:-1],
        BATCH + BATCH[:30],
        BATCH[:-1],
        struct.pack(">qi", 0, -1) + bytes(49),
        struct.pack(">qi", 0, HEADER_OCTETS - 13) + bytes(60),
        struct.pack(">qi", 0, 2**31 - 1) + bytes(49),
    ],
)
def test_a_record_set_with_a_batch_that_is_not_whole_is_a_batch_error(buffer: bytes) -> None:
    with pytest.raises(BatchError):
        split_batches(buffer)


def test_a_large_batch_is_copied_once_when_its_header_changes() -> None:
    batch = encode_batch([(1, None, bytes(1_000_000), ())])
    for change in (lambda: with_offset(batch, 5), lambda: with_producer(batch, 7, 0, 3)):
        tracemalloc.start()
        try:
            changed = change()
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(changed) == len(batch)
        assert most < 1.2 * len(batch)
