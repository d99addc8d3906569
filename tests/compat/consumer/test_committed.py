"""What a buffer of fetched batches leaves out for readers of committed records, and codecs it cannot read."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from compat.kafka.consumer._records import PartitionBuffer
from compat.kafka.errors import UnsupportedCodecError
from compat.kafka.structs import TopicPartition
from dafka.protocol.batch import with_offset, with_producer
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_writer import encode_batch

T0 = TopicPartition("t", 0)


def batch(offset: int, *values: bytes, producer: int = -1) -> bytes:
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
        batch(0, b"a", producer=1),
        batch(1, b"b", producer=2),
        batch(2, b"plain"),
        batch(3, b"c", b"d", producer=1),
        marker(5, 1, False),
        marker(6, 2, True),
        batch(7, b"e", producer=1),
        marker(8, 1, True),
    ]
    assert values(batches, [(1, 0)]) == [b"b", b"plain", b"e"]
    assert values(batches, []) == [b"a", b"b", b"plain", b"c", b"d", b"e"]
    assert values(batches[3:], [(1, 0)], 4) == [b"e"]


def test_a_producer_may_abort_twice_in_what_was_fetched():
    batches = [
        batch(0, b"a", producer=1),
        marker(1, 1, False),
        batch(2, b"b", producer=1),
        marker(3, 1, True),
        batch(4, b"c", producer=1),
        marker(5, 1, False),
        batch(6, b"d"),
    ]
    assert values(batches, [(1, 4), (1, 0)]) == [b"b", b"d"]


def test_a_fetch_that_ends_with_aborted_records_is_passed_over():
    assert values([batch(0, b"a", producer=1), batch(1, b"b", producer=1)], [(1, 0)]) == []


def test_a_codec_that_is_not_installed_is_an_error_of_its_own():
    content = bytearray(batch(0, b"a"))
    content[22] |= 5
    content[17:21] = crc32c(bytes(content[21:])).to_bytes(4, "big")
    with pytest.raises(UnsupportedCodecError, match="codec"):
        PartitionBuffer(T0, 0, [bytes(content)]).take(0, 10, None, None)
