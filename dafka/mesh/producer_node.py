"""The hub's side of a producer: a producer role on an endpoint, and the queue from the threads that send.

Both sides of the hand-over are bounded: what waits for the hub, and what the role keeps until it is
acknowledged. At either bound the sending threads wait, which is the mesh pushing back.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any

import gevent.event

from dafka.mesh import limits
from dafka.mesh.address import topic_name
from dafka.mesh.endpoint import Endpoint, EndpointOptions, Node
from dafka.mesh.hub import Hub, Waiter
from dafka.protocol.commands import Command, Fetch
from dafka.protocol.errors import DafkaError
from dafka.roles.producer import ProducerRole

log = logging.getLogger(__name__)


class ProducerClosedError(DafkaError):
    """The producer has been closed."""


class RecordTooLargeError(DafkaError, ValueError):
    """A record larger than nodes accept."""


class SendTimeoutError(DafkaError, TimeoutError):
    """There was no room for a record within the time given: acknowledgements do not keep up."""


class UnacknowledgedError(DafkaError, TimeoutError):
    """Records that the configured number of stores has not acknowledged in time.

    ``topic``, ``partition`` and the offsets ``first`` to ``last`` (both included) say which.
    """

    def __init__(self, topic: str, partition: str, first: int, last: int, timeout: float | None) -> None:
        self.topic, self.partition, self.first, self.last = topic, partition, first, last
        count = last - first + 1
        which = (
            f"1 record of topic {topic!r}, partition {partition}, offset {first}, was"
            if count == 1
            else f"{count} records of topic {topic!r}, partition {partition}, offsets {first} to {last}, were"
        )
        super().__init__(f"{which} not acknowledged by enough stores within {timeout} s")


class ProducerNode(Node):
    """A producer of raw records; hub side, but for what its comments give to the sending threads."""

    def __init__(self, hub: Hub, options: EndpointOptions, role: ProducerRole, head_interval: float) -> None:
        self.tick_interval = head_interval / 2
        self.pending: deque[Any] = deque()  # filled by the sending threads
        self.sent_bytes = 0  # written by the sending threads only, under their lock
        self.drained_bytes = 0  # written by the hub only
        self.signalled = False
        self.full = False
        self.closed = False
        self.waiting: dict[Waiter, None] = {}
        self._hub = hub
        self._role = role
        self._answered = 0
        self._progress = gevent.event.Event()
        self._endpoint = Endpoint.shared(hub, options)
        role.know_stores(self._endpoint.stores)
        self._endpoint.publish(self, role.start())
        self._endpoint.attach(self)

    # -- from any thread ------------------------------------------------------------------------

    def is_full(self) -> bool:
        """Whether the next record has to wait."""
        return (
            len(self.pending) >= limits.PENDING_RECORDS
            or self.sent_bytes - self.drained_bytes >= limits.PENDING_BYTES
        )

    def wait_for_room(self, timeout: float | None) -> None:
        """Wait until there is room for a record or the node is closed; raises :class:`SendTimeoutError`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.is_full() and not self.closed:
            self._hub.check()
            waiter = Waiter()
            self.waiting[waiter] = None
            self._hub.post(self.drain)
            left = None if deadline is None else deadline - time.monotonic()
            done = waiter.wait(left) if left is None or left > 0 else False
            self.waiting.pop(waiter, None)
            waiter.close()
            if not done and self.is_full():
                raise SendTimeoutError(
                    f"no room for a record of topic {topic_name(self._role.topic)!r} within {timeout} s: "
                    f"{self.unacknowledged()} records wait for acknowledgement"
                )

    def signal(self) -> None:
        """Have the hub look at what waits."""
        if not self.signalled:
            self.signalled = True
            self._hub.post(self.drain)

    def unacknowledged(self) -> int:
        """Records handed over that the configured number of stores has not acknowledged."""
        return self._role.unacknowledged + len(self.pending)

    def cut_off(self) -> None:
        """In the child of a fork there is no hub: with the flag down, a sender posts, and is told so."""
        self.signalled = self.full = False
        self.pending.clear()

    # -- in the hub -----------------------------------------------------------------------------

    def drain(self) -> None:
        """Publish what waits, a run at a time, as long as the role has room for it."""
        self.signalled = False
        role, pending = self._role, self.pending
        if not role.min_stores and self._retains_enough():
            role.forget(role.retained_bytes // 2)
            if self._retains_enough():
                role.forget(-1)  # a million records without any content
        if pending and not self.closed and not self._retains_enough():
            if self._endpoint.congested:
                self._endpoint.when_clear(self.drain)
            elif contents := self._next_contents():
                self._endpoint.publish(self, (role.publish(time.monotonic(), contents),))
                self._progressed()
                if pending:
                    self.signal()
        self.full = self.is_full()
        if not self.full:
            self._wake()

    def _retains_enough(self) -> bool:
        role = self._role
        return (
            role.retained_bytes >= limits.RETAINED_BYTES
            or role.next_sequence - role.first_retained >= limits.RETAINED_RECORDS
        )

    def _next_contents(self) -> list[bytes]:
        """The contents of the next run, bounded in number and (but for a single one) in size."""
        pending = self.pending
        contents = [pending.popleft() for _ in range(min(len(pending), limits.RUN_RECORDS))]
        size = sum(map(len, contents))
        while size > limits.RUN_BYTES and len(contents) > 1:
            size -= len(contents[-1])
            pending.appendleft(contents.pop())
        self.drained_bytes += size
        return contents

    def _progressed(self) -> None:
        """Something was published or acknowledged."""
        self._progress.set()

    def _wake(self) -> None:
        while self.waiting:
            try:
                waiter, _ = self.waiting.popitem()
            except KeyError:  # its thread has just given up
                return
            waiter.set()

    def metrics(self) -> dict[str, Any]:
        role = self._role
        return {
            "records_out": role.next_sequence,
            "bytes_out": self.drained_bytes,
            "fetches_answered": self._answered,
            "unacknowledged": self.unacknowledged(),
            "pending_records": len(self.pending),
            "pending_bytes": self.sent_bytes - self.drained_bytes,
            "retained_records": role.next_sequence - role.first_retained,
            "retained_bytes": role.retained_bytes,
            **self._endpoint.metrics(),
        }

    def on_command(self, command: Command) -> None:
        role = self._role
        undisputed = not role.disputed
        outputs = role.receive(time.monotonic(), command)
        if undisputed and role.disputed:
            log.warning(
                "stores have %d records of topic %r, partition %s, and this producer has sent %d: the "
                "address was another producer's before, and what this one sends is not stored",
                role.disputed,
                topic_name(role.topic),
                role.address.decode(),
                role.next_sequence,
            )
        if type(command) is Fetch and outputs:
            self._answered += 1
        self._endpoint.publish(self, outputs)
        self._progressed()
        if self.pending:
            self.signal()

    def tick(self, now: float) -> None:
        outputs = self._role.tick(now)
        if outputs:
            self._endpoint.publish(self, outputs)

    def flush(self, end: int, timeout: float | None) -> None:
        """Wait as a green thread until everything below sequence ``end`` is acknowledged."""
        deadline = None if timeout is None else time.monotonic() + timeout
        role = self._role
        self.signal()  # a sender may have been interrupted before it could
        while role.first_unacknowledged < end:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                first, last = self._offsets(role.first_unacknowledged, end)
                raise UnacknowledgedError(topic_name(role.topic), role.address.decode(), first, last, timeout)
            self._progress.clear()
            self._progress.wait(left)

    def _offsets(self, first: int, end: int) -> tuple[int, int]:
        """The first and the last offset of the messages from ``first`` up to, not including, ``end``."""
        return first, end - 1

    def close(self) -> None:
        self.closed = True
        self._endpoint.detach(self)
        self._wake()
