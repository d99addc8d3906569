"""Which leaves are connected with each other, over libbroker nodes that the overlay does not see.

Data that leaves get from the overlay has a mark (:mod:`dafka.overlay.wire.marks`). With the mark on it, data
that comes out of a leaf is an echo: it went into another one. Then a probe is sent into the leaf, a command
that no store is meant by, on the same topic, so that it takes the same way round. Where it comes out the two
leaves are known to be beside each other. That is looked at again and again, and forgotten when no probe gets
through any more.
"""

from __future__ import annotations

from dafka.overlay.limits import BESIDE_SECONDS, MOST_BESIDE, PROBE_SECONDS, SETTLE_SECONDS
from dafka.overlay.wire.commands import Command, Keepalive, encode_command
from dafka.overlay.wire.primitives import EntityId

_PROBE = int.from_bytes(b"go round", "big")  # the number of both entities in a probe
_NEVER = float("-inf")


def probe(leaf: bytes, node: bytes) -> bytes:
    """The command that a node sends into a leaf."""
    return encode_command(Command(0, EntityId(leaf, _PROBE), EntityId(node, _PROBE), Keepalive(0)))


def probed(sender: EntityId, receiver: EntityId) -> bytes | None:
    """The leaf that a command was sent into, if it is a probe."""
    return sender.endpoint if sender.number == receiver.number == _PROBE else None


class WaysRound:
    """The ways round for one leaf."""

    def __init__(self) -> None:
        self._topic: bytes | None = None  # of the last echo
        self._is_new = False
        self._sent = _NEVER
        self._beside: dict[bytes, float] = {}  # and when a probe got through

    @property
    def beside(self) -> tuple[bytes, ...]:
        """The leaves that this one is connected with."""
        return tuple(sorted(self._beside)[:MOST_BESIDE]) if self._beside else ()

    def echo(self, topic: bytes) -> None:
        """Something has come back on a topic."""
        self._topic, self._is_new = topic, True

    def due(self, now: float, is_beside: bool) -> bytes | None:
        """The topic on which to send a probe now. ``is_beside``: there are other leaves beside this one."""
        wait = SETTLE_SECONDS if self._is_new else PROBE_SECONDS
        if not (self._is_new or is_beside) or now - self._sent < wait:
            return None
        self._sent, self._is_new = now, False
        return self._topic

    def came_out(self, now: float, other: bytes) -> bool:
        """A probe that was sent into another leaf has come out of this one. Whether that is new."""
        is_new = other not in self._beside
        self._beside[other] = now
        return is_new

    def forget(self, now: float) -> bool:
        """Whether there was one that no probe has come from for long."""
        late = [other for other, seen in self._beside.items() if now - seen >= BESIDE_SECONDS]
        for other in late:
            del self._beside[other]
        return bool(late)
