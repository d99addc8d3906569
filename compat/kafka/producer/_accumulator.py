"""The records that a producer has accepted and that are not acknowledged: Kafka's RecordAccumulator.

``append`` begins a batch or seals one, in the program's thread; a record that simply joins an open batch is
appended by :meth:`compat.kafka.producer.KafkaProducer.send` itself. When a queue's open batch gets its first
record or is sealed, the queue becomes ready and the sender (:mod:`compat.kafka.producer._sender`) is woken
if it sleeps.

Memory is bounded by ``BYTES_UNDER_WAY``: a record that begins a batch waits while more octets than that are
sealed and not acknowledged (:class:`BufferPool`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import gevent.event
from kafka.errors import KafkaTimeoutError
from kafka.structs import TopicPartition

from compat.kafka.producer._batches import Batch, PartitionQueue, Record, allocate_lock
from compat.kafka.producer._callbacks import CallbackThread
from compat.kafka.producer._topics import Topics
from dafka.hub.hub import Hub, Waiter
from dafka.hub.waits import wait_of

# Octets sealed and not acknowledged before send() waits. kafka-python 3 has no buffer_memory; this is
# Kafka's default for it.
BYTES_UNDER_WAY = 32 * 1024 * 1024
LARGEST_BATCH = 1_000_000  # octets; below the broker's message.max.bytes
FINISH_SLICE = 0.1  # seconds between two looks for callbacks that no other thread can run
# Octets under way, more than go into one call of the broker, from which on a thread that sends to another
# process lets the hub go on: less is gathered meanwhile otherwise, and calls become more and smaller.
LAG = 4 * 1024 * 1024


class BufferPool:
    """Counts the octets of sealed batches, and lets threads wait until there are fewer. For any thread."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = allocate_lock()
        self._blocked: list[Waiter] = []
        self.under_way = 0

    @property
    def full(self) -> bool:
        """Whether so much is under way that the next batch has to wait."""
        return self.under_way > BYTES_UNDER_WAY

    def take(self, batch: Batch) -> None:
        """Count a batch that was sealed, unless it is counted or its outcome is known already: the hub does
        not wait for the thread that sealed it."""
        with self._lock:
            if not (batch.counted or batch.done):
                batch.counted = True
                self.under_way += batch.size

    def give_back(self, batch: Batch) -> None:
        """Count a batch no longer: its outcome is known."""
        with self._lock:
            if batch.counted:
                batch.counted = False
                self.under_way -= batch.size
            blocked: list[Waiter] = []
            if self._blocked and not self.full:
                blocked, self._blocked = self._blocked, []
        for waiter in blocked:
            waiter.set()

    def wait(self, max_block_ms: float) -> None:
        """Wait until there is room.

        Raises:
            KafkaTimeoutError: there was none within ``max_block_ms``.
        """
        deadline = monotonic() + max_block_ms / 1000
        while self.full:
            waiter = self._hub.waiter()
            with self._lock:
                self._blocked.append(waiter)
            try:
                if self.full:
                    waiter.wait(deadline - monotonic())
            finally:
                with self._lock:
                    coming = waiter not in self._blocked
                    if not coming:
                        self._blocked.remove(waiter)
                if coming:
                    waiter.wait(1.0)
                waiter.close()
            if self.full and monotonic() >= deadline:
                raise KafkaTimeoutError(
                    f"Failed to allocate memory within the configured max blocking time {max_block_ms} ms: "
                    f"{self.under_way} bytes are waiting for the broker"
                )


class RecordAccumulator:
    """A producer's queues and batches. Methods are for any thread where they do not say otherwise."""

    def __init__(self, hub: Hub, config: dict[str, Any], is_remote: bool) -> None:
        """``is_remote``: the broker is in another process, and would stand idle while the hub waits."""
        self._hub = hub
        self.is_remote = is_remote
        # A batch that the broker would refuse as too large takes all its records with it.
        self._new_queue_args = (min(config["batch_size"], LARGEST_BATCH), config["compression_type"])
        self._config = config
        self.topics = Topics(self._new_queue)
        self.incomplete: dict[Batch, None] = {}  # batches with records, until their outcome is known
        self.callbacks = CallbackThread(hub)
        self.pool = BufferPool(hub)
        self.closing = False
        self._flushes: set[object] = set()
        self._ready: deque[PartitionQueue] = deque()
        self._sender: Callable[[], None] | None = None
        self._sender_asleep = False
        self._sender_ended = False
        self._wakeup = gevent.event.Event()  # belongs to the hub

    def _new_queue(self, partition: TopicPartition) -> PartitionQueue:
        return PartitionQueue(self._hub, partition, *self._new_queue_args, self)

    # -- for the threads that send ---------------------------------------------------------------

    def append(self, queue: PartitionQueue, record: Record, size: int) -> tuple[Batch, int]:
        """Append a record that does not simply join the open batch: its batch, and its place there.

        Raises:
            KafkaTimeoutError: too much was under way for ``max_block_ms``.
            IllegalStateError: the producer was closed meanwhile.
        """
        if self.pool.full and not self.here:  # the records under way wait for the callbacks
            self.pool.wait(self._config["max_block_ms"])
        try:
            batch, index, sealed = queue.append(record, size)
            if sealed is not None:
                self.pool.take(sealed)
                self._ready.append(queue)
                sealed.encode()
                if self._sender_asleep:
                    self.wake()
                if self.is_remote and self.pool.under_way > LAG:
                    self._hub.give_way()
            if not index:
                self._show(queue)
        except BaseException:  # interrupted: the record may have begun a batch, which others join
            if not queue.closed:
                self._show(queue)
            raise
        return batch, index

    def _show(self, queue: PartitionQueue) -> None:
        """Have the sender look at a queue."""
        self._ready.append(queue)
        if self._sender_asleep:
            self.wake()
        if self._sender_ended:  # a send() that overlapped with close()
            self._hub.post(self._start)

    def wake(self) -> None:
        """Have the sender look at its queues."""
        self._sender_asleep = False
        try:
            self._hub.post(self._wakeup.set)
        except BaseException:  # interrupted, maybe before it was posted: nobody else would wake it
            self._sender_asleep = True
            raise

    @property
    def here(self) -> bool:
        """Whether the calling code is a callback, or runs in the hub: it must not wait for records."""
        return self._hub.here or self.callbacks.here

    def flush(self, timeout: float | None) -> None:
        """Send everything now and wait for the outcome of the records appended before this call.

        Raises:
            KafkaTimeoutError: not all of it was known within ``timeout`` seconds.
            ValueError: a ``timeout`` of NaN.
        """
        wait = wait_of(timeout)
        self._hub.check()
        deadline = None if wait is None else monotonic() + wait
        token = object()
        try:
            self._flushes.add(token)
            batches = list(self.incomplete)
            if not batches:
                return
            self._ready.extend({batch.queue: None for batch in batches})
            self.wake()
            for batch in batches:
                if not batch.finished:
                    left = None if deadline is None else max(deadline - monotonic(), 0.0)
                    if not batch.wait(left):
                        waiting = sum(1 for batch in batches if not batch.done)
                        raise KafkaTimeoutError(
                            f"Timeout waiting for flush: {waiting} of {len(batches)} batches are not "
                            f"acknowledged after {timeout} secs."
                        )
        finally:
            self._flushes.discard(token)

    def finish(self, timeout: float) -> None:
        """:meth:`flush` at the interpreter's end, when callbacks may have to run here.

        Raises:
            KafkaTimeoutError: not every outcome was known within ``timeout`` seconds.
        """
        ends = monotonic() + timeout
        batches = list(self.incomplete)
        while not all(batch.finished for batch in batches):
            left = ends - monotonic()
            try:
                self.flush(min(max(left, 0.0), FINISH_SLICE))
            except KafkaTimeoutError:
                if left <= 0:
                    raise
            self.callbacks.run_here()
            if left <= 0:
                return

    def close(self) -> None:
        """Have the sender end when everything is sent; does not wait."""
        self.closing = True
        self.wake()

    def finished(self, batch: Batch) -> None:
        """The outcome of a batch is known and its callbacks have run."""
        self.incomplete.pop(batch, None)
        self.pool.give_back(batch)

    # -- for the sender ---------------------------------------------------------------------------

    def serve(self, sender: Callable[[], None]) -> None:
        """Run ``sender`` in a green thread of the hub; again, if a record is appended after it ended."""
        self._sender = sender
        self._sender_ended = True  # not begun yet
        self._hub.post(self._start)

    def _start(self) -> None:
        assert self._sender is not None
        if self._sender_ended:  # it has not been started since by another thread
            self._sender_ended = False
            self._hub.spawn(self._sender)

    def lie_down(self) -> None:
        """Expect :meth:`wake` from now on. In the hub, before the sender looks at what is ready."""
        self._wakeup.clear()
        self._sender_asleep = True

    def get_up(self) -> None:
        """Expect no :meth:`wake`: the sender has work, and looks again after it. In the hub."""
        self._sender_asleep = False

    def sleep(self, seconds: float) -> None:
        """Wait for :meth:`wake`, in the hub."""
        self._wakeup.wait(seconds)

    def take_ready(self) -> Iterator[PartitionQueue]:
        """The queues that have changed since the last call; a queue may come several times."""
        while self._ready:
            yield self._ready.popleft()

    @property
    def urgent(self) -> bool:
        """Whether batches must not linger: the program flushes or closes the producer."""
        return bool(self._flushes) or self.closing

    def close_queues(self) -> bool:
        """Close all empty queues; whether all are closed, and the sender may end.

        A thread that passed the producer's check just before it was closed may still have appended.
        """
        closed = [queue.close_if_empty() for queue in self.topics.queues()]
        self._sender_ended = all(closed)
        return self._sender_ended
