"""The octets of a body come one after the other, wherever its pieces end, and no more than are there. What it
takes to examine a batch is counted, and an allowance ends it."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from protocol.material import of, of_sizes, plain, sealed

from dafka.protocol.batch_body import Allowance, Plain, Source, TooMuchWorkError, Unfolding, Work
from dafka.protocol.batch_records import Examined, examine
from dafka.protocol.batch_walk import walk_records
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.compression import compress, is_available
from dafka.protocol.varint import decode_varint, encode_varint

NUMBERS = [0, -1, 5, 300, -70_000, 2**40]
BODY = b"".join(map(encode_varint, NUMBERS)) + bytes(100) + encode_varint(7)


def in_pieces(body: bytes, size: int, work: Work) -> Unfolding:
    return Unfolding((body[at : at + size] for at in range(0, len(body), size)), work)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("kind", [Plain, Unfolding])
def test_numbers_are_read_and_octets_passed_over_across_pieces(kind, size):
    octets = Plain(memoryview(BODY), size) if kind is Plain else in_pieces(BODY, size, Work())
    source = Source(octets)
    assert [source.varint(decode_varint) for _ in NUMBERS] == NUMBERS
    source.skip(100)
    assert source.passed == len(BODY) - 1
    assert not source.is_at_end()
    assert source.varint(decode_varint) == 7
    assert source.is_at_end()
    assert source.passed == len(BODY)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("kind", [Plain, Unfolding])
def test_leading_out_of_the_body_is_an_error(kind, size):
    def source() -> Source:
        return Source(Plain(memoryview(BODY), size) if kind is Plain else in_pieces(BODY, size, Work()))

    with pytest.raises(ValueError, match="5 octets behind the end"):
        beyond = source()
        beyond.skip(len(BODY) + 5)
        beyond.is_at_end()
    ended = source()
    ended.skip(len(BODY))
    with pytest.raises(ValueError, match="behind the end"):
        ended.varint(decode_varint)


def test_unfolding_spends_work_and_an_allowance_ends_it():
    work = Work(10_000)
    Source(in_pieces(bytes(100_000), 1000, work)).skip(100_000)
    assert work.left < 10_000
    with pytest.raises(TooMuchWorkError):
        Source(in_pieces(bytes(100_000), 1000, Allowance(20))).skip(100_000)


# -- how much it is -----------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_bomb_is_examined_in_next_to_no_memory_and_not_at_all_without_an_allowance(codec: str) -> None:
    if not is_available(codec):
        pytest.skip(f"{codec} is not installed")
    value = 100_000_000
    bomb = sealed(compress(codec, of(b"\0\0\0\1" + encode_varint(value) + bytes(value) + b"\0")), 1, codec)
    assert len(bomb) < 500_000
    tracemalloc.start()
    try:
        assert examine(bomb) == Examined(1000, 1000, True)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    began = time.process_time()
    with pytest.raises(TooMuchWorkError):
        examine(bomb, None, Allowance(4000))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "records",
    [[(1000, None, b"", (("a", b"b"),) * 30)] * 2000, [(1000, b"k" * (n % 7), b"", ()) for n in range(9000)]],
)
def test_an_allowance_is_about_what_the_work_takes(records) -> None:
    batch = encode_batch(records)
    with pytest.raises(TooMuchWorkError):
        examine(batch, None, Allowance(1000))
    allowance = Allowance(100_000)
    examine(batch, None, allowance)
    spent = (100_000 - allowance.left) / 1_000_000
    times = []
    for _ in range(3):
        began = time.thread_time()
        examine(batch)
        times.append(time.thread_time() - began)
    assert spent / 20 < min(times) < 20 * spent


def _parts(codec: str, octets: int) -> bytes:
    """A stream in as many parts as there can be, most of which have nothing in them."""
    if codec == "snappy":
        stream = bytes.fromhex("82534e4150505900 00000001 00000001")
        return stream + bytes.fromhex("00000001 00") * (octets // 5)
    empty = bytes.fromhex("28b52ffd 00 58 010000") if codec == "zstd" else compress(codec, b"")
    return empty * (octets // len(empty))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd"])
def test_empty_parts_of_a_stream_are_work(codec: str) -> None:
    """The hub would pass over those of hundreds of small batches in one turn otherwise."""
    if not is_available(codec):
        pytest.skip(f"{codec} is not installed")
    rest = compress(codec, plain(0))[16 if codec == "snappy" else 0 :]
    batch = sealed(_parts(codec, 16_000) + rest, 1, codec)
    assert examine(batch) == Examined(1000, 1000, True)
    assert list(walk_records(batch)) == [(0, 1000, False)]
    with pytest.raises(TooMuchWorkError):
        examine(batch, None, Allowance(3000))


def test_times_here_and_there_in_a_stretch_are_work() -> None:
    times = [9000] + [9000 + (-1) ** number * (64 + number * 37 % 7900) for number in range(1, 16_384)]
    batch = encode_batch([(time, None, b"", ()) for time in times])
    assert examine(batch) == Examined(min(times), max(times), True)
    with pytest.raises(TooMuchWorkError):
        examine(batch, None, Allowance(3000))


def test_octets_of_large_records_are_work() -> None:
    batch = of_sizes(*[100_000] * 9)
    with pytest.raises(TooMuchWorkError):
        examine(batch, None, Allowance(50))


def test_blocks_of_zstd_are_work() -> None:
    if not is_available("zstd"):
        pytest.skip("zstd is not installed")
    last = plain(0)
    frame = bytes.fromhex("28b52ffd 00 58") + bytes(3) * 5000
    frame += (len(last) << 3 | 1).to_bytes(3, "little") + last
    batch = sealed(frame, 1, "zstd")
    assert examine(batch) == Examined(1000, 1000, True)
    with pytest.raises(TooMuchWorkError):
        examine(batch, None, Allowance(1000))


def test_allowances_are_shared_by_batches() -> None:
    allowance = Allowance(4000)
    batch = of_sizes(*range(300))
    with pytest.raises(TooMuchWorkError):
        for _ in range(100):
            examine(batch, None, allowance)


def test_its_time_grows_with_the_records_whatever_their_sizes_are() -> None:
    """Stretches that are just long enough to be tried."""
    sizes = ([2] * 8 + [1]) * 20_000
    batch = of_sizes(*sizes)
    began = time.process_time()
    examine(batch)
    assert time.process_time() - began < 2
