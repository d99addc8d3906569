"""Octets written by hand from the specifications 15/ZMTP (2.0), 23/ZMTP (3.0) and 37/ZMTP (3.1)."""

from __future__ import annotations

SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
NULL = b"NULL" + bytes(16)
FILLER = bytes(31)
GREETING_30 = SIGNATURE + b"\x03\x00" + NULL + b"\x00" + FILLER
GREETING_31 = SIGNATURE + b"\x03\x01" + NULL + b"\x00" + FILLER

# The worked example of 37/ZMTP.
READY_DEALER = (
    b"\x04\x29" + b"\x05READY" + b"\x0bSocket-Type" + b"\x00\x00\x00\x06DEALER" + b"\x08Identity" + bytes(4)
)
READY_ROUTER = b"\x04\x1c" + b"\x05READY" + b"\x0bSocket-Type" + b"\x00\x00\x00\x06ROUTER"


def ready(socket_type: bytes, identity: bytes | None = None) -> bytes:
    """READY as a peer says it; without Identity if None."""
    body = b"\x05READY\x0bSocket-Type" + len(socket_type).to_bytes(4, "big") + socket_type
    if identity is not None:
        body += b"\x08Identity" + len(identity).to_bytes(4, "big") + identity
    return command(body)


def command(body: bytes) -> bytes:
    """A command frame."""
    return b"\x04" + bytes((len(body),)) + body if len(body) < 256 else b"\x06" + _long(body)


def greeting_2(socket_type: int, identity: bytes = b"") -> bytes:
    """All that a 2.0 peer says before its messages."""
    return SIGNATURE + b"\x01" + bytes((socket_type,)) + b"\x00" + bytes((len(identity),)) + identity


def frame(body: bytes, more: bool = False) -> bytes:
    """A message frame."""
    if len(body) < 256:
        return bytes((more, len(body))) + body
    return bytes((2 | more,)) + _long(body)


def message(*frames: bytes) -> bytes:
    """A message."""
    return b"".join(frame(body, index < len(frames) - 1) for index, body in enumerate(frames))


def _long(body: bytes) -> bytes:
    return len(body).to_bytes(8, "big") + body
