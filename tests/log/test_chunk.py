"""Chunks: their keys, their values, and what tells a damaged one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from dafka.log.chunk import (
    BATCH,
    RAW,
    Chunk,
    ChunkKey,
    Pieces,
    decode_chunk,
    encode_chunk,
    encode_pieces,
    join_stamps,
    value_size,
)
from dafka.protocol.batch_writer import encode_batch

U64 = st.integers(0, 2**63 - 2)
CONTENTS = st.lists(st.binary(max_size=50), min_size=1, max_size=30)
TIMES = st.integers(-(2**63), 2**63 - 1)


def key_of(first: int, contents: list[bytes], stamps: list[tuple[int, int]], kind: int = RAW) -> ChunkKey:
    size = value_size(sum(map(len, contents)), len(contents), len(stamps))
    end = first + len(contents)
    return ChunkKey(7, first, end, first, end, max((t for _, t in stamps), default=0), size, kind)


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), U64), min_size=2))
def test_keys_sort_as_bytes_by_partition_and_sequence(places: list[tuple[int, int]]) -> None:
    keys = [ChunkKey(number, first, first + 1, 0, 1, -1, 5, RAW) for number, first in sorted(places)]
    packed = [key.pack() for key in keys]
    assert packed == sorted(packed)
    assert [ChunkKey.unpack(key) for key in packed] == keys
    assert all(a <= b for a, b in pairwise(packed))


def test_large_contents_are_written_from_where_they_are() -> None:
    contents = [bytes(50_000), b"x" * 70_000]
    stamps = [(2, 5)]
    key = key_of(0, contents, stamps).pack()
    value = encode_pieces(key, RAW, contents, stamps)
    assert isinstance(value, Pieces)
    assert all(piece is content for piece, content in zip(value.pieces[1:-1], contents, strict=True))
    assert bytes(value) == encode_chunk(key, RAW, contents, stamps)
    assert len(value) == len(bytes(value))


@given(CONTENTS, TIMES, st.integers(0, 2**62))
def test_a_chunk_comes_back_as_it_was(contents: list[bytes], time: int, first: int) -> None:
    stamps = [(len(contents), time)]
    key = key_of(first, contents, stamps)
    value = encode_chunk(key.pack(), RAW, contents, stamps)
    assert len(value) == key.size
    chunk = decode_chunk(key.pack(), value)
    assert (chunk.kind, chunk.first) == (RAW, first)
    assert (list(chunk.contents), list(chunk.stamps)) == (contents, stamps)


@pytest.mark.parametrize("size", [0, 10, 5000])
def test_contents_of_any_size_have_one_format(size: int) -> None:
    contents, stamps = [bytes([number]) * size for number in range(50)], [(50, 7)]
    key = key_of(3, contents, stamps).pack()
    value = encode_chunk(key, RAW, contents, stamps)
    assert list(decode_chunk(key, value).contents) == contents
    assert value[-4:] == crc32c(key + value[:-4]).to_bytes(4, "little")


@pytest.mark.parametrize("octets", [10, 10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("count", [1, 3])
def test_checked_batches_give_a_value_the_checksum_of_its_octets(octets: int, count: int) -> None:
    batches = [encode_batch([(5, None, bytes([number]) * octets, ())] * 3) for number in range(count)]
    key = key_of(3, batches, [], BATCH).pack()
    values = [bytes(encode_pieces(key, BATCH, batches, [], checked)) for checked in (False, True)]
    assert values[0] == values[1]
    assert list(decode_chunk(key, values[1]).contents) == batches


def test_a_bit_that_changes_after_a_batch_was_checked_is_found_in_the_value() -> None:
    batch = bytearray(encode_batch([(5, None, bytes(100_000), ())] * 3))
    batch[-5] ^= 1
    key = key_of(3, [bytes(batch)], [], BATCH).pack()
    value = bytes(encode_pieces(key, BATCH, [bytes(batch)], [], True))
    with pytest.raises(ValueError, match="checksum"):
        decode_chunk(key, value)


@given(CONTENTS, st.data())
def test_any_flipped_bit_in_key_or_value_is_found(contents: list[bytes], data: st.DataObject) -> None:
    stamps = [(len(contents), 5)]
    key = key_of(3, contents, stamps).pack()
    value = encode_chunk(key, RAW, contents, stamps)
    bit = data.draw(st.integers(0, 8 * (len(key) + len(value)) - 1))
    harmed = bytearray(key + value)
    harmed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError):
        decode_chunk(bytes(harmed[: len(key)]), bytes(harmed[len(key) :]))


@given(st.binary(max_size=200))
def test_damaged_values_raise_a_value_error_and_nothing_else(value: bytes) -> None:
    key = ChunkKey(1, 0, 1, 0, 1, 0, len(value), RAW).pack()
    with pytest.raises(ValueError):
        decode_chunk(key, value)


def test_a_value_of_a_later_format_says_so() -> None:
    key = ChunkKey(1, 0, 1, 0, 1, 0, 20, RAW).pack()
    body = b"\2" + bytes(15)
    with pytest.raises(ValueError, match="format 2"):
        decode_chunk(key, body + crc32c(body, crc32c(key)).to_bytes(4, "little"))


def test_raw_messages_have_the_time_of_their_round() -> None:
    chunk = Chunk(RAW, 10, [b"a", b"b", b"c"], [(1, 100), (2, 50)], 0)
    assert list(chunk.timestamps(0, 3)) == [100, 50, 50]
    assert list(chunk.timestamps(1, 1)) == [50]
    assert tuple(map(list, chunk.offsets())) == ([10, 11, 12], [11, 12, 13])


def test_stamps_of_the_same_time_become_one() -> None:
    assert join_stamps([[(1, 5), (2, 6)], [(3, 6)], [], [(1, 5)]]) == [(1, 5), (5, 6), (1, 5)]


def test_an_unknown_kind_is_refused() -> None:
    key = ChunkKey(1, 0, 1, 0, 1, 0, 20, BATCH)._replace(kind=3).pack()
    with pytest.raises(ValueError, match="kind"):
        ChunkKey.unpack(key)
