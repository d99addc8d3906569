"""Record batches of a producer: records gather in an open batch, and leave as one message each batch.

``append`` runs in the sending threads. It puts a record into the open batch under a lock; when the next one
does not fit, the batch is sealed (it takes its place in the queue, so that order is kept) and a new one is
opened. The thread that sealed it encodes it, outside the lock. A batch that does not fill up is sealed and
encoded by the hub when it has lingered.

A sending thread may be interrupted anywhere (Ctrl-C), so nothing depends on what it does next: a record's
offset follows from its place in its batch, and a sealed batch that its thread does not get encoded within
``ENCODING_SECONDS`` is encoded by the hub. Encoding twice gives the same.

Where the lock is held no call is made that waits, and all that could be wrong with a record is looked at
before it is taken: nothing that was accepted can fail to be encoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import monotonic, time_ns
from typing import Any

import gevent
from gevent import monkey

from dafka.hub.hub import Hub
from dafka.mesh import limits
from dafka.mesh.endpoint import EndpointOptions
from dafka.mesh.producer_node import (
    NOT_FINDING,
    Finding,
    ProducerClosedError,
    ProducerNode,
    RecordTooLargeError,
)
from dafka.protocol.batch import HEADERS_LIMIT
from dafka.protocol.batch_writer import TIMESTAMP_LIMIT, BatchRecord, Headers, encode_batch
from dafka.roles.claim import BATCHES, Position
from dafka.roles.producer import ProducerRole

ENCODING_SECONDS = 0.1  # how long the hub leaves a sealed batch to the thread that sealed it
RECORD_OVERHEAD = 40  # octets of a record in a batch, without its contents, at most

_Lock = monkey.get_original("threading", "Lock")


class Batch:
    """Records that go together; ``sequence`` and ``base_offset`` are fixed when it is opened."""

    __slots__ = ("base_offset", "content", "count", "encoding_until", "records", "room", "sequence", "size")

    def __init__(self, sequence: int, base_offset: int) -> None:
        self.sequence = sequence
        self.base_offset = base_offset
        self.records: list[BatchRecord] = []
        self.room = limits.BATCH_BYTES  # octets that still fit, by estimate
        self.content: bytes | None = None  # the encoded batch
        self.count = self.size = 0  # records and estimated octets, known when it is sealed
        self.encoding_until = 0.0  # monotonic seconds; before, the thread that sealed it is encoding it

    def encode(self, compression: str | None) -> None:
        """Turn the records of a sealed batch into ``content`` and let go of them. Any thread, even twice."""
        records = self.records
        if self.content is not None:
            return
        try:
            content = encode_batch(records, base_offset=self.base_offset, compression=compression)
        except BaseException:  # interrupted: the hub does it
            self.encoding_until = 0.0
            raise
        if self.content is None:
            self.content = content
        self.records = []


class BatchProducerNode(ProducerNode):
    """A producer of record batches. ``linger``: seconds that a batch waits for more records."""

    kind = BATCHES

    def __init__(
        self,
        hub: Hub,
        options: EndpointOptions,
        role: ProducerRole,
        head_interval: float,
        compression: str | None,
        linger: float,
        finding: Finding = NOT_FINDING,
    ) -> None:
        self._lock = _Lock()
        self._open = Batch(0, 0)
        self._shut = False
        self._compression = compression
        self._linger = linger
        self._looking = False  # a greenlet will look at what another thread is encoding
        self._ends: deque[tuple[int, int]] = deque()  # of retained batches: the sequence and offset behind
        self._published = 0  # offset behind the last record published
        self._let_go = 0  # offset of the first record retained
        self._first_offset = 0
        super().__init__(hub, options, role, head_interval, finding)

    # -- the sending threads --------------------------------------------------------------------

    def append(
        self,
        value: bytes | None,
        key: bytes | None,
        headers: Iterable[tuple[str, bytes | None]],
        timestamp: int | None,
        timeout: float | None,
    ) -> int:
        """Take a record and return its offset; see :meth:`dafka.Producer.send`."""
        if type(value) is bytes:
            size = RECORD_OVERHEAD + len(value)
        elif value is None:
            size = RECORD_OVERHEAD
        else:
            value = _octets("value", value)
            size = RECORD_OVERHEAD + len(value)
        if key is not None:
            key = _octets("key", key)
            size += len(key)
        checked: Headers = ()
        if headers:
            checked, octets = _checked_headers(headers)
            size += octets
        if timestamp is None:
            timestamp = time_ns() // 1_000_000  # half of what int(1000 * time()) takes
        else:
            _check_timestamp(timestamp)
        record = (timestamp, key, value, checked)
        with self._lock:
            batch = self._open
            records = batch.records
            index = len(records)
            # All but one in a thousand records go this way. One that is too large has no room here.
            if index and batch.room >= size and index < limits.BATCH_RECORDS and not self._shut:
                records.append(record)
                batch.room -= size
                return batch.base_offset + index
        return self._append_otherwise(record, size, timeout)

    def _append_otherwise(self, record: BatchRecord, size: int, timeout: float | None) -> int:
        """Take a record that may be a batch's first, or has to wait for room."""
        if size > limits.RECORD_OCTETS:
            raise RecordTooLargeError(
                f"a record has at most {limits.RECORD_OCTETS} octets with its key and headers, "
                f"this one has {size}"
            )
        begun: Batch | None = None  # by this record
        try:
            while True:
                sealed = None
                with self._lock:
                    if self._shut:
                        self._hub.check()
                        raise ProducerClosedError("the producer is closed")
                    batch = self._open
                    records = batch.records
                    index = len(records)
                    if index and batch.room >= size and index < limits.BATCH_RECORDS:
                        records.append(record)
                        batch.room -= size
                        break
                    if not self.full and not self.is_full():
                        if not index:  # a batch takes its first record whatever its size
                            begun = batch
                            records.append(record)
                            batch.room -= size
                            break
                        sealed = self._seal()
                if sealed is None:
                    self.wait_for_room(timeout)
                else:
                    self._encode(sealed)
                    if len(self.pending) > 1:
                        self._hub.give_way()  # consumers and stores would have nothing to do meanwhile
            return batch.base_offset + index
        finally:  # also where an interrupt is raised: other records may be in the batch by now
            if begun is not None:
                try:
                    self._hub.post(self._opened, begun)
                except BaseException:  # interrupted, maybe before it was posted; twice does no harm
                    self._hub.post(self._opened, begun)
                    raise

    def seal(self) -> int:
        """Seal the open batch although it is not full; the sequence behind it."""
        with self._lock:
            batch = self._seal() if self._open.records else None
            end = self._open.sequence
        if batch is not None:
            self._encode(batch)
        return end

    def shut(self) -> None:
        """Take no more records."""
        with self._lock:
            self._shut = True

    def cut_off(self) -> None:
        super().cut_off()
        self._lock = _Lock()
        self._shut = True

    def unacknowledged(self) -> int:
        batch = self._open
        taken = batch.base_offset + len(batch.records)
        return taken - (self._let_go if self._role.min_stores else self._published)

    def _seal(self) -> Batch:
        """With the lock held, and records in the open batch."""
        batch = self._open
        batch.count = len(batch.records)
        batch.size = limits.BATCH_BYTES - batch.room
        batch.encoding_until = monotonic() + ENCODING_SECONDS
        fresh = Batch(batch.sequence + 1, batch.base_offset + batch.count)
        # Python looks for signals after calls, so these lines happen all or not at all.
        self.sent_bytes += batch.size
        self._open = fresh
        self.pending.append(batch)
        return batch

    def _encode(self, batch: Batch) -> None:
        batch.encode(self._compression)
        self.signal()

    # -- the hub --------------------------------------------------------------------------------

    def _number_from(self, position: Position) -> None:
        # Of messages that no store has nobody knows the offsets; each had at most a full batch of them.
        offset = position.offset + position.witnessed * limits.BATCH_RECORDS
        with self._lock:
            self._open = Batch(position.sequence, offset)
        self._first_offset = self._published = self._let_go = offset

    def _opened(self, batch: Batch) -> None:
        gevent.spawn_later(self._linger, self._lingered, batch)

    def _lingered(self, batch: Batch) -> None:
        with self._lock:
            if self._open is not batch or not batch.records:
                return
            self._seal()
        self._encode(batch)

    def _next_contents(self) -> list[bytes]:
        pending, ends = self.pending, self._ends
        contents: list[bytes] = []
        size = 0
        while pending and len(contents) < limits.RUN_RECORDS and size < limits.RUN_BYTES:
            batch = pending[0]
            if batch.content is None:
                wait = batch.encoding_until - monotonic()
                if wait > 0:
                    self._look_again(wait)
                    break
                batch.encode(self._compression)
            pending.popleft()
            self.drained_bytes += batch.size
            size += len(batch.content)
            contents.append(batch.content)
            self._published = batch.base_offset + batch.count
            ends.append((batch.sequence + 1, self._published))
        return contents

    def _look_again(self, wait: float) -> None:
        """After ``wait`` seconds; the thread that encodes signals before, unless it was interrupted."""
        if not self._looking:
            self._looking = True
            gevent.spawn_later(wait, self._look)

    def _look(self) -> None:
        self._looking = False
        self.drain()

    def _progressed(self) -> None:
        ends, first = self._ends, self._role.first_retained
        while ends and ends[0][0] <= first:
            self._let_go = ends.popleft()[1]
        super()._progressed()

    def _offsets(self, first: int, end: int) -> tuple[int, int]:
        following = [offset for sequence, offset in self._ends if sequence == end]
        following += [batch.base_offset + batch.count for batch in self.pending if batch.sequence + 1 == end]
        return self._let_go, following[0] - 1

    def metrics(self) -> dict[str, Any]:
        return {
            **super().metrics(),
            "records_out": self._published - self._first_offset,
            "pending_records": self._open.base_offset + len(self._open.records) - self._published,
            "retained_records": self._published - self._let_go,
        }


def _octets(what: str, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"a record's {what} is bytes or None, not {type(value).__name__}")
    return bytes(value)


def _check_timestamp(timestamp: Any) -> None:
    if not isinstance(timestamp, int):
        raise TypeError(f"a record's timestamp is an int, not {type(timestamp).__name__}")
    if not 0 <= timestamp <= TIMESTAMP_LIMIT:
        raise ValueError(f"a record's timestamp is in milliseconds since the epoch, not {timestamp!r}")


def _checked_headers(
    headers: Iterable[tuple[str, bytes | None]],
) -> tuple[list[tuple[str, bytes | None]], int]:
    """The headers as a list of their own, and their octets in a batch at most."""
    checked: list[tuple[str, bytes | None]] = []
    size = 0
    for header in headers:
        if not isinstance(header, tuple) or len(header) != 2 or not isinstance(header[0], str):
            raise TypeError(f"a record's headers are tuples of a str and bytes or None, not {header!r}")
        name, value = header
        if value is not None:
            value = _octets("header", value)
        checked.append((name, value))
        size += len(name.encode()) + len(value or b"") + 20
    if len(checked) > HEADERS_LIMIT:  # nobody would read it
        raise RecordTooLargeError(
            f"a record has at most {HEADERS_LIMIT} headers, this one has {len(checked)}"
        )
    return checked, size
