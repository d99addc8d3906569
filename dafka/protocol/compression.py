"""The codecs of record batches: everything behind the header is compressed as one piece.

Compressing is kafka-python's own (:mod:`kafka.codec`), so a codec is there exactly when kafka-python has
it. Decompressing is done here, over the libraries that ``kafka.codec`` found, for the sake of hostile
batches: kafka-python inflates whatever it is given, and a few kilobytes can claim to be gigabytes. Here
output is made step by step and ends at a limit, and a size that is only claimed allocates nothing.

``kafka.codec`` is imported on first use: the package around it takes as long to load as the rest of a node.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from dafka.protocol.batch import BatchError

DECOMPRESSED_LIMIT = 256 * 1024 * 1024  # octets that one batch may grow to

_STEP = 1024 * 1024  # octets made at a time, at least
LIBRARIES = {"snappy": "python-snappy", "lz4": "lz4", "zstd": "zstandard"}  # to be installed, by codec
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER_OCTETS = 16
# The densest element of snappy is three octets for a copy of 64, so what claims more growth is no snappy.
_SNAPPY_GROWTH = 22
_U32 = struct.Struct(">I")


def is_available(name: str) -> bool:
    """Whether kafka-python can write and this module can read the codec here."""
    if name == "gzip":
        return True
    return name in LIBRARIES and _library(name) is not None


def compress(name: str, body: bytes) -> bytes:
    """``body`` as the codec writes it. Raises BatchError (cause ``codec``) if it is not installed."""
    import kafka.codec as codec

    if not is_available(name):
        raise _unavailable(name)
    encode: Callable[[bytes], bytes] = {
        "gzip": codec.gzip_encode,
        "snappy": codec.snappy_encode,
        "lz4": codec.lz4_encode,
        "zstd": codec.zstd_encode,
    }[name]
    return encode(body)


def decompress(name: str, body: bytes) -> bytes:
    """What was compressed to ``body``.

    Raises BatchError: the codec is not installed (cause ``codec``), or the data is damaged, ends too early
    or is more than DECOMPRESSED_LIMIT octets (cause ``compression``).
    """
    if not is_available(name):
        raise _unavailable(name)
    decode = {"gzip": _gunzip, "snappy": _unsnappy, "lz4": _unlz4, "zstd": _unzstd}[name]
    try:
        return decode(body)
    except BatchError:
        raise
    except Exception as error:  # each library has errors of its own, some of them without a common base
        raise BatchError("compression", f"{name}: {error}") from error


def _library(name: str) -> Any:
    """The module behind a codec as kafka-python found it, or None."""
    import kafka.codec as codec

    return {"snappy": codec.snappy, "lz4": codec.lz4, "zstd": codec.zstd}[name]


def _unavailable(name: str) -> BatchError:
    return BatchError("codec", f"{name} is not installed; pip install {LIBRARIES.get(name, name)}")


class _Output:
    """Pieces of decompressed data, counted against the limit."""

    def __init__(self, body: bytes) -> None:
        # Decompressors copy the input that is left at each step, so steps grow with the input.
        self.step = max(_STEP, 4 * len(body))
        self._pieces: list[bytes] = []
        self._octets = 0

    def add(self, piece: bytes) -> None:
        self._octets += len(piece)
        if self._octets > DECOMPRESSED_LIMIT:
            raise BatchError("compression", f"grows to more than {DECOMPRESSED_LIMIT} octets")
        self._pieces.append(piece)

    def joined(self) -> bytes:
        return b"".join(self._pieces)


def _gunzip(body: bytes) -> bytes:
    output = _Output(body)
    while body:  # a gzip stream may have several members
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = member.decompress(body, output.step)
            if not piece and not body:
                raise BatchError("compression", "gzip: the data ends too early")
            output.add(piece)
            body = member.unconsumed_tail
        body = member.unused_data
    return output.joined()


def _unsnappy(body: bytes) -> bytes:
    """Raw snappy, or the blocks with a length each that xerial's snappy-java writes and so Kafka."""
    output = _Output(body)
    if not body.startswith(_XERIAL_MAGIC) or len(body) < _XERIAL_HEADER_OCTETS:
        output.add(_unsnappy_block(body))
        return output.joined()
    position = _XERIAL_HEADER_OCTETS
    while position < len(body):
        (length,) = _U32.unpack_from(body, position)
        position += _U32.size
        if length > len(body) - position:
            left = len(body) - position
            raise BatchError("compression", f"snappy: a block of {length} octets, {left} are left")
        output.add(_unsnappy_block(body[position : position + length]))
        position += length
    return output.joined()


def _unsnappy_block(block: bytes) -> bytes:
    claimed = shift = 0
    for octet in block[:5]:  # the preamble: the size that follows, as an unsigned varint
        claimed |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            break
    if claimed > min(len(block) * _SNAPPY_GROWTH, DECOMPRESSED_LIMIT):
        raise BatchError("compression", f"snappy: {len(block)} octets claim to be {claimed}")
    plain: bytes = _library("snappy").uncompress(block)
    return plain


def _unlz4(body: bytes) -> bytes:
    output = _Output(body)
    frame = _library("lz4").LZ4FrameDecompressor()
    output.add(frame.decompress(body, output.step))
    while not frame.eof:
        if frame.needs_input:
            raise BatchError("compression", "lz4: the data ends too early")
        output.add(frame.decompress(b"", output.step))
    if frame.unused_data:
        raise BatchError("compression", f"lz4: {len(frame.unused_data)} octets behind the end")
    return output.joined()


def _unzstd(body: bytes) -> bytes:
    output = _Output(body)
    decompressor = _library("zstd").ZstdDecompressor()
    with decompressor.stream_reader(body, read_across_frames=True) as stream:
        while piece := stream.read(_STEP):
            output.add(piece)
    return output.joined()
