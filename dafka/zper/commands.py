"""Commands to a ZPReader and its responses, as frames without the envelope.

A request is the command's name and its arguments, each in a frame of its own, numbers big-endian and signed:

``OFFSET``, time in 8 octets[, entries in 4 octets]
    Time is -2 for the earliest position, -1 for the latest, otherwise milliseconds. The response is the
    status, then a frame of 8 octets for each position.
``FETCH``, position in 8 octets, maximum size in 8 octets
    The response is the status, then one frame of RAW form, the super frame.
``FETCH``, position in 8 octets, -1 in 8 octets
    The response is the status in a message of its own, then every message, as it is appended.

A request of any other shape is answered with the status INVALID_COMMAND, a position that does not exist with
INVALID_OFFSET; the status is then the only frame. Servers use :func:`parse_request`, :func:`status`,
:func:`offsets_response` and :func:`fetch_response`; clients :func:`offset_request`, :func:`fetch_request` and
the ``read_`` functions.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from dafka.protocol.errors import DafkaError, MalformedMessage

OFFSET = b"OFFSET"
FETCH = b"FETCH"
EARLIEST = -2
LATEST = -1
STREAM = -1
"""The maximum size in a FETCH that asks for a stream."""

_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")


class Status(IntEnum):
    """The first frame of each response, one octet."""

    OK = 100
    INVALID_OFFSET = 101
    INVALID_COMMAND = 102
    INTERNAL_ERROR = 255  # -1, for Java


class InvalidCommandError(MalformedMessage):
    """A request of a wrong shape; ``cause`` is one of a few words, for counting."""

    status = Status.INVALID_COMMAND


class InvalidResponseError(MalformedMessage):
    """A response that a ZPReader does not give."""


class RefusedError(DafkaError):
    """A ZPReader answered with a ``status`` other than OK."""

    def __init__(self, status: Status, detail: str) -> None:
        self.status = status
        super().__init__(f"{status.name} ({status.value}): {detail}")


class Offset(NamedTuple):
    """Which positions are there?"""

    time: int
    """EARLIEST, LATEST, or milliseconds since 1970: segments last modified before it."""
    entries: int | None
    """How many at most; None: all."""


class Fetch(NamedTuple):
    """Messages from a position on."""

    position: int
    size: int | None
    """Octets at most; None: a stream without end."""


# -- servers -------------------------------------------------------------------------------------------------


def parse_request(frames: Sequence[bytes]) -> Offset | Fetch:
    """Decode a client's command. Raises :class:`InvalidCommandError` for any other shape.

    Values are not looked at, except for the size of a FETCH: a position may be negative or beyond the end.
    """
    if not frames:
        raise InvalidCommandError("empty", "a request begins with a frame with the command's name")
    name, *arguments = frames
    if name == OFFSET:
        _check_count(OFFSET, arguments, 1, 2)
        time = _number(_LONG, arguments[0], "the time of an OFFSET")
        entries = _number(_INT, arguments[1], "how many an OFFSET asks for") if len(arguments) == 2 else 0
        return Offset(time, entries if entries > 0 else None)  # as the Java server: 0 or less is all
    if name == FETCH:
        _check_count(FETCH, arguments, 2, 2)
        position = _number(_LONG, arguments[0], "the offset of a FETCH")
        size = _number(_LONG, arguments[1], "the maximum size of a FETCH")
        if size < STREAM:
            raise InvalidCommandError("size", f"a FETCH of {size} octets: 0 or more, or -1 for a stream")
        return Fetch(position, None if size == STREAM else size)
    raise InvalidCommandError("unknown", f"{bytes(name[:32])!r} is neither OFFSET nor FETCH")


def status(code: Status) -> bytes:
    """The frame of a status; alone it is a whole response."""
    return bytes([code])


def offsets_response(positions: Sequence[int]) -> list[bytes]:
    """The response to an OFFSET. Without any position it is INVALID_OFFSET."""
    if not positions:
        return [status(Status.INVALID_OFFSET)]
    return [status(Status.OK), *map(_LONG.pack, positions)]


def fetch_response(super_frame: bytes) -> list[bytes]:
    """The response to a FETCH that asks for no stream."""
    return [status(Status.OK), super_frame]


# -- clients -------------------------------------------------------------------------------------------------


def offset_request(time: int = LATEST, entries: int | None = None) -> list[bytes]:
    """An OFFSET. Raises ValueError if ``time`` or ``entries`` is out of range."""
    frames = [OFFSET, _packed(_LONG, time, "time")]
    if entries is not None:
        frames.append(_packed(_INT, entries, "entries"))
    return frames


def fetch_request(position: int, size: int | None = None) -> list[bytes]:
    """A FETCH of ``size`` octets at most; None: a stream. Raises ValueError for a number out of range."""
    if position < 0 or (size is not None and size < 0):
        raise ValueError(f"FETCH from {position}, size {size}: neither is negative")
    return [
        FETCH,
        _packed(_LONG, position, "position"),
        _packed(_LONG, STREAM if size is None else size, "size"),
    ]


def read_offsets(frames: Sequence[bytes]) -> list[int]:
    """The positions in a response to an OFFSET; none if its status is INVALID_OFFSET.

    Raises :class:`RefusedError` for any other status but OK, :class:`InvalidResponseError` for a response of
    a wrong shape.
    """
    code, rest = _read_status(frames)
    if code == Status.INVALID_OFFSET and not rest:
        return []
    _check_ok(code, "OFFSET")
    if any(len(frame) != _LONG.size for frame in rest):
        raise InvalidResponseError("offsets", f"frames of {[*map(len, rest)][:8]} octets and not of 8")
    return [_LONG.unpack(frame)[0] for frame in rest]


def read_super_frame(frames: Sequence[bytes]) -> bytes:
    """The super frame in a response to a FETCH. Raises as :func:`read_offsets`, also for INVALID_OFFSET."""
    code, rest = _read_status(frames)
    _check_ok(code, "FETCH")
    if len(rest) != 1:
        raise InvalidResponseError("frame-count", f"{len(rest)} frames behind the status, and not 1")
    return rest[0]


def read_stream_start(frames: Sequence[bytes]) -> None:
    """Check the status that begins a stream. Raises as :func:`read_super_frame`."""
    code, rest = _read_status(frames)
    _check_ok(code, "FETCH")
    if rest:
        raise InvalidResponseError("frame-count", f"{len(rest)} frames behind the status of a stream")


def _read_status(frames: Sequence[bytes]) -> tuple[Status, Sequence[bytes]]:
    if not frames or len(frames[0]) != 1:
        first = f"the first frame is {bytes(frames[0][:8])!r}" if frames else "there are no frames"
        raise InvalidResponseError("status", first)
    try:
        return Status(frames[0][0]), frames[1:]
    except ValueError:
        raise InvalidResponseError("status", f"{frames[0][0]} is an unknown status") from None


def _check_ok(code: Status, command: str) -> None:
    if code != Status.OK:
        explained = {
            Status.INVALID_OFFSET: "there are no messages at this position",
            Status.INVALID_COMMAND: "the server does not know this command",
            Status.INTERNAL_ERROR: "something failed in the server, whose log says what",
        }
        raise RefusedError(code, f"{command}: {explained[code]}")


def _check_count(command: bytes, arguments: Sequence[bytes], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        raise InvalidCommandError(
            "argument-count", f"{command.decode()} with {len(arguments)} arguments; it takes {wanted}"
        )


def _number(layout: struct.Struct, octets: bytes, what: str) -> int:
    if len(octets) != layout.size:
        raise InvalidCommandError("argument-size", f"{what} has {len(octets)} octets and not {layout.size}")
    value: int = layout.unpack(octets)[0]
    return value


def _packed(layout: struct.Struct, value: int, what: str) -> bytes:
    try:
        return layout.pack(value)
    except struct.error:
        raise ValueError(f"{what} is {value!r}; it is a whole number of {layout.size} octets") from None
