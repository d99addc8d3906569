"""Producer: publishes records to one topic, on a partition of its own, and keeps them until stores have them.

``send`` runs in the caller's thread and only hands over; the hub numbers the records, publishes them and
serves what is fetched. Both sides of the hand-over are bounded: what waits for the hub, and what the role
keeps until it is acknowledged. At either bound ``send`` waits, which is the mesh pushing back.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any
from weakref import WeakSet

import gevent
import gevent.event
from gevent import monkey

from dafka.mesh import limits
from dafka.mesh.address import TowerLike, check_address, check_topic, new_address, topic_name
from dafka.mesh.endpoint import Endpoint, EndpointOptions, Node, mesh_options
from dafka.mesh.hub import Hub, Waiter, get_hub
from dafka.protocol.commands import Command, Fetch
from dafka.protocol.errors import DafkaError
from dafka.roles.producer import ProducerRole

CLOSE_TIMEOUT = 10.0  # seconds that close() waits for acknowledgements by default

_Lock = monkey.get_original("threading", "Lock")


class ProducerClosedError(DafkaError):
    """The producer has been closed."""


class RecordTooLargeError(DafkaError, ValueError):
    """A record larger than nodes accept."""


class SendTimeoutError(DafkaError, TimeoutError):
    """There was no room for a record within the time given: acknowledgements do not keep up."""


class UnacknowledgedError(DafkaError, TimeoutError):
    """Records that the configured number of stores has not acknowledged in time.

    ``topic``, ``partition`` and the sequences ``first`` to ``last`` (both included) say which.
    """

    def __init__(self, topic: str, partition: str, first: int, last: int, timeout: float | None) -> None:
        self.topic, self.partition, self.first, self.last = topic, partition, first, last
        super().__init__(
            f"{last - first + 1} records of topic {topic!r}, partition {partition}, sequences {first} to "
            f"{last}, were not acknowledged by enough stores within {timeout} s"
        )


class Producer:
    """A producer of raw records on the mesh (46/DAFKA). Thread safe.

    ``topic``: str or bytes of 1 to 255 octets. ``tower`` and further keywords (``bind``, ``framing``,
    ``beacon_interval``, ...): see :func:`dafka.mesh.endpoint.mesh_options`. ``address``: the partition's
    name, a fresh UUID unless given; only one producer may ever use it. ``min_stores``: distinct stores that
    must have acknowledged a record before it is forgotten; 0 asks for none and keeps what memory allows for
    consumers. ``head_interval``: seconds between HEADs. Raises :class:`InvalidTopicError`,
    :class:`InvalidAddressError`.
    """

    def __init__(
        self,
        topic: str | bytes,
        *,
        tower: TowerLike = None,
        address: str | None = None,
        min_stores: int = 1,
        head_interval: float = 1.0,
        **mesh: Any,
    ) -> None:
        octets = check_topic(topic)
        if not isinstance(min_stores, int) or min_stores < 0:
            raise ValueError(f"min_stores is a number of stores, 0 or more, not {min_stores!r}")
        if not head_interval > 0:
            raise ValueError(f"head_interval is a time in seconds above 0, not {head_interval!r}")
        self.topic = topic_name(octets)
        self._hub = get_hub()
        self._lock = _Lock()
        self._closed = False
        self._next = 0
        options = mesh_options(tower, **mesh)
        role = ProducerRole(
            octets,
            check_address(address) if address is not None else new_address(),
            min_stores=min_stores,
            head_interval=head_interval,
        )
        self.address = role.address.decode()
        self._node = self._hub.run(ProducerNode, self._hub, options, role, head_interval)
        _producers.add(self)

    def send(self, value: bytes, timeout: float | None = None) -> int:
        """Publish one record and return its sequence.

        Returns as soon as the record is handed over; waits only while there is no room, at most
        ``timeout`` seconds. Raises TypeError for anything but bytes, :class:`RecordTooLargeError`,
        :class:`SendTimeoutError`, :class:`ProducerClosedError`.
        """
        if type(value) is not bytes:
            if not isinstance(value, (bytearray, memoryview, bytes)):
                raise TypeError(f"a record's value is bytes, not {type(value).__name__}")
            value = bytes(value)
        if len(value) > limits.RECORD_OCTETS:
            raise RecordTooLargeError(
                f"a record has at most {limits.RECORD_OCTETS} octets, this one has {len(value)}"
            )
        node = self._node
        if (
            node.full
            or len(node.pending) >= limits.PENDING_RECORDS
            or node.sent_bytes - node.drained_bytes >= limits.PENDING_BYTES
        ):
            self._wait_for_room(timeout)
        with self._lock:
            if self._closed:
                raise ProducerClosedError(f"the producer of topic {self.topic!r} is closed")
            sequence = self._next
            self._next = sequence + 1
            node.pending.append(value)
            node.sent_bytes += len(value)
        if not node.signalled:
            node.signalled = True
            self._hub.post(node.drain)
        return sequence

    @property
    def unacknowledged(self) -> int:
        """Records sent that the configured number of stores has not acknowledged yet."""
        return self._node.unacknowledged()

    def metrics(self) -> dict[str, Any]:
        """Counters and gauges of this producer and of its endpoint, by the names in
        :mod:`dafka.mesh.metrics`."""
        return self._hub.run(self._node.metrics)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until ``min_stores`` stores have acknowledged everything sent so far.

        Raises :class:`UnacknowledgedError` after ``timeout`` seconds (None: waits for ever).
        """
        self._hub.run(self._node.flush, self._next, timeout)

    def close(self, timeout: float | None = CLOSE_TIMEOUT) -> None:
        """:meth:`flush`, then leave the mesh, also when the flush fails.

        Raises :class:`UnacknowledgedError`, which says what stores did not acknowledge. Closing twice is
        allowed.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            self.flush(timeout)
        finally:
            self._hub.run(self._node.close)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        # An error in the block must not be hidden behind a wait that fails for the same reason.
        self.close(CLOSE_TIMEOUT if exc_type is None else 0.0)

    def __repr__(self) -> str:
        return f"<Producer topic={self.topic!r} partition={self.address}>"

    def _wait_for_room(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        node = self._node
        while node.is_full() and not self._closed:
            self._hub.check()
            waiter = Waiter()
            node.waiting[waiter] = None
            self._hub.post(node.drain)
            left = None if deadline is None else deadline - time.monotonic()
            done = waiter.wait(left) if left is None or left > 0 else False
            node.waiting.pop(waiter, None)
            waiter.close()
            if not done and node.is_full():
                raise SendTimeoutError(
                    f"no room for a record of topic {self.topic!r} within {timeout} s: "
                    f"{self.unacknowledged} records wait for acknowledgement"
                )


class ProducerNode(Node):
    """A producer role on an endpoint; hub side, but for the fields that :meth:`Producer.send` fills."""

    def __init__(self, hub: Hub, options: EndpointOptions, role: ProducerRole, head_interval: float) -> None:
        self.tick_interval = head_interval / 2
        self.pending: deque[bytes] = deque()
        self.sent_bytes = 0  # written by the sending threads only, under their lock
        self.drained_bytes = 0  # written by the hub only
        self.signalled = False
        self.full = False
        self.waiting: dict[Waiter, None] = {}
        self._hub = hub
        self._role = role
        self._answered = 0
        self._closed = False
        self._progress = gevent.event.Event()
        self._endpoint = Endpoint.shared(hub, options)
        self._endpoint.publish(self, role.start())
        self._endpoint.attach(self)

    def is_full(self) -> bool:
        """Whether the next record has to wait. From any thread."""
        return (
            len(self.pending) >= limits.PENDING_RECORDS
            or self.sent_bytes - self.drained_bytes >= limits.PENDING_BYTES
        )

    def drain(self) -> None:
        """Publish what waits, a run at a time, as long as the role has room for it."""
        self.signalled = False
        role, pending = self._role, self.pending
        if not role.min_stores and self._retains_enough():
            role.forget(role.retained_bytes // 2)
            if self._retains_enough():
                role.forget(-1)  # a million records without any content
        if pending and not self._closed and not self._retains_enough():
            if self._endpoint.congested:
                self._endpoint.when_clear(self.drain)
            else:
                contents = self._next_contents()
                self._endpoint.publish(self, (role.publish(time.monotonic(), contents),))
                if not role.min_stores:
                    self._progress.set()
                if pending:
                    self.signalled = True
                    self._hub.post(self.drain)
        self._measure()

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

    def _measure(self) -> None:
        self.full = self.is_full()
        if not self.full:
            self._wake()

    def _wake(self) -> None:
        while self.waiting:
            try:
                waiter, _ = self.waiting.popitem()
            except KeyError:  # its thread has just given up
                return
            waiter.set()

    def unacknowledged(self) -> int:
        return self._role.unacknowledged + len(self.pending)

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
        outputs = self._role.receive(time.monotonic(), command)
        if type(command) is Fetch and outputs:
            self._answered += 1
        self._endpoint.publish(self, outputs)
        self._progress.set()
        if self.pending and not self.signalled:
            self.signalled = True
            self._hub.post(self.drain)

    def tick(self, now: float) -> None:
        outputs = self._role.tick(now)
        if outputs:
            self._endpoint.publish(self, outputs)

    def flush(self, end: int, timeout: float | None) -> None:
        """Wait as a green thread until everything below sequence ``end`` is acknowledged."""
        deadline = None if timeout is None else time.monotonic() + timeout
        role = self._role
        while role.first_unacknowledged < end:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise UnacknowledgedError(
                    topic_name(role.topic), role.address.decode(), role.first_unacknowledged, end - 1, timeout
                )
            self._progress.clear()
            self._progress.wait(left)

    def close(self) -> None:
        self._closed = True
        self._endpoint.detach(self)
        self._wake()


_producers: WeakSet[Producer] = WeakSet()


def _cut_off_in_child() -> None:
    # A child has no hub to drain what is handed over. With the flag down, send() posts, and is told so.
    for producer in list(_producers):
        producer._lock = _Lock()
        producer._node.signalled = producer._node.full = False
        producer._node.pending.clear()
    _producers.clear()


os.register_at_fork(after_in_child=_cut_off_in_child)
