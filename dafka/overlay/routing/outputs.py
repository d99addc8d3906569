"""What a peer asks its surroundings to do, and tells them."""

from __future__ import annotations

from typing import NamedTuple


class Tell(NamedTuple):
    """Send these octets, whole messages with their lengths, to a direct peer."""

    neighbour: bytes
    octets: bytes


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


Output = Tell | Deliver | Discovered | Unreachable
