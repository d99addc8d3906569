"""Lone records: a producer's record that nothing else is in front of is sent by its caller's own thread.

To wake the hub's thread takes as long as all else that is done for a record in its process. So the hub gives
a :class:`~dafka.sockets.leases.Lease` of the connections once a record came alone, and the next one goes out
at once. The hub counts and retains it afterwards (:meth:`LoneRecords.take`), before it does anything else for
the producer: an acknowledgement may come sooner than it hears of the record from the thread.

Records stay in order. A thread sends only while none waits for the hub and the hub knows of all before; and
the hub takes the lease back before it takes records out of their queue, until they are in those of the
connections, where they keep other threads from sending.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from dafka.hub.hub import Hub
from dafka.mesh.endpoint import Endpoint
from dafka.mesh.node import Node
from dafka.mesh.run_octets import opening
from dafka.sockets.leases import Flight, Lease, is_traced
from dafka.zmtp.encoding import header


class Sender(Node):
    """The hub side of a producer, as far as threads that send have to do with it."""

    endpoint: Endpoint
    full: bool
    """Nothing can be sent now."""
    next: int
    """The sequence of the next record."""
    pending: deque[Any]
    """What waits for the hub."""
    sent_bytes: int
    """The contents of all that was ever handed over."""


class LoneRecords:
    """Those of one producer, whose hub side is ``node``."""

    def __init__(self, hub: Hub, node: Sender, address: bytes, topic: bytes) -> None:
        self.stopped = False
        """Nothing is sent any more; set by any thread."""
        self._hub = hub
        self._node = node
        self._first = b"M" + topic
        self._opening = opening(address, topic)
        self.lease: Lease | None = None
        """Given by the hub; None: :meth:`send` is of no use now."""
        self._kept: Lease | None = None  # to be given again while it holds
        self._record: tuple[bytes, Flight] | None = None  # that the role does not know of yet

    def send(self, content: bytes) -> int | None:
        """From any thread: publish a record now and return its sequence. The hub is to be signalled then.

        None if it cannot be done: the record has to take its way through the hub.
        """
        lease, node = self.lease, self._node
        if lease is None or self._hub.stopped or is_traced():
            return None
        queued, sequence, size = lease.queued, node.next, len(content)
        octets = self._opening + sequence.to_bytes(8, "big") + header(size, False) + content
        flight = Flight(lease.outboxes, octets)
        record = content, flight
        begun = False
        try:
            try:
                # One stretch, as dafka.sockets.leases has it: no call in here but those of the iterator, no
                # loop, and no jump where everything is as it should be.
                if (
                    lease is self.lease
                    and lease.version == queued.version
                    and not queued.held
                    and queued.flight is None
                    and sequence == node.next
                    and not node.pending
                    and self._record is None
                    and not node.full
                    and not self.stopped
                ):
                    queued.flight = flight
                    self._record = record
                    node.next = sequence + 1
                    node.sent_bytes += size
                    begun = True
                    flight.sent += flight.sending
                    flight.ended = True
                    if flight.sent == flight.whole:
                        queued.flight = None
            finally:
                # Before anything else, and Python 3.10 looks for signals in front of all but a try: while a
                # handler of one waits for the hub, the hub must not wait for this thread.
                try:
                    flight.ended = True
                finally:
                    pass
        except OSError:
            pass  # its connection has no room, or is no more: the hub sees to that in :meth:`take`
        return sequence if begun else None

    @property
    def waiting(self) -> int:
        """How many records the role does not know of yet: one or none."""
        return self._record is not None

    # -- in the hub -----------------------------------------------------------------------------

    def take(self) -> bytes | None:
        """The record that was sent since the last call, if one was. It is the role's from now on.

        What its connections did not take of it is sent now.
        """
        record = self._record
        if record is None:
            return None
        content, flight = record
        self._node.endpoint.count_flight(len(flight.outboxes), len(flight.octets), len(content))
        self._record = None
        return content

    def revoke(self) -> bool:
        """Let nothing pass what the hub takes out of the queue now. Whether a thread might have sent."""
        lease, self.lease = self.lease, None
        return lease is not None

    def allow(self) -> None:
        """The last record came alone: the next one may be sent by its thread."""
        lease = self._kept
        if lease is None or lease.version != lease.queued.version:
            lease = self._kept = self._node.endpoint.lease(self._node, self._first)
        self.lease = lease
