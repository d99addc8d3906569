"""The codecs of record batches: everything behind the header is compressed as one piece.

Compressing is kafka-python's own (:mod:`kafka.codec`), so a codec is there exactly when kafka-python has
it. Decompressing is done here, over the libraries that ``kafka.codec`` found, for the sake of hostile
batches: kafka-python inflates whatever it is given, and a few kilobytes can claim to be gigabytes. Here
output is made step by step and ends at a limit, a size that is only claimed allocates nothing, and the time
grows with the octets that go in and come out: input is given to the libraries in slices, because most of
them copy what they have not used, and the pieces that a stream may be put together from (members, blocks)
are counted.

``kafka.codec`` is imported on first use: the package around it takes as long to load as the rest of a node.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

from dafka.protocol.batch import BatchError

DECOMPRESSED_LIMIT = 256 * 1024 * 1024  # octets that one batch may grow to

PARTS_LIMIT = 10_000  # members or blocks that one batch is put together from; each costs a call
STEP = 1024 * 1024  # octets made at a time
_SLICE = 64 * 1024  # octets given to a decompressor at a time
_FIRST_SLICE = 512  # the first of a gzip member, which may be as short as 20 octets
LIBRARIES = {"snappy": "python-snappy", "lz4": "lz4", "zstd": "zstandard"}  # to be installed, by codec
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER_OCTETS = 16
_XERIAL_LENGTH = int.from_bytes(_XERIAL_MAGIC[:4], "big")  # where a block's length would stand
# The densest element of snappy is three octets for a copy of 64: data that claims more growth is invalid.
_SNAPPY_GROWTH = 22
_U32 = struct.Struct(">I")
_ZSTD_HEAD = 18  # octets of a frame's header, at most
_ZSTD_SKIPPABLE = 0x184D2A50  # magic numbers of frames without content: this one and the next fifteen
_ZSTD_REPEATED = 1  # the type of a block that is one octet, to be repeated
_BLOCKS_OF_A_PIECE = 32  # of zstd, which are passed over in the time of another part
_SPARE = 4
_spare_zstd: list[Any] = []  # decompressors, which are dear to make, and of use to one thread at a time


def is_available(name: str) -> bool:
    """Whether the codec is installed: kafka-python can write it and this module can read it."""
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
    """Decompress ``body``.

    Raises BatchError: the codec is not installed (cause ``codec``), or the data is damaged, ends too early
    (cause ``compression``) or is more than DECOMPRESSED_LIMIT octets (cause ``size``).
    """
    return b"".join(decompressed(name, body))


def decompressed(name: str, body: bytes, step: int = STEP) -> Iterator[bytes]:
    """:func:`decompress` in pieces, one at a time in memory: up to ``step`` octets, or a block of snappy.

    Parts without octets are pieces of none: each takes microseconds, and a few kilobytes may have thousands.
    """
    if not is_available(name):
        raise _unavailable(name)
    decode = {"gzip": _gunzip, "snappy": _unsnappy, "lz4": _unlz4, "zstd": _unzstd}[name]
    octets = 0
    try:
        for piece in decode(body, step):
            octets += len(piece)
            if octets > DECOMPRESSED_LIMIT:
                raise _too_large()
            yield piece
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


def _too_large() -> BatchError:
    return BatchError("size", f"decompresses to more than {DECOMPRESSED_LIMIT} octets")


def _gunzip(body: bytes, step: int) -> Iterator[bytes]:
    view = memoryview(body)
    parts = position = 0
    while position < len(view):  # a gzip stream may have several members
        parts = _count_part("gzip", parts)
        member = zlib.decompressobj(wbits=31)
        size = _FIRST_SLICE
        while not member.eof:
            data: bytes | memoryview = view[position : position + size]
            if not data:
                raise BatchError("compression", "gzip: the data ends too early")
            position += len(data)
            size = min(2 * size, _SLICE)
            while data and not member.eof:
                piece = member.decompress(data, step)
                if piece:
                    yield piece
                data = member.unconsumed_tail
        position -= len(member.unused_data)
        yield b""


def _unsnappy(body: bytes, step: int) -> Iterator[bytes]:
    """Raw snappy, or the blocks with a length each that xerial's snappy-java writes and so Kafka."""
    if not body.startswith(_XERIAL_MAGIC) or len(body) < _XERIAL_HEADER_OCTETS:
        yield _unsnappy_block(body)
        return
    view = memoryview(body)
    position, parts = _XERIAL_HEADER_OCTETS, 0
    while position < len(body):
        parts = _count_part("snappy", parts)
        (length,) = _U32.unpack_from(body, position)
        if length == _XERIAL_LENGTH:  # another stream begins
            position += _XERIAL_HEADER_OCTETS
            yield b""
            continue
        position += _U32.size
        if length > len(body) - position:
            left = len(body) - position
            raise BatchError("compression", f"snappy: a block of {length} octets, {left} are left")
        yield _unsnappy_block(bytes(view[position : position + length]))
        position += length


def _unsnappy_block(block: bytes) -> bytes:
    claimed = shift = 0
    for octet in block[:5]:  # the preamble: the size that follows, as an unsigned varint
        claimed |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            break
    if claimed > len(block) * _SNAPPY_GROWTH:
        raise BatchError("compression", f"snappy: {len(block)} octets claim to be {claimed}")
    if claimed > DECOMPRESSED_LIMIT:
        raise _too_large()
    plain: bytes = _library("snappy").uncompress(block)
    return plain


def _unlz4(body: bytes, step: int) -> Iterator[bytes]:
    view = memoryview(body)
    frame = _library("lz4").LZ4FrameDecompressor()
    position = 0
    while not frame.eof:
        data = b""
        if frame.needs_input:
            data = bytes(view[position : position + _SLICE])
            if not data:
                raise BatchError("compression", "lz4: the data ends too early")
            position += len(data)
        piece = frame.decompress(data, step)
        if piece:
            yield piece
    behind = len(body) - position + len(frame.unused_data or b"")
    if behind:
        raise BatchError("compression", f"lz4: {behind} octets behind the end")


def _unzstd(body: bytes, step: int) -> Iterator[bytes]:
    library = _library("zstd")
    if 0 < library.frame_content_size(body) <= step:  # of an empty one the library does not look behind it
        whole = _zstd_frame(library, body)
        if whole is not None:
            yield whole
            return
    parts = position = 0
    while position < len(body):  # several frames may follow each other
        parts = _count_part("zstd", parts)
        position = yield from _zstd_frame_end(library, body, position)
    with library.ZstdDecompressor().stream_reader(body, read_across_frames=True) as stream:
        while piece := stream.read(step):
            yield piece


def _zstd_frame(library: Any, body: bytes) -> bytes | None:
    """What a single frame that says its size unfolds to; None if it is not one, or not whole."""
    try:
        decompressor = _spare_zstd.pop()
    except IndexError:
        decompressor = library.ZstdDecompressor()
    try:
        plain: bytes = decompressor.decompress(body, allow_extra_data=False)
    except library.ZstdError:
        return None
    if len(_spare_zstd) < _SPARE:
        _spare_zstd.append(decompressor)
    return plain


def _zstd_frame_end(library: Any, body: bytes, position: int) -> Generator[bytes, None, int]:
    """Where the frame at ``position`` ends (RFC 8878, section 3.1). The library does not notice a frame that
    ends too early if it is read piece by piece. Yields pieces of no octets, one for some blocks."""
    head = body[position : position + _ZSTD_HEAD]
    if len(head) >= 8 and _ZSTD_SKIPPABLE <= int.from_bytes(head[:4], "little") < _ZSTD_SKIPPABLE + 16:
        position += 8 + int.from_bytes(head[4:8], "little")
    else:
        checked = library.get_frame_parameters(head).has_checksum
        position += library.frame_header_size(head)
        last = blocks = 0
        while not last:
            blocks += 1
            if not blocks % _BLOCKS_OF_A_PIECE:
                yield b""
            block = int.from_bytes(body[position : position + 3], "little")
            last, kind, size = block & 1, block >> 1 & 3, block >> 3
            position += 3 + (1 if kind == _ZSTD_REPEATED else size)
            if position > len(body):
                break
        position += 4 if checked else 0
    if position > len(body):
        raise BatchError("compression", "zstd: the data ends too early")
    yield b""
    return position


def _count_part(name: str, parts: int) -> int:
    if parts >= PARTS_LIMIT:
        raise BatchError("compression", f"{name}: in more than {PARTS_LIMIT} parts")
    return parts + 1
