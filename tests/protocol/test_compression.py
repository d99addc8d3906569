"""The codecs: checked against kafka-python's, bounded whatever the data claims."""

from __future__ import annotations

import gzip
import struct
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import codec as kafka_codec
from protocol.material import codecs

from dafka.protocol import compression
from dafka.protocol.batch import BatchError
from dafka.protocol.compression import compress, decompress, decompressed, is_available

INSTALLED = [name for name in codecs if name]
bodies = st.binary(max_size=300) | st.builds(
    lambda piece, count: piece * count, st.binary(max_size=9), st.integers(0, 20_000)
)


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_available(name), reason=f"{name} is not installed")


def cause(name: str, body: bytes) -> str:
    with pytest.raises(BatchError) as caught:
        decompress(name, body)
    return caught.value.cause


@pytest.mark.parametrize("name", INSTALLED)
@given(body=bodies)
def test_decompression_returns_the_compressed_octets(name: str, body: bytes) -> None:
    assert decompress(name, compress(name, body)) == body


@pytest.mark.parametrize("name", INSTALLED)
@given(body=bodies.filter(bool))  # its snappy does not read back what it makes of nothing
def test_kafka_python_reads_what_is_compressed_here(name: str, body: bytes) -> None:
    decode = getattr(kafka_codec, f"{name}_decode")
    assert decode(compress(name, body)) == body


@pytest.mark.parametrize("name", INSTALLED)
def test_more_than_one_step_of_output(name: str) -> None:
    body = bytes(range(256)) * 20_000  # 5 MB from a few kilobytes
    assert decompress(name, compress(name, body)) == body


@pytest.mark.parametrize("name", INSTALLED)
def test_incompressible_octets_larger_than_a_step_come_back(name: str) -> None:
    body = b"".join(struct.pack(">I", number * 2654435761 % 2**32) for number in range(600_000))
    assert decompress(name, compress(name, body)) == body


def test_codecs_are_available_where_kafka_python_has_them() -> None:
    assert is_available("gzip")
    assert not is_available("brotli")
    assert is_available("snappy") == kafka_codec.has_snappy()
    assert is_available("lz4") == kafka_codec.has_lz4()
    assert is_available("zstd") == kafka_codec.has_zstd()


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4", "zstd"])
def test_a_codec_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "is_available", lambda name: False)
    assert cause(name, b"") == "codec"
    with pytest.raises(BatchError, match=name):
        compress(name, b"")


@pytest.mark.parametrize("name", INSTALLED)
def test_the_limit_is_on_what_comes_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = bytes(100_000)
    compressed = compress(name, body)
    monkeypatch.setattr(compression, "DECOMPRESSED_LIMIT", len(body))
    assert decompress(name, compressed) == body
    monkeypatch.setattr(compression, "DECOMPRESSED_LIMIT", len(body) - 1)
    assert cause(name, compressed) == "size"


@pytest.mark.parametrize("name", ["gzip", "lz4", "zstd"])
def test_a_bomb_takes_no_more_memory_than_the_limit_and_some_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_available(name):
        pytest.skip(f"{name} is not installed")
    bomb = compress(name, bytes(60_000_000))
    monkeypatch.setattr(compression, "DECOMPRESSED_LIMIT", 4_000_000)
    tracemalloc.start()
    try:
        assert cause(name, bomb) == "size"
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["gzip", "lz4", "zstd"])
def test_one_piece_of_decompressed_data_is_in_memory_at_a_time(name: str) -> None:
    if not is_available(name):
        pytest.skip(f"{name} is not installed")
    bomb = compress(name, bytes(60_000_000))
    tracemalloc.start()
    try:
        assert sum(map(len, decompressed(name, bomb))) == 60_000_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def empty_parts(name: str, octets: int) -> bytes:
    """Compressed data of about that size that is put together from parts with next to nothing in them."""
    if name == "gzip":
        return gzip.compress(b"", mtime=0) * (octets // 20)
    if name == "snappy":
        return XERIAL + b"\0\0\0\1\0" * (octets // 5)
    if name == "zstd":
        frame = compress("zstd", b"")
        return frame * (octets // len(frame))
    import lz4.frame

    whole = lz4.frame.compress(bytes(70_000), block_size=4, content_checksum=False, store_size=False)
    head, block, end = whole[:7], b"\1\0\0\x80x", bytes(4)  # a block of one octet as it is
    return head + block * (octets // len(block)) + end


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4", "zstd", "zstd's skippable"])
def test_the_time_grows_with_the_octets_however_many_parts_they_are_in(name: str) -> None:
    codec = name.split("'")[0]
    if not is_available(codec):
        pytest.skip(f"{codec} is not installed")
    if name == codec:
        body = empty_parts(codec, 16 * 1024 * 1024)
    else:
        body = bytes.fromhex("502a4d18 00000000") * (2 * 1024 * 1024)
    began = time.thread_time()
    try:
        decompress(codec, body)
    except BatchError as error:
        assert error.cause == "compression"
    assert time.thread_time() - began < 2.0


@pytest.mark.parametrize("name", INSTALLED)
@given(octets=st.binary(max_size=100))
def test_any_octets_raise_nothing_but_batch_error(name: str, octets: bytes) -> None:
    try:
        decompress(name, octets)
    except BatchError as error:
        assert error.cause == "compression"


@pytest.mark.parametrize("name", ["gzip", "lz4"])
def test_data_that_ends_too_early_is_a_batch_error(name: str) -> None:
    if not is_available(name):
        pytest.skip(f"{name} is not installed")
    compressed = compress(name, bytes(range(256)) * 50)
    for end in range(1, len(compressed)):
        assert cause(name, compressed[:end]) == "compression"


def test_gzip_may_have_several_members() -> None:
    assert decompress("gzip", gzip.compress(b"one, ") + gzip.compress(b"two")) == b"one, two"


def test_octets_behind_gzip_are_a_batch_error() -> None:
    assert cause("gzip", gzip.compress(b"one") + b"rest") == "compression"


@needs("zstd")
def test_zstd_may_have_several_frames() -> None:
    assert decompress("zstd", compress("zstd", b"one, ") + compress("zstd", b"two")) == b"one, two"


@needs("lz4")
def test_octets_behind_lz4_are_a_batch_error() -> None:
    assert cause("lz4", compress("lz4", b"one") + b"rest") == "compression"


@needs("snappy")
def test_snappy_may_be_raw_or_in_xerials_blocks() -> None:
    body = bytes(range(256)) * 1000
    assert decompress("snappy", kafka_codec.snappy_encode(body, xerial_compatible=False)) == body
    assert decompress("snappy", kafka_codec.snappy_encode(body, xerial_blocksize=1000)) == body


XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


@needs("snappy")
@pytest.mark.parametrize(
    "body",
    [
        XERIAL + struct.pack(">i", -4),  # would send a reader with signed lengths round in a circle
        XERIAL + struct.pack(">i", 2**31 - 1),
        XERIAL + struct.pack(">i", 100) + b"short",
        XERIAL + b"\0\0",
        XERIAL[:10],
        b"\xff\xff\xff\xff\x0f" + bytes(100),  # claims 4 GB
        b"\xff\xff\xff\x7f" + bytes(100),  # claims 256 MB
        b"\xff" * 100,
        b"",
    ],
)
def test_snappy_that_is_not_what_it_claims_is_a_batch_error(body: bytes) -> None:
    tracemalloc.start()
    try:
        assert cause("snappy", body) == "compression"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
