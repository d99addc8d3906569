"""Command frames of ZMTP 3.x: their names, and the properties in a READY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dafka.zmtp import limits
from dafka.zmtp.errors import HandshakeError, ProtocolError, TooLargeError

SHORT, LONG = 0x04, 0x06  # the flags of command frames


class Command(NamedTuple):
    """A command: the body of a command frame taken apart."""

    name: bytes
    data: bytes


def encode_command(name: bytes, data: bytes = b"") -> bytes:
    """A command as a frame."""
    size = 1 + len(name) + len(data)
    header = bytes((SHORT, size)) if size < 256 else bytes((LONG,)) + size.to_bytes(8, "big")
    return header + bytes((len(name),)) + name + data


def decode_command(body: bytes) -> Command:
    """The body of a command frame as a command; raises ProtocolError."""
    size = body[0] if body else 0
    if not size or len(body) <= size:
        raise ProtocolError("command", f"a command without a name: {body[:20]!r}")
    return Command(body[1 : 1 + size], body[1 + size :])


def encode_properties(properties: Mapping[bytes, bytes]) -> bytes:
    """Metadata, as it stands in READY and INITIATE."""
    return b"".join(
        bytes((len(name),)) + name + len(value).to_bytes(4, "big") + value
        for name, value in properties.items()
    )


def decode_properties(data: bytes) -> dict[bytes, bytes]:
    """Metadata by names in lower case, which have no meaning in ZMTP; raises ProtocolError."""
    properties: dict[bytes, bytes] = {}
    position, end = 0, len(data)
    while position < end:
        begin = position + 1 + data[position]
        after = begin + 4 + int.from_bytes(data[begin : begin + 4], "big")
        name = data[position + 1 : begin]
        if not name or begin + 4 > end or after > end:
            raise HandshakeError("properties", f"metadata cut short at octet {position} of {end}")
        if len(properties) >= limits.HANDSHAKE_PROPERTIES:
            raise TooLargeError("handshake-size", f"more than {limits.HANDSHAKE_PROPERTIES} properties")
        properties[name.lower()] = data[begin + 4 : after]
        position = after
    return properties


def decode_reason(data: bytes) -> str:
    """The reason in an ERROR command, printable."""
    return data[1 : 1 + data[0]].decode("ascii", "backslashreplace") if data else ""
