"""Walking through batches from anywhere: the same records as decoding, and next to no memory."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.material import codecs

from dafka.protocol import batch as batches
from dafka.protocol import compression
from dafka.protocol.batch import (
    CODECS,
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    LENGTH_END,
    RECORDS_LIMIT,
    BatchError,
    read_header,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_walk import SMALL_OCTETS, is_small, walk_records
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.compression import compress, is_available
from dafka.protocol.varint import encode_varint

crc32c = batches.crc32c
INSTALLED = [name for name in codecs if name]
octets = st.none() | st.binary(max_size=30) | st.builds(bytes, st.integers(0, 5000))
record = st.tuples(
    st.integers(0, 2**41),
    octets,
    octets,
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
)


def with_body(body: bytes, count: int, codec: str | None = None, last: int | None = None) -> bytes:
    """A batch of that body, its checksum right and its header saying ``count`` records."""
    if codec:
        body = compress(codec, body)
    length = HEADER_OCTETS - LENGTH_END + len(body)
    delta = count - 1 if last is None else last
    head = HEADER.pack(0, length, -1, 2, 0, CODECS[codec], delta, 1000, 1000, -1, -1, -1, count)
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body


def with_headers(count: int) -> bytes:
    """One record with that many headers without a name or a value."""
    fields = b"\0\0\0\1\1" + encode_varint(count) + b"\0\1" * count
    return encode_varint(len(fields)) + fields


def cause(batch: bytes) -> str:
    with pytest.raises(BatchError) as caught:
        for _ in walk_records(batch):
            pass
    return caught.value.cause


@pytest.mark.parametrize("codec", codecs)
@given(records=st.lists(record, min_size=1, max_size=30), base=st.integers(0, 2**40))
def test_the_records_are_those_that_decoding_finds(codec, records, base) -> None:
    batch = encode_batch(records, base_offset=base, compression=codec)
    columns = decode_batch(batch)
    expected = zip(
        columns.offsets, columns.timestamps, [key is not None for key in columns.keys], strict=True
    )
    assert list(walk_records(batch)) == list(expected)


@pytest.mark.parametrize("codec", codecs)
def test_records_may_lie_across_the_pieces_that_decompression_gives(codec) -> None:
    sizes = [3_000_000, 0, 1_048_560, 1, 2_000_000, *[50] * 40_000]
    batch = encode_batch([(at, b"k", bytes(size), ()) for at, size in enumerate(sizes)], compression=codec)
    found = list(walk_records(batch))
    assert found == [(number, number, True) for number in range(len(sizes))]


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_bomb_of_headers_is_walked_in_next_to_no_memory(codec) -> None:
    if not is_available(codec):
        pytest.skip(f"{codec} is not installed")
    bomb = with_body(with_headers(20_000_000), 1, codec)
    assert len(bomb) < 200_000
    tracemalloc.start()
    try:
        assert list(walk_records(bomb)) == [(0, 1000, False)]
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_decoding_ends_at_a_number_of_headers(codec, monkeypatch) -> None:
    monkeypatch.setattr("dafka.protocol.batch_reader.HEADERS_LIMIT", 1000)
    assert len(decode_batch(with_body(with_headers(1000), 1, codec)).headers[0]) == 1000
    two = with_headers(600) + with_headers(600).replace(b"\0\0\0\1\1", b"\0\0\2\1\1", 1)
    for body, count in ((with_headers(1001), 1), (two, 2)):
        with pytest.raises(BatchError, match="more than 1000 headers") as caught:
            decode_batch(with_body(body, count, codec))
        assert caught.value.cause == "records"


@pytest.mark.parametrize("codec", codecs)
def test_the_error_of_a_batch_that_decompresses_to_too_much_is_its_size(codec, monkeypatch) -> None:
    if codec is None:
        pytest.skip("nothing is decompressed")
    batch = encode_batch([(1, b"k", bytes(3_000_000), ())], compression=codec)
    monkeypatch.setattr(compression, "DECOMPRESSED_LIMIT", 2_000_000)
    assert cause(batch) == "size"


def test_a_count_that_the_body_contradicts_is_a_batch_error() -> None:
    one = b"\x0c\0\0\0\1\1\0"
    assert list(walk_records(with_body(one, 1))) == [(0, 1000, False)]
    assert cause(with_body(one, 2)) == "count"
    assert cause(with_body(one * 2, 1)) == "records"
    assert cause(with_body(one, RECORDS_LIMIT + 1)) == "count"
    if is_available("zstd"):
        assert cause(with_body(one * 10, 11, "zstd")) == "records"
        assert cause(with_body(one * 10, 9, "zstd")) == "records"


@pytest.mark.parametrize("codec", codecs)
@given(damage=st.binary(min_size=1, max_size=60), count=st.integers(0, 30))
def test_any_body_raises_nothing_but_batch_error(codec, damage, count) -> None:
    batch = with_body(damage, count, codec, last=max(count - 1, 0))
    try:
        for _ in walk_records(batch):
            pass
    except BatchError:
        pass


def test_a_codec_that_is_not_installed_is_told_from_damage(monkeypatch) -> None:
    batch = encode_batch([(1, b"k", bytes(500), ())], compression="gzip")
    monkeypatch.setattr(compression, "is_available", lambda name: False)
    assert cause(batch) == "codec"


def test_small_batches_are_walked_in_less_than_a_millisecond() -> None:
    most = (SMALL_OCTETS - HEADER_OCTETS) // 7
    batch = with_body(b"\x0c\0\0\0\1\1\0" * most, most)
    assert is_small(read_header(batch))
    assert not is_small(read_header(encode_batch([(1, b"k", bytes(500), ())], compression="gzip")))
    assert not is_small(read_header(with_body(b"\x0c\0\0\0\1\1\0" * (most + 1), most + 1)))
    times = []
    for _ in range(5):
        began = time.thread_time()
        assert len(list(walk_records(batch))) == most == read_header(batch).count
        times.append(time.thread_time() - began)
    assert min(times) < 0.005
