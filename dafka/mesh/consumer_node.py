"""The hub side of a consumer: its role on an endpoint, and the records that wait for the user's thread."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dafka.hub.hub import Hub, Waiter
from dafka.mesh import limits
from dafka.mesh.address import address_name, topic_name
from dafka.mesh.endpoint import Endpoint, EndpointOptions, Node
from dafka.mesh.inbox import AllRuns, Inbox
from dafka.mesh.lone_reads import LoneReads
from dafka.mesh.watch import Watch
from dafka.protocol.commands import Claim, Command
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.outputs import Deliver, Gap, Hold, Output
from dafka.sockets.loans import Loans
from dafka.sockets.peer import Peer

log = logging.getLogger(__name__)


class ConsumerNode(Node):
    """A consumer role on an endpoint; hub side, but for ``take`` and ``wait``."""

    hello_ids = b"W"

    def __init__(self, hub: Hub, options: EndpointOptions, role: ConsumerRole, inbox: Inbox) -> None:
        self.closed = False
        self.gaps: deque[Gap] = deque(maxlen=limits.GAPS_KEPT)
        self._hub = hub
        self._role = role
        self._watch = Watch(f"the consumer {address_name(role.address)}", role)
        self._inbox = inbox
        self._lone = LoneReads(hub, role, inbox if isinstance(inbox, AllRuns) else None)
        self._waiter: Waiter | Loans | None = None
        self._has_woken = False  # the last run woke somebody who waits as a whole thread
        self._records = self._bytes = 0  # in the inbox, or taken and not yet given back as room
        self._delivered = self._delivered_bytes = 0  # ever
        self._replaced = self._replaced_bytes = 0  # in the inbox, since the role was told of its room
        self._lost = 0
        self._replaced_ever = 0
        self._behind = 0.0  # when published records may last have waited, while that is of interest
        # What the hub was told of, of all that the user has taken: written by the user's thread only.
        self._told_records = self._told_bytes = 0
        self._given_records = self._given_bytes = 0  # of that again, what the role knows of
        # Of what the user's thread has received itself.
        self._counted_records = self._counted_bytes = self._counted_heads = 0
        self.endpoint = Endpoint.shared(hub, options)
        role.know_stores(self.endpoint.stores)
        self._carry(role.start())
        self.endpoint.attach(self)
        self._carry(role.set_room(time.monotonic(), limits.ROOM_RECORDS, limits.ROOM_BYTES))

    # -- the user's thread ----------------------------------------------------------------------

    def take(self) -> Deliver | None:
        """Make the next run the current one; it, or None."""
        inbox = self._inbox
        run = inbox.take()
        # Room is given back in large pieces; small ones wait for the next tick, and the hub need not wake.
        if (
            inbox.taken_records - self._told_records > limits.ROOM_RECORDS // 4
            or inbox.taken_octets - self._told_bytes > limits.ROOM_BYTES // 4
        ):
            self._told_records, self._told_bytes = inbox.taken_records, inbox.taken_octets
            self._hub.post(self._give_room)
        return run

    def wait(self, timeout: float | None) -> None:
        """Wait for a run, for the end, or for the timeout; or for less."""
        lone, before = self._lone, self._waiter  # the handler of a signal may wait within a wait
        bell = lone.bell()
        waiter = self._waiter = bell or Waiter()
        try:
            if self._inbox or self.closed:
                pass
            elif bell is not None:
                lone.wait(bell, timeout)
            elif not (waiter.is_native and lone.may_come):
                waiter.wait(timeout)
        finally:
            self._waiter = before
            if before is not None and (self._inbox or self.closed):
                before.set()
            waiter.close()

    def look(self) -> bool:
        """Whether there is a run; also one that has come and only waits for a thread to receive it."""
        if self._lone.may_come:
            self.wait(0)
        return bool(self._inbox)

    # -- the hub --------------------------------------------------------------------------------

    @property
    def known_as(self) -> bytes:
        return self._role.address

    def metrics(self) -> dict[str, Any]:
        role = self._role
        self._give_room()
        return {
            "records_in": self._delivered,
            "bytes_in": self._delivered_bytes,
            "fetches_sent": role.fetches,
            "fetches_timed_out": role.timeouts,
            "records_lost": self._lost,
            "records_replaced": self._replaced_ever,
            "partitions": len(role.positions),
            "partitions_refused": role.refused,
            "partitions_unanswered": role.unanswered,
            "lag": role.lag,
            "inbox_records": self._records,
            "inbox_bytes": self._bytes,
            **self.endpoint.metrics(),
        }

    def subscribe(self, topic: bytes) -> None:
        self._have(self._role.subscribe, topic)

    def unsubscribe(self, topic: bytes) -> None:
        self._have(self._role.unsubscribe, topic)

    def on_run(self, run: Run) -> Run | None:
        self._has_woken = False
        return self._have(self._role.receive_run, run)

    def on_command(self, command: Command) -> None:
        now = time.monotonic()
        unread = type(command) is Claim and self.endpoint.is_behind(self)
        if unread:
            self._behind = now
        self._have(self._role.receive, command, unread=unread)

    def on_subscription(self, prefix: bytes) -> None:
        self._have(self._role.peer_subscribed, prefix)

    def lend(self, peer: Peer, partition: bytes) -> None:
        # A C producer, whose address is that of its beacon, is not trusted behind each of its records.
        if self._has_woken and partition not in self.endpoint.known and self._lone.offer(peer):
            self._wake()  # who waits again already, and not for this connection

    def tick(self, now: float) -> None:
        self._lone.look()
        self._give_room()
        self._have(self._role.tick)
        self.endpoint.resume(self)
        if self._role.reclaimed:
            if self.endpoint.is_behind(self):
                self._behind = now
            elif now - self._behind > limits.LANE_READ_UP_SECONDS:
                self._role.read_up()
        self._watch.tick(now)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.endpoint.detach(self)
        self._wake()
        self._lone.close()

    def _give_room(self) -> None:
        """Tell the role of the room that what the user has taken leaves."""
        inbox = self._inbox
        records, size = inbox.taken_records - self._given_records, inbox.taken_octets - self._given_bytes
        self._count_lone()
        if records or size:  # the user's thread may be between the two: the rest comes with the next tick
            self._given_records += records
            self._given_bytes += size
            self._records -= records
            self._bytes -= size
            self._set_room()

    def _count_lone(self) -> None:
        """Count what the user's thread has received itself."""
        records, size = self._lone.records - self._counted_records, self._lone.octets - self._counted_bytes
        self._counted_records += records
        self._counted_bytes += size
        self._delivered += records
        self._delivered_bytes += size
        self._records += records
        self._bytes += size
        self.endpoint.counts["records_in"] += records
        self.endpoint.counts["bytes_in"] += size
        heads = self._lone.heads - self._counted_heads
        self._counted_heads += heads
        self.endpoint.counts["commands_in"] += heads

    def _set_room(self) -> None:
        if not self.closed:
            room = max(0, limits.ROOM_RECORDS - self._records), max(0, limits.ROOM_BYTES - self._bytes)
            self._have(self._role.set_room, *room)
            self.endpoint.resume(self)

    def _have(self, decide: Callable[..., list[Output]], *what: Any, **how: Any) -> Run | None:
        """Carry out what the role decides; meanwhile no thread takes a record itself."""
        self._lone.busy += 1
        try:
            return self._carry(decide(time.monotonic(), *what, **how))
        finally:
            self._lone.busy -= 1

    def _carry(self, outputs: Iterable[Any]) -> Run | None:
        """Carry out the outputs of the role. Returns the records for which it has no room."""
        to_publish = []
        delivered = False
        rest = None
        for output in outputs:
            if isinstance(output, Deliver):
                count, size = len(output.contents), sum(map(len, output.contents))
                self._delivered += count
                self._delivered_bytes += size
                records, octets = self._inbox.put(output)
                self._records += records
                self._bytes += octets
                self._replaced += count - records
                self._replaced_ever += count - records
                self._replaced_bytes += size - octets
                delivered = True
            elif isinstance(output, Hold):
                rest = output.run
            elif isinstance(output, Gap):
                self.gaps.append(output)
                self._lost += output.next - output.first
                log.warning(
                    "topic %s partition %s: records %d to %d no longer exist",
                    topic_name(output.topic),
                    address_name(output.address),
                    output.first,
                    output.next - 1,
                )
            else:
                to_publish.append(output)
        if to_publish:
            self.endpoint.publish(self, to_publish)
        if delivered:
            self._has_woken = self._wake()
        # The role takes what was replaced for what still waits, until it is told of the room anew.
        if self._replaced > limits.ROOM_RECORDS // 4 or self._replaced_bytes > limits.ROOM_BYTES // 4:
            self._replaced = self._replaced_bytes = 0
            self._hub.post(self._set_room)
        return rest

    def _wake(self) -> bool:
        """Wake who waits; whether that is a thread as a whole."""
        waiter = self._waiter
        if waiter is None:
            return False
        self._waiter = None
        waiter.set()
        return waiter.is_native
