"""Leases: how a thread beside the hub's sends a short message itself, without waking the hub first.

A publisher's hub gives a :class:`Lease` for what it would send to the same few peers again. With it a thread
sends a message (:class:`Flight`) in one call of the system for each peer, and tells the hub afterwards. No
lock is shared with the hub, which must not wait for a thread that the system, or a handler of a signal, keeps
from running. In its place:

- A flight begins only while nothing waits to be sent (``Queued.held``) and no other one is under way
  (``Queued.flight``). The hub sends nothing while one is under way: it looks again in a later turn.
- What decides that and what begins it stand in one stretch of code in which the interpreter changes to no
  other thread and looks for no signal: CPython does so behind a call, in a loop, and before version 3.11
  where a condition makes it jump. The only call in there is the system's, made by ``starmap`` from a list's
  ``+=``, which also keeps the result: there is no moment at which a record is sent and nobody knows.
- Nothing of the user's runs in a flight, as it may wait for what the hub cannot send meanwhile: a signal's
  handler only behind ``Flight.ended``, and no finalizer, because nothing is allocated that could set off
  Python's garbage collector, which until version 3.11 looks for its work at such places.
- A lease is of no more use once ``Queued.version`` has moved on: with each subscription and connection that
  comes or goes.
- What a peer's connection did not take, all of it or a part, stays a flight until the hub has put the rest at
  the head of that connection's queue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from typing import Any, Protocol

IS_SAFE = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether the interpreter is one of those of which the above is true."""


def is_traced() -> bool:
    """Whether something may be called at each line of the calling thread's code, so that no stretch of it is
    one: by debuggers, and programs that find out which lines are run."""
    if sys.gettrace() is not None:
        return True
    return sys.version_info >= (3, 12) and any(map(sys.monitoring.get_tool, range(6)))


class Queue(Protocol):
    """The queue of one connection, as a flight knows it."""

    socket: Any

    def put_first(self, octets: bytes) -> None:
        """Queue octets in front of all others."""


class Queued(Protocol):
    """All queues of a publisher together."""

    held: int
    flight: Flight | None
    version: int

    def is_free(self) -> bool:
        """In the hub: whether no other thread is sending. What one could not send is queued first."""


class Lease:
    """The right to send to these peers. Made in the hub, used by any thread."""

    __slots__ = ("outboxes", "queued", "version")

    def __init__(self, queued: Queued, outboxes: Sequence[Queue]) -> None:
        self.queued = queued
        self.outboxes = outboxes
        self.version = queued.version


class Flight:
    """One message on its way to the peers of a lease, in the hands of one thread.

    It is sent by ``flight.sent += flight.sending``; then :attr:`ended` is set, whatever came of it.
    """

    __slots__ = ("ended", "octets", "outboxes", "sending", "sent", "whole")

    def __init__(self, outboxes: Sequence[Queue], octets: bytes) -> None:
        self.outboxes = outboxes
        self.octets = octets
        self.sending: Iterator[int] = chain.from_iterable(
            [starmap(outbox.socket.send, ((octets,),)) for outbox in outboxes]
        )
        """Sends to the next peer with each item, which says how many octets were taken."""
        self.sent: list[int] = []
        """Octets taken, by peer."""
        self.whole = [len(octets)] * len(outboxes)
        self.ended = False
        """Whether the thread is done with it."""

    def hand_over(self) -> int:
        """In the hub: have the rest sent to each peer. How many octets these are."""
        sent = self.sent + [0] * (len(self.outboxes) - len(self.sent))
        for outbox, taken in zip(self.outboxes, sent, strict=True):
            outbox.put_first(self.octets[taken:])
        return sum(self.whole) - sum(sent)
