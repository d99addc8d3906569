"""Frames of Kafka's protocol: a length, a header, a body.

    request   length i32 | key i16 | version i16 | correlation id i32 | client id string | [tags] | body
    response  length i32 | correlation id i32 | [tags] | body

*Flexible* versions have the tags, except in the response to ApiVersions.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.reader import read_string, skip_tags

Buffers = list["bytes | bytearray | memoryview"]

_HEADER = struct.Struct(">hhi")
_INT32 = struct.Struct(">i")
_RESPONSE = struct.Struct(">ii")
_SHORT = [bytes((number,)) for number in range(0x80)]  # varints of one octet
LENGTH_OCTETS = 4
HEADER_OCTETS = 10  # of a request without a client id


class Header(NamedTuple):
    """A request's header; ``end`` is where the client id ends."""

    key: int
    version: int
    correlation: int
    client_id: str | None
    end: int


def read_header(data: memoryview) -> Header:
    """The header of a frame. Raises BadRequestError."""
    if len(data) < HEADER_OCTETS:
        raise BadRequestError("short", f"a request of {len(data)} bytes; a header alone has {HEADER_OCTETS}")
    key, version, correlation = _HEADER.unpack_from(data)
    try:
        client_id, end = read_string(data, 8)
    except UnicodeDecodeError as error:
        raise BadRequestError("text", f"the client id: {error}") from error
    return Header(key, version, correlation, client_id, end)


def body_of(data: memoryview, header: Header, flexible: bool) -> int:
    """The position at which the body begins."""
    try:
        return skip_tags(data, header.end) if flexible else header.end
    except IndexError as error:
        raise BadRequestError("short", "the header ends too early") from error


def framed(correlation: int, flexible: bool, body: Sequence[Any]) -> Buffers:
    """The frame of a response with this body, as buffers to send."""
    size = 4 + flexible + sum(map(len, body))
    head = _RESPONSE.pack(size, correlation) + (b"\0" if flexible else b"")
    return [head, *body]


def varint(value: int) -> bytes:
    """An unsigned varint."""
    if value < len(_SHORT):
        return _SHORT[value]
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def array_size(count: int, flexible: bool) -> bytes:
    """The length before an array or before bytes."""
    return varint(count + 1) if flexible else _INT32.pack(count)


def string(value: str | None) -> bytes:
    """A string after its length in two octets."""
    if value is None:
        return b"\xff\xff"
    octets = value.encode()
    return len(octets).to_bytes(2, "big") + octets


def compact_string(value: str | None) -> bytes:
    """A string after a varint of its length plus one."""
    if value is None:
        return b"\0"
    octets = value.encode()
    return varint(len(octets) + 1) + octets
