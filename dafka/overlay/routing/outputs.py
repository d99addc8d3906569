"""Outputs of a peer for its surroundings."""

from __future__ import annotations

from typing import NamedTuple

from dafka.overlay.wire.frames import Run


class Tell(NamedTuple):
    """Send these octets, whole messages with their lengths, to a direct peer."""

    neighbour: bytes
    octets: bytes


class Relay(NamedTuple):
    """Send these messages with their lengths to a direct peer as it gives credit for them.

    ``height``: how many hops they go on behind it, at most.
    """

    neighbour: bytes
    height: int
    frames: Run


class ToLeaf(NamedTuple):
    """A message for a peer of version 1 of this node. ``is_addressed``: for this one alone."""

    leaf: bytes
    publisher: bytes
    kind: int
    topic: bytes
    payload: bytes
    is_addressed: bool


class DeliverMany(NamedTuple):
    """Several data messages on one topic for the subscribers of this node."""

    publisher: bytes
    topic: bytes
    payloads: list[bytes]


class Deliver(NamedTuple):
    """A message for the subscribers of this node."""

    publisher: bytes
    kind: int
    topic: bytes
    payload: bytes


class Discovered(NamedTuple):
    """There is a path to a peer."""

    peer: bytes


class Unreachable(NamedTuple):
    """The last path to a peer is gone."""

    peer: bytes


Output = Tell | Relay | ToLeaf | Deliver | DeliverMany | Discovered | Unreachable


def joined(outputs: list[Output]) -> list[Output]:
    """The same, with all that one neighbour is told in one :class:`Tell`."""
    words: dict[bytes, list[bytes]] = {}
    others: list[Output] = []
    for output in outputs:
        if isinstance(output, Tell):
            words.setdefault(output.neighbour, []).append(output.octets)
        else:
            others.append(output)
    return [*(Tell(neighbour, b"".join(octets)) for neighbour, octets in words.items()), *others]
