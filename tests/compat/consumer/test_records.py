"""Batches become records: by position, with gaps, control batches and damage."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.structs import TopicPartition

from compat.kafka.consumer._records import PartitionBuffer
from dafka.protocol.batch import CONTROL_BIT, with_offset, with_producer
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_writer import encode_batch

T0 = TopicPartition("t", 0)


def batch(base_offset: int, *values: bytes | None) -> bytes:
    return encode_batch([(7, None, value, ()) for value in values], base_offset=base_offset)


def taken(buffer: PartitionBuffer, position: int, limit: int = 100) -> tuple[list[int], int]:
    rows, end = buffer.take(position, limit, None, None)
    assert all(type(row) is ConsumerRecord for row in rows)
    return [row.offset for row in rows], end


def test_records_come_from_the_position_on() -> None:
    buffer = PartitionBuffer(T0, 12, [batch(10, b"a", b"b", b"c", b"d"), batch(14, b"e")])
    assert taken(buffer, 12) == ([12, 13], 14)
    assert taken(buffer, 14) == ([14], 15)
    assert taken(buffer, 15) == ([], 15)


def test_a_limit_leaves_the_rest_for_later_and_asking_again_gives_the_same() -> None:
    buffer = PartitionBuffer(T0, 0, [batch(0, b"a", b"b", b"c")])
    assert taken(buffer, 0, 2) == ([0, 1], 2)
    assert taken(buffer, 0, 2) == ([0, 1], 2)
    assert taken(buffer, 2, 2) == ([2], 3)


def test_a_gap_between_batches_is_skipped() -> None:
    buffer = PartitionBuffer(T0, 0, [batch(0, b"a"), batch(5, b"b")])
    assert taken(buffer, 1) == ([5], 6)


@pytest.mark.parametrize("position", [0, 9, 13, 500])
def test_a_position_outside_of_the_buffer_finds_nothing_and_stays(position: int) -> None:
    buffer = PartitionBuffer(T0, 10, [batch(10, b"a", b"b")])
    assert taken(buffer, position) == ([], position)


def test_transaction_markers_are_skipped() -> None:
    marker = bytearray(batch(0, b"marker"))
    marker[21:23] = struct.pack(">h", CONTROL_BIT)
    marker[17:21] = struct.pack(">I", crc32c(bytes(marker[21:])))
    buffer = PartitionBuffer(T0, 0, [bytes(marker), batch(1, b"a")])
    assert taken(buffer, 0) == ([1], 2)
    only = PartitionBuffer(T0, 0, [bytes(marker)])
    assert taken(only, 0) == ([], 1)


def test_a_damaged_batch_is_a_corrupt_record_each_time_it_is_asked_for() -> None:
    damaged = bytearray(batch(1, b"abc"))
    damaged[-2] ^= 1
    buffer = PartitionBuffer(T0, 0, [batch(0, b"x"), bytes(damaged)])
    assert taken(buffer, 0) == ([0], 1)
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="offset 1"):
            taken(buffer, 1)


def test_sizes_of_nulls_are_minus_one() -> None:
    content = encode_batch(
        [(1, None, b"v", ()), (2, b"key", None, [("h", b"1"), ("n", None)]), (3, b"", b"", ())]
    )
    rows, _ = PartitionBuffer(T0, 0, [with_offset(content, 0, 3)]).take(0, 9, None, None)
    sizes = [(row.serialized_key_size, row.serialized_value_size, row.serialized_header_size) for row in rows]
    assert sizes == [(-1, 1, -1), (3, -1, 3), (0, 0, -1)]
    assert [row.leader_epoch for row in rows] == [3, 3, 3]
    assert rows[1].headers == [("h", b"1"), ("n", None)] and rows[0].headers == []


def test_records_before_one_that_cannot_be_deserialized_are_delivered() -> None:
    from kafka.serializer import DeserializeWrapper

    buffer = PartitionBuffer(T0, 0, [batch(0, b"1", b"2", b"3", b"x", b"5")])
    number = DeserializeWrapper(int)
    position, values = 0, []
    with pytest.raises(ValueError, match="invalid literal"):
        while True:
            rows, position = buffer.take(position, 100, None, number)
            values += [row.value for row in rows]
    assert (values, position) == ([1, 2, 3], 3)


# -- readers of committed records ------------------------------------------------------------------


def sent(offset: int, *values: bytes, producer: int = -1) -> bytes:
    content = encode_batch([(0, None, value, ()) for value in values])
    return with_offset(with_producer(content, producer, 0, 0, transactional=producer >= 0), offset)


def marker(offset: int, producer: int, commit: bool) -> bytes:
    return with_offset(encode_marker(0, producer, 0, commit=commit), offset)


def values(batches: list[bytes], aborted: list[tuple[int, int]], position: int = 0) -> list[bytes]:
    buffer = PartitionBuffer(T0, position, batches, aborted)
    found = []
    while True:
        rows, end = buffer.take(position, 100, None, None)
        if not rows:
            assert end == buffer.end
            return found
        found += [row.value for row in rows]
        position = end


def test_records_of_aborted_transactions_are_left_out_and_of_others_not():
    batches = [
        sent(0, b"a", producer=1),
        sent(1, b"b", producer=2),
        sent(2, b"plain"),
        sent(3, b"c", b"d", producer=1),
        marker(5, 1, False),
        marker(6, 2, True),
        sent(7, b"e", producer=1),
        marker(8, 1, True),
    ]
    assert values(batches, [(1, 0)]) == [b"b", b"plain", b"e"]
    assert values(batches, []) == [b"a", b"b", b"plain", b"c", b"d", b"e"]
    assert values(batches[3:], [(1, 0)], 4) == [b"e"]


def test_a_producer_may_abort_twice_within_one_fetch():
    batches = [
        sent(0, b"a", producer=1),
        marker(1, 1, False),
        sent(2, b"b", producer=1),
        marker(3, 1, True),
        sent(4, b"c", producer=1),
        marker(5, 1, False),
        sent(6, b"d"),
    ]
    assert values(batches, [(1, 4), (1, 0)]) == [b"b", b"d"]


def test_a_fetch_of_aborted_records_only_has_no_records():
    assert values([sent(0, b"a", producer=1), sent(1, b"b", producer=1)], [(1, 0)]) == []


def test_a_codec_that_is_not_installed_is_an_error_of_its_own():
    content = bytearray(sent(0, b"a"))
    content[22] |= 5
    content[17:21] = crc32c(bytes(content[21:])).to_bytes(4, "big")
    with pytest.raises(UnsupportedCodecError, match="codec"):
        PartitionBuffer(T0, 0, [bytes(content)]).take(0, 10, None, None)
