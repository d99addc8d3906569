"""Credit among nodes of ours (version 2): how much more of what goes on for so many hops may be sent.

See :mod:`dafka.overlay.flow`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from dafka.overlay.limits import MOST_HOPS
from dafka.overlay.wire.frames import frame
from dafka.protocol.errors import MalformedMessage

CREDIT = 24
"""The type, in one numbering with those of :mod:`dafka.overlay.wire.routed`."""

_CREDIT = struct.Struct(">BBI")


class Credit(NamedTuple):
    height: int
    octets: int


def encode_credit(credit: Credit) -> bytes:
    """A message with its length."""
    return frame(_CREDIT.pack(CREDIT, *credit))


def decode_credit(message: bytes) -> Credit:
    """A message without its length. Raises :class:`MalformedMessage`."""
    if len(message) != _CREDIT.size:
        raise MalformedMessage("credit-length", f"{len(message)} octets, not {_CREDIT.size}")
    _, height, octets = _CREDIT.unpack(message)
    if height > MOST_HOPS:
        raise MalformedMessage("credit-height", f"{height} hops, at most {MOST_HOPS}")
    return Credit(height, octets)
