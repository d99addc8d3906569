"""Records on their way to one partition: an open batch that grows, and sealed ones that wait their turn.

A :class:`PartitionQueue` has one open :class:`Batch`, to which ``send`` appends. When the next record does
not fit, the batch is sealed (it takes its place in ``sealed``, in order) and a new one is opened; the thread
that sealed it then encodes it, outside the lock, so that what waits is bytes and not objects. The sender
takes sealed batches from the left and takes the open batch when it has lingered long enough. So a
partition's records leave in the order in which they were appended.

``send`` joins an open batch without the queue's lock, which would cost a tenth of it: it appends and then
looks whether its record is where it expected it and the batch still open. Only if not, because another
thread appended or sealed in between, does it take the lock and ask :meth:`PartitionQueue.place` what became
of the record; one that is appended with the lock looks for its place as well. A batch has as many records as
its list had when it was settled, after another one had become the open one; records that come into the list
later are not sent with it, and go into the next batch instead. A batch's room is an estimate: of two threads
that take some of it at the same moment one may be forgotten.

A thread that sends may be interrupted anywhere (Ctrl-C, a signal handler that flushes), so nothing depends
on what it does next: a batch counts as incomplete before it has its first record, and one that its thread
does not get encoded within ``ENCODING_SECONDS`` is encoded by the sender. Encoding twice gives the same.

A batch is also the shared result of its records: their futures (:mod:`compat.kafka.producer._future`)
refer to it and to their place in it, and have no state of their own. Their lists of waiters and callbacks
are made when the first one comes.

The locks are native ones even where gevent has patched ``threading``: they are held for a handful of
bytecodes, never across a wait, and the hub's thread takes them too.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from time import monotonic
from typing import Any, Protocol

from gevent import monkey
from kafka.errors import IllegalStateError, InvalidRecordError, KafkaError, UnsupportedCodecError
from kafka.structs import TopicPartition

from compat.kafka.producer._callbacks import CallbackThread
from dafka.hub.hub import Hub, Waiter
from dafka.hub.waits import wait_of
from dafka.protocol.batch import BatchError
from dafka.protocol.batch_writer import encode_batch

log = logging.getLogger(__name__)

allocate_lock = monkey.get_original("_thread", "allocate_lock")

ENCODING_SECONDS = 0.1  # how long the sender leaves a sealed batch to the thread that sealed it
BATCH_HEADER = 61  # octets of a record batch before its first record

NANOSECONDS = 1_000_000  # of a millisecond

Record = tuple[int, "bytes | None", "bytes | None", Any]  # timestamp in ns, key, value, headers


class Accumulator(Protocol):
    """The accumulator, as batches and queues use it."""

    callbacks: CallbackThread
    incomplete: dict[Batch, None]  # batches with records whose outcome is not known

    def finished(self, batch: Batch) -> None:
        """The outcome of a batch is known and its callbacks have run."""


class Batch:
    """Some records of one partition, and what became of them."""

    __slots__ = (
        "attempts",
        "base_offset",
        "callbacks",
        "content",
        "count",
        "counted",
        "created",
        "done",
        "encoding_until",
        "error",
        "finished",
        "identity",
        "parts",
        "queue",
        "record_errors",
        "records",
        "room",
        "sequence",
        "size",
        "timestamp",
        "waiters",
    )

    def __init__(self, queue: PartitionQueue, batch_size: int) -> None:
        self.queue = queue
        self.records: list[Record] = []
        self.room = batch_size - BATCH_HEADER  # octets that still fit, by estimate
        self.size = 0  # octets, known when it is sealed
        self.count = 0  # records, known when it is settled
        self.created = 0.0  # monotonic seconds of the first record
        self.content: bytes | None = None  # the encoded batch, once sealed and encoded
        self.encoding_until = 0.0  # monotonic seconds; before, a thread that sends is encoding it
        self.counted = False  # whether its size is among the sender's octets under way
        self.attempts = 0
        self.identity: tuple[int, int] | None = None  # producer id and epoch it is sent with, once it is
        self.sequence = -1  # of its first record, under that identity
        self.parts: list[Batch] | None = None  # the batches it was split into, for it was too large
        self.done = False  # the outcome is known
        self.finished = False  # ... and all callbacks have been called
        self.error: BaseException | None = None
        self.record_errors: dict[int, str] = {}  # index of a refused record: why
        self.base_offset = -1
        self.timestamp = -1  # the broker's, or -1 if each record keeps its own
        self.waiters: list[Waiter] | None = None
        self.callbacks: list[tuple[int, Any, Callable[[Any], Any], Callable[[Any], Any]]] | None = None

    def encode(self) -> None:
        """Encode the records of a sealed batch as ``content`` and drop them. Any thread, even twice."""
        records = self.records
        if self.content is not None:
            return
        queue = self.queue
        self.encoding_until = monotonic() + ENCODING_SECONDS
        with queue.lock:
            self.settle()
        try:
            content = encode_batch(
                records[: self.count], compression=queue.compression, per_millisecond=NANOSECONDS
            )
        except BatchError as error:
            self.error = UnsupportedCodecError(str(error)) if error.cause == "codec" else error
            content = b""
        except Exception as error:
            log.exception("a batch of %d records for %s could not be encoded", self.count, queue.partition)
            self.error = error
            content = b""
        except BaseException:  # interrupted: the sender does it
            self.encoding_until = 0.0
            raise
        with queue.lock:  # another thread that has encoded it may have sent it since, under its sequence
            if self.content is None:
                self.content = content
        self.records = []

    def settle(self) -> None:
        """Decide how many records a sealed batch has, once. Under the queue's lock."""
        if not self.count:
            self.count = len(self.records)

    def part(self, index: int) -> tuple[Batch, int]:
        """The batch that has record ``index`` after splits, and its place there."""
        batch = self
        while batch.parts is not None:
            for part in batch.parts:
                batch = part
                if index < part.count:
                    break
                index -= part.count
        return batch, index

    def error_of(self, index: int) -> BaseException | None:
        """Why record ``index`` failed, or None.

        As in kafka-python: a record that the broker refuses has the broker's reason, and the others of its
        batch say that they were refused with it.
        """
        batch, index = self.part(index)
        error, wrong = batch.error, batch.record_errors
        if error is None or not wrong:
            return error
        if index not in wrong:
            return KafkaError("the record is refused because of others in its batch that are wrong")
        kind = type(error) if len(wrong) == 1 else InvalidRecordError
        return kind(wrong[index] or str(error))

    def wait(self, timeout: float | None) -> bool:
        """Wait for the outcome and its callbacks, at most ``timeout`` seconds; whether it is known.

        Raises:
            IllegalStateError: called from a callback, and the outcome is not known.
            ValueError: a ``timeout`` of NaN.
        """
        if self.finished:
            return True
        timeout = wait_of(timeout)
        hub = self.queue.hub
        hub.check()
        if hub.here:
            raise IllegalStateError(
                f"the record to {self.queue.partition} is not acknowledged yet, and the hub, which would get "
                "to know, cannot wait for it"
            )
        if self.queue.accumulator.callbacks.here:
            if self.done:
                return True
            raise IllegalStateError(
                f"the record to {self.queue.partition} is not acknowledged yet, and a callback that waits "
                "keeps the others from running, perhaps the one it waits for; add a callback to its future"
            )
        lock = self.queue.lock
        waiter = hub.waiter()
        with lock:
            if self.finished:
                waiter.close()
                return True
            if self.waiters is None:
                self.waiters = []
            self.waiters.append(waiter)
        try:
            waiter.wait(timeout)
        finally:
            with lock:
                coming = self.waiters is None  # resolve() has taken it and sets it at any moment
                if not coming:
                    self.waiters.remove(waiter)
            if coming:
                waiter.wait(1.0)
            waiter.close()
        return self.done

    def call_back(
        self, index: int, future: Any, on_success: Callable[[Any], Any], on_error: Callable[[Any], Any]
    ) -> bool:
        """Have one of the two called with the outcome of record ``index``; False if that is known already."""
        with self.queue.lock:
            if self.done:
                return False
            if self.callbacks is None:
                self.callbacks = []
            self.callbacks.append((index, future, on_success, on_error))
        return True

    def resolve(self, base_offset: int, timestamp: int, error: BaseException | None) -> None:
        """Publish the outcome: run the callbacks in their thread, in the order of the records, then wake
        the threads that wait."""
        with self.queue.lock:
            self.base_offset = base_offset
            self.timestamp = timestamp
            self.error = error
            self.done = True
            callbacks, self.callbacks = self.callbacks, None
        self.content = b""
        if callbacks:
            self.queue.accumulator.callbacks.run(lambda: self._finish(callbacks))
        else:
            self._finish(())

    def _finish(self, callbacks: Collection[Any]) -> None:
        try:
            for index, future, on_success, on_error in sorted(callbacks, key=_index):
                error = self.error_of(index)
                if error is None:
                    run_callback(on_success, future.value, "callback")
                else:
                    run_callback(on_error, error, "errback")
        finally:
            self.queue.accumulator.finished(self)  # before wait() returns: flush() leaves nothing behind
            with self.queue.lock:
                self.finished = True
                waiters, self.waiters = self.waiters, None
            for waiter in waiters or ():
                waiter.set()


def _index(entry: tuple[int, Any, Any, Any]) -> int:
    return entry[0]


def run_callback(fn: Callable[[Any], Any], outcome: Any, kind: str) -> BaseException | None:
    """Call ``fn``; its exception is logged, and returned."""
    try:
        fn(outcome)
    except BaseException as error:  # a sys.exit() here must not end the hub
        log.exception("Error processing %s", kind)
        return error
    return None


def _find(record: Record, records: list[Record], begin: int, end: int) -> int:
    for index in range(begin, end):  # a generator that is given up would lose a Ctrl-C of that moment
        if records[index] is record:
            return index
    return -1


class PartitionQueue:
    """The batches of one partition that are not acknowledged yet, and where its next record goes."""

    __slots__ = (
        "accumulator",
        "batch_size",
        "closed",
        "compression",
        "hub",
        "identity",
        "lock",
        "next_sequence",
        "open",
        "partition",
        "replaced",
        "retry_at",
        "sealed",
        "singly",
    )

    def __init__(
        self,
        hub: Hub,
        partition: TopicPartition,
        batch_size: int,
        compression: str | None,
        accumulator: Accumulator,
    ) -> None:
        self.hub = hub
        self.accumulator = accumulator
        self.partition = partition
        self.batch_size = batch_size
        self.compression = compression
        self.lock = allocate_lock()
        self.open = Batch(self, batch_size)
        self.sealed: deque[Batch] = deque()
        self.identity: tuple[int, int] | None = None  # producer id and epoch that batches get next
        self.next_sequence = 0  # ... and the sequence
        self.replaced = False  # whether it needs a producer id that it has not had
        self.retry_at = 0.0  # monotonic seconds before which nothing is sent, after an error
        self.singly = 0  # batches to be sent one at a time: together they were refused
        self.closed = False

    def has_room(self, size: int) -> bool:
        """Whether a record of ``size`` octets goes into the open batch, which already has some."""
        batch = self.open
        return bool(batch.records) and batch.room >= size

    def append(self, record: Record, size: int) -> tuple[Batch, int, Batch | None]:
        """Append a record: its batch, its place in it, and a batch that this sealed, to be encoded.

        Raises:
            IllegalStateError: the producer was closed meanwhile.
        """
        sealed = None
        with self.lock:
            if self.closed:
                raise IllegalStateError("KafkaProducer already closed!")
            batch = self.open
            if batch.room < size and batch.records:
                sealed = self._seal()
                batch = self.open
            records = batch.records
            index = len(records)
            if not index:
                batch.created = monotonic()
                self.accumulator.incomplete[batch] = None
            records.append(record)
            batch.room -= size
            index = _find(record, records, index, len(records))  # others join without the lock
        return batch, index, sealed

    def place(self, batch: Batch, records: list[Record], record: Record, index: int) -> int:
        """The place of a record that was appended to the records of a batch without the lock, at ``index`` or
        behind it; -1 if it came after the batch was settled, and is not sent with it."""
        with self.lock:
            if batch is not self.open:
                batch.settle()
            count = batch.count or len(records)
        return _find(record, records, index, count)

    def _seal(self) -> Batch:
        batch = self.open
        batch.size = max(self.batch_size - batch.room, BATCH_HEADER)
        fresh = Batch(self, self.batch_size)
        # Python looks for signals after calls, so these two lines happen both or not at all.
        self.open = fresh
        self.sealed.append(batch)
        batch.settle()
        return batch

    @property
    def empty(self) -> bool:
        return not self.sealed and (self.closed or not self.open.records)

    def take_sealed(self) -> Batch | None:
        """The next sealed batch, encoded, or None: there is none, or another thread is encoding it."""
        sealed = self.sealed
        if not sealed:
            return None
        if sealed[0].content is None:
            if monotonic() < sealed[0].encoding_until:
                return None
            sealed[0].encode()
        return sealed.popleft()

    def seal_open(self) -> Batch | None:
        """Seal the open batch although it is not full, if it has records; the caller encodes it."""
        with self.lock:
            return self._seal() if self.open.records and not self.closed else None

    def put_back(self, batches: list[Batch], retry_at: float) -> None:
        """Take back batches that are to be sent again, in front of everything else."""
        self.sealed.extendleft(reversed(batches))
        self.retry_at = retry_at

    def close_if_empty(self) -> bool:
        """Accept no more records if the queue is empty; whether it is closed now."""
        with self.lock:
            if not self.empty:
                return False
            self.closed = True
            # No record fits: send() takes its slow way and finds the queue closed.
            self.open.room = -1
            self.open.records = [(0, None, None, ())]
            return True
