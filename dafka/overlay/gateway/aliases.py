"""Stores of the overlay as a peer of version 1 sees them: as stores of the node that it is connected to.

libbroker sends acknowledgements, and whatever else is for one store, to direct peers only. So a command that
goes out to such a peer has a sender that it can answer: this node, and a number that stands for the true
sender. A command that comes in gets its true receiver back.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from dafka.overlay.limits import MOST_ALIASES
from dafka.overlay.wire.primitives import NOBODY, EntityId, Reader, entity
from dafka.protocol.errors import MalformedMessage

_SENDER = slice(8, 32)  # in a command
_RECEIVER = slice(32, 56)
_OCTETS = 8  # of a number


def ends(payload: bytes) -> tuple[EntityId, EntityId]:
    """The sender and the receiver of a command. Raises :class:`MalformedMessage`."""
    if len(payload) < _RECEIVER.stop:
        raise MalformedMessage("truncated", f"a command of {len(payload)} octets")
    return Reader(payload[_SENDER]).entity(), Reader(payload[_RECEIVER]).entity()


class Aliases:
    """The aliases of the node ``me``. The one that was used longest ago makes room for a new one."""

    def __init__(self, me: bytes) -> None:
        self._me = me
        self._known: OrderedDict[int, EntityId] = OrderedDict()

    def outwards(self, payload: bytes) -> bytes:
        """A command with a sender that can be answered. Raises :class:`MalformedMessage`."""
        sender, _ = ends(payload)
        if sender.endpoint in (NOBODY, self._me):
            return payload
        alias = int.from_bytes(blake2b(payload[_SENDER], digest_size=_OCTETS).digest(), "big")
        self._known[alias] = sender
        self._known.move_to_end(alias)
        if len(self._known) > MOST_ALIASES:
            self._known.popitem(last=False)
        return payload[: _SENDER.start] + entity(EntityId(self._me, alias)) + payload[_SENDER.stop :]

    def inwards(self, payload: bytes) -> tuple[bytes, bytes | None]:
        """A command with its true receiver, and the endpoint of that if there was an alias.

        Raises :class:`MalformedMessage`.
        """
        _, receiver = ends(payload)
        meant = self._known.get(receiver.number) if receiver.endpoint == self._me else None
        if meant is None:
            return payload, None
        self._known.move_to_end(receiver.number)
        return payload[: _RECEIVER.start] + entity(meant) + payload[_RECEIVER.stop :], meant.endpoint
