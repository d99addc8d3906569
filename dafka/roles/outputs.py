"""What roles ask of their shell, besides the commands and runs that are to be published."""

from __future__ import annotations

from typing import NamedTuple

from dafka.protocol.beacons import NodeBeacon, TowerBeacon
from dafka.protocol.commands import Command
from dafka.protocol.runs import Run


class Subscribe(NamedTuple):
    """Subscribe the endpoint to ``prefix`` (an ID octet and a ZeroMQ topic) on behalf of this role."""

    prefix: bytes


class Unsubscribe(NamedTuple):
    """Undo :class:`Subscribe`."""

    prefix: bytes


class Deliver(NamedTuple):
    """Consumer: hand these records to the user. In order, no gaps, none twice."""

    topic: bytes
    address: bytes
    first: int
    contents: list[bytes]


class Gap(NamedTuple):
    """Consumer: the records ``first`` to ``next - 1`` of a partition no longer exist anywhere."""

    topic: bytes
    address: bytes
    first: int
    next: int


class Append(NamedTuple):
    """Store: append these records, and say so with ``stored`` or ``not_stored`` once that is decided."""

    topic: bytes
    address: bytes
    first: int
    contents: list[bytes]


class Serve(NamedTuple):
    """Store: send ``count`` records from ``first`` on from the log to ``recipient`` as DIRECT-RECORDs."""

    recipient: bytes
    topic: bytes
    address: bytes
    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count


class Connect(NamedTuple):
    """Connect the subscriber socket to a peer's endpoint."""

    endpoint: bytes


class Disconnect(NamedTuple):
    """Disconnect from a peer's endpoint."""

    endpoint: bytes


Output = (
    Command
    | Run
    | Subscribe
    | Unsubscribe
    | Deliver
    | Gap
    | Append
    | Serve
    | Connect
    | Disconnect
    | NodeBeacon
    | TowerBeacon
)
