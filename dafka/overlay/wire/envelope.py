"""Messages behind the handshake in version 1: an envelope around data, commands, filters and pings."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from dafka.overlay.wire import primitives
from dafka.overlay.wire.primitives import Reader
from dafka.protocol.errors import MalformedMessage

DATA, COMMAND, ROUTING_UPDATE, PING, PONG = range(1, 6)
CONTROL_TOPIC = b"<$>"
LOCAL = b"<$>/local/"
"""What begins so stays in its endpoint: statuses, errors, events of stores."""

_TTL = 16  # always written, never looked at
_HEAD = struct.Struct(">16s16sBHH")
_FRAME = struct.Struct(">I16s16sBHH")
MOST_TOPIC = 0xFFFF


class Envelope(NamedTuple):
    """A message to a direct peer. ``sender`` is the last hop, ``receiver`` mostly NOBODY: everybody."""

    kind: int
    sender: bytes
    receiver: bytes
    topic: bytes
    payload: bytes
    ttl: int = _TTL


def encode_envelope(envelope: Envelope) -> bytes:
    """An envelope with its length. Raises ValueError for a topic that is too long."""
    kind, sender, receiver, topic, payload, ttl = envelope
    if len(topic) > MOST_TOPIC:
        raise ValueError(f"a topic of {len(topic)} octets, at most {MOST_TOPIC}")
    length = _HEAD.size + len(topic) + len(payload)
    return _FRAME.pack(length, sender, receiver, kind, ttl, len(topic)) + topic + payload


def decode_envelope(message: bytes) -> Envelope:
    """A message without its length. The payload is not looked at. Raises :class:`MalformedMessage`."""
    if len(message) < _HEAD.size:
        raise MalformedMessage("envelope", f"{len(message)} octets, at least {_HEAD.size}")
    sender, receiver, kind, ttl, length = _HEAD.unpack_from(message)
    if not DATA <= kind <= PONG:
        raise MalformedMessage("envelope-type", f"{kind} is not a type of envelope")
    end = _HEAD.size + length
    if end > len(message):
        raise MalformedMessage("topic-length", f"{length} octets, {len(message) - _HEAD.size} are left")
    return Envelope(kind, sender, receiver, message[_HEAD.size : end], message[end:], ttl)


def routing_update(sender: bytes, receiver: bytes, filter: Sequence[bytes]) -> Envelope:
    """Tells a peer the whole filter anew."""
    return Envelope(ROUTING_UPDATE, sender, receiver, CONTROL_TOPIC, primitives.prefixes(filter))


def read_filter(envelope: Envelope) -> tuple[bytes, ...]:
    """The filter of a routing update. Raises :class:`MalformedMessage`."""
    reader = Reader(envelope.payload)
    filter = reader.prefixes()
    if reader.left:
        raise MalformedMessage("trailing-octets", f"{reader.left} octets behind a filter")
    return filter


def ping(sender: bytes, receiver: bytes, payload: bytes) -> Envelope:
    return Envelope(PING, sender, receiver, CONTROL_TOPIC, payload)


def pong(sender: bytes, ping: Envelope) -> Envelope:
    """The answer to a ping, whatever its topic and receiver are."""
    return Envelope(PONG, sender, ping.sender, CONTROL_TOPIC, ping.payload)


__all__ = [
    "COMMAND",
    "CONTROL_TOPIC",
    "DATA",
    "LOCAL",
    "MOST_TOPIC",
    "PING",
    "PONG",
    "ROUTING_UPDATE",
    "Envelope",
    "decode_envelope",
    "encode_envelope",
    "ping",
    "pong",
    "read_filter",
    "routing_update",
]
