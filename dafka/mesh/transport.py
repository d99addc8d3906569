"""The interface of what carries an endpoint's messages: through libzmq, or through ZMTP of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dafka.protocol.commands import Command
from dafka.protocol.errors import DafkaError
from dafka.protocol.runs import Inbound, Run
from dafka.sockets.leases import Lease
from dafka.sockets.peer import Peer

Speaker = tuple[str, int]
"""The host and the port of a peer that is connected to."""

LANE_IDS = (b"M", b"H")
"""The ID octets of what comes through lanes."""


class EndpointBindError(DafkaError, OSError):
    """An interface that peers cannot be received on."""


class Sink(Protocol):
    """The endpoint, which is told of what arrives."""

    def subscribed(self, prefix: bytes) -> None:
        """A peer has subscribed to ``prefix``, maybe not as the first one."""

    def cancelled(self, prefix: bytes) -> None:
        """No peer is subscribed to it any more."""

    def received(self, inbound: Inbound, speaker: Speaker | None = None) -> None:
        """Messages have come for any of the nodes; ``speaker``: from the endpoint at this host and port."""

    def reached(self, peer: str) -> None:
        """``subscriber`` has a connection to this peer, maybe not for the first time."""

    def expect(self, peer: str, began: float, lost: float) -> None:
        """Wait until a peer is to be connected to again that was lost, or not reached, at the time ``lost``,
        by the attempt of the time ``began``."""

    def refused(self, cause: str) -> None:
        """Something was discarded."""


class Hearing(Protocol):
    """A SUB socket, whose ``peer``s are addresses such as ``tcp://127.0.0.1:49152``."""

    def connect(self, peer: str) -> None:
        """Hear a peer, as soon as it is there and whenever it is back. Raises ZMQError or
        EndpointError for anything but an address."""

    def disconnect(self, peer: str) -> None:
        """Hear a peer no longer."""

    def subscribe(self, prefix: bytes) -> None:
        """Hear what begins with ``prefix``."""

    def unsubscribe(self, prefix: bytes) -> None:
        """Take one :meth:`subscribe` back."""


class AnyLane(Hearing, Protocol):
    """The connections through which one node hears published records and heads, and which it may stop
    reading.

    :meth:`disconnect` still lets through what a peer has sent already.
    """

    @property
    def behind(self) -> bool:
        """Whether something may have waited here for longer than ``LANE_BEHIND_SECONDS``."""

    def resume(self) -> None:
        """There may be room again."""

    def close(self) -> None:
        """Hear nothing any more."""


Note = Callable[[Inbound], None]
Deliver = Callable[[Run | Command], Run | None]
Lend = Callable[[Peer, bytes], None]


class Transport(Protocol):
    """The sockets of one endpoint. Hub side."""

    @property
    def port(self) -> int:
        """Where peers connect to."""

    @property
    def tells_reached(self) -> bool:
        """Whether the sink is told of peers that are reached."""

    @property
    def subscriber(self) -> Hearing:
        """Hears what is said to all nodes of this process."""

    @property
    def answers(self) -> Hearing:
        """Hears the answers to their FETCHes."""

    def lane(self, peers: list[str], note: Note, deliver: Deliver, lend: Lend | None) -> AnyLane:
        """A lane connected to ``peers``: ``note`` is told of what was read, ``deliver(item)`` gives back what
        there was no room for, ``lend`` is :meth:`dafka.mesh.node.Node.lend`, or None."""

    def send(self, item: Run | Command) -> None:
        """Publish. A peer that has no room for it does not get it."""

    def lease(self, first: bytes) -> Lease | None:
        """The right of any thread to send short messages whose first frames begin with ``first``, if there
        can be one."""

    def revoke(self) -> None:
        """Take all leases back."""

    def count_flight(self, peers: int, octets: int) -> None:
        """Count a message of so many octets that was sent by a lease to so many peers."""

    def look(self) -> None:
        """To be called after each round of sending and subscribing."""

    def read(self) -> bool:
        """Tell the endpoint of what has arrived, a round of it, unless that is done by itself; whether there
        was anything."""

    def metrics(self) -> dict[str, Any]:
        """By the names in :mod:`dafka.mesh.metrics`."""

    def close(self) -> None:
        """End; messages handed over may go on being sent for a moment."""
