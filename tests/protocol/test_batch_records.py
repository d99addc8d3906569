"""A batch has as many records as its header says, found out without looking into them."""

from __future__ import annotations

import random
import time

import pytest
from crc32c import crc32c

from dafka.protocol.batch import (
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    BatchError,
    check_batch,
    read_header,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_records import check_records
from dafka.protocol.batch_writer import encode_batch


def with_count(batch: bytes, count: int) -> bytes:
    """The batch with another number of records in its header, and a checksum that is right."""
    head = HEADER.pack(*read_header(batch)._replace(count=count, last_offset_delta=max(count - 1, 0)))
    changed = bytearray(head + batch[HEADER_OCTETS:])
    changed[CRC_START:CRC_END] = crc32c(bytes(changed[CRC_END:])).to_bytes(4, "big")
    check_batch(bytes(changed))
    return bytes(changed)


def of_sizes(*sizes: int) -> bytes:
    return encode_batch([(1000, None, bytes(size), ()) for size in sizes])


SHAPES = {
    "one record": [5],
    "no value": [0],
    "one size": [10] * 3000,
    "large": [9000] * 20,
    "very large": [3_000_000, 1],
    "stretches": [10] * 50 + [200] * 100 + [10] * 7 + [11] + [300] * 64,
    "all different": list(range(500)),
    "by turns": [1, 100] * 200,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_with_as_many_records_as_it_says_is_right(shape: str) -> None:
    check_records(of_sizes(*SHAPES[shape]))
    check_records(memoryview(of_sizes(*SHAPES[shape])))  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [-1, 1, 7, 100])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_with_more_or_fewer_records_is_refused(shape: str, more: int) -> None:
    sizes = SHAPES[shape]
    wrong = with_count(of_sizes(*sizes), len(sizes) + more)
    with pytest.raises(BatchError) as caught:
        check_records(wrong)
    assert caught.value.cause == "records"


def test_it_refuses_nothing_that_a_reader_can_read() -> None:
    """For any change, but for the sign of a length, which the reader does not look at."""
    chance = random.Random(5)
    for _ in range(2000):
        sizes = [chance.choice((3, 3, 3, 70, 200)) for _ in range(chance.choice((1, 5, 30)))]
        batch = bytearray(of_sizes(*sizes))
        batch[chance.randrange(HEADER_OCTETS, len(batch))] ^= 1 << chance.randrange(1, 8)
        batch[CRC_START:CRC_END] = crc32c(bytes(batch[CRC_END:])).to_bytes(4, "big")
        try:
            check_records(bytes(batch))
        except BatchError:
            with pytest.raises(BatchError):
                decode_batch(bytes(batch))


@pytest.mark.parametrize("codec", ["gzip"])
def test_the_count_of_a_compressed_batch_is_trusted(codec: str) -> None:
    check_records(with_count(encode_batch([(0, None, bytes(100), ())] * 9, compression=codec), 8))


def test_its_time_grows_with_the_records_whatever_their_sizes_are() -> None:
    """Stretches that are just long enough to be tried."""
    sizes = ([2] * 8 + [1]) * 20_000
    batch = of_sizes(*sizes)
    began = time.process_time()
    check_records(batch)
    assert time.process_time() - began < 2
