"""Fetch: reading batches from several partitions, and waiting for more without polling.

A fetch reads what is there. If that is not enough it registers with its partitions, sleeps until one of them
grows, and reads that partition on from where it stopped: each batch is read once, however often the fetch
wakes up.

Batches are served as they lie in the log: as the same objects or, with ``stored``, from their files. Raw
messages of native producers are encoded as batches, with their sequence as offset and the time of storing as
timestamp.

With ``read_committed`` a fetch gets batches below the last stable offset, where the first open transaction
begins, and the list of aborted transactions among them. That list is made when the batches are read: while
the fetch waits for more, records may be deleted, and the index of their transactions with them. The marker
that moves the last stable offset is a batch as well, so its commit wakes waiting fetches.

The first batch of an answer is included whatever its size, so that every reader makes progress. Further
batches have to fit into the limits of their partition and of the whole answer: clients such as librdkafka
refuse a response that is larger than they asked for.

Compaction may leave many batches without records. An answer has only the last of them.

If the log skips damaged values (``on_damage="skip"``) and no readable batch follows, an empty batch covers
their offsets. Without it a reader would request them for ever.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import cast

from kafka.errors import (
    CorruptRecordError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.broker import NO_EPOCH, NO_OFFSET, Error, Fetched, FetchFrom, TopicPartition
from dafka.broker.limits import YIELD_BYTES
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.topics.epoch_history import FIRST, EpochHistory
from dafka.broker.topics.table import Partition, TopicTable
from dafka.hub.flag import Flag
from dafka.hub.turns import Pace, let_go
from dafka.log import DamagedError, Log, LogClosedError, LogError, LogPartition
from dafka.log.repeating import bounded_logger
from dafka.protocol.batch import HEADER_OCTETS, read_header, with_offset
from dafka.protocol.batch_empty import encode_empty
from dafka.protocol.batch_writer import encode_batch

RAW_MESSAGES = 10_000  # messages of a native producer read at a time; empty ones do not count in bytes
RAW_RECORDS = 1000  # of these put into one batch at most
RAW_OVERHEAD = 16  # octets that a message takes at most as a record, besides its own

MISFITS = 16  # partitions whose next batch does not fit, after which no further partition is read

MESSAGES_KEPT = 100  # of each partition, so that each is logged once

log = bounded_logger(__name__)

_COUNT = slice(HEADER_OCTETS - 4, HEADER_OCTETS)  # of records, in a batch
_NO_RECORDS = bytes(4)
_EPOCH = slice(12, 16)  # of a batch's leader
_EPOCH_0 = bytes(4)

_timestamp = itemgetter(1)
_content = itemgetter(2)


class _Reading:
    """How far a fetch has come in one partition."""

    __slots__ = (
        "aborted",
        "batches",
        "diverging",
        "error",
        "limit",
        "offset",
        "partition",
        "records",
        "refused",
    )  # fmt: skip

    def __init__(self, partition: Partition | None, wanted: FetchFrom, epochs: LeaderEpochs) -> None:
        self.partition = partition
        self.refused: Error | None = UnknownTopicOrPartitionError
        self.diverging: tuple[int, int] | None = None  # the reader has records that the log has lost
        if partition is not None:
            self.refused = epochs.refusal(partition, wanted.leader_epoch)
            if wanted.last_epoch != NO_EPOCH and self.refused is None:
                self._compare(epochs.of(partition), partition.high_watermark, wanted)
        self.offset = wanted.offset
        self.limit = wanted.max_bytes
        self.batches: Sequence[bytes] = ()  # a list only if there are any: most partitions have none
        self.records = 0  # in the offsets of the batches
        self.aborted: Collection[tuple[int, int]] = ()
        self.error: Error | None = None

    def _compare(self, history: EpochHistory, end: int, wanted: FetchFrom) -> None:
        epoch, epoch_end = history.end_of(wanted.last_epoch, end)
        if epoch_end == NO_OFFSET:
            self.refused = OffsetOutOfRangeError
        elif epoch < wanted.last_epoch or epoch_end < wanted.offset:
            self.diverging = epoch, epoch_end

    @property
    def has_result(self) -> bool:
        """Whether it is in the answer of a fetch that ends before its time is over."""
        return bool(self.batches) or self.error is not None or self.diverging is not None

    def answer(self, producers: ProducerStates) -> Fetched:
        partition = self.partition
        if partition is None:
            return Fetched(self.error, NO_OFFSET, NO_OFFSET, [])
        return Fetched(
            self.error,
            partition.high_watermark,
            partition.log_start,
            self.batches,
            producers.last_stable_offset(partition),
            tuple(self.aborted),
            self.diverging,
            self.records,
        )


class Fetch:
    """One fetch of the partitions ``wanted``. Hub side; :meth:`run` waits as a green thread."""

    def __init__(
        self,
        log: Log,
        topics: TopicTable,
        producers: ProducerStates,
        epochs: LeaderEpochs,
        wanted: Mapping[TopicPartition, FetchFrom],
        min_bytes: int,
        max_bytes: int,
        read_committed: bool = False,
        stored: bool = False,
    ) -> None:
        self._log = log
        self._producers = producers
        self._epochs = epochs
        self._read_committed = read_committed
        self._stored = stored
        self._min_bytes = min_bytes
        self._left = max_bytes
        self._taken = 0
        self._since_yield = 0
        self.records = 0
        """In the offsets of the answer's batches."""
        self.found_enough = False
        """Whether it had not to wait."""
        self._failed = False
        self._misfits = 0  # partitions whose next batch did not fit
        self._pace = Pace()
        self._readings = {
            key: _Reading(topics.partition(key[0], key[1]), from_, epochs)
            for key, from_ in self._pace.over(wanted.items())
        }
        self._grown: set[Partition] = set()
        self._wake = Flag()

    def run(self, max_wait: float) -> dict[TopicPartition, Fetched]:
        """Read, wait until it is enough or ``max_wait`` seconds are over, and answer."""
        readings = self._readings
        self._read(readings.values())
        self.found_enough = self._enough
        if not self._enough and max_wait > 0:
            self._wait(time.monotonic() + max_wait)
        producers, paced = self._producers, self._pace.over(readings.items())
        if not self._enough or self._min_bytes <= 0:
            answers = {key: reading.answer(producers) for key, reading in paced}
        else:
            answers = {key: reading.answer(producers) for key, reading in paced if reading.has_result}
        let_go(readings)
        return answers

    @property
    def octets(self) -> int:
        """The size of the answer's batches."""
        return self._taken

    def partition_grew(self, partition: Partition) -> None:
        """Called after each commit of a partition that this fetch waits for, and when it is deleted."""
        self._grown.add(partition)
        self._wake.set()

    def abandon(self) -> None:
        """Stop waiting, because the broker stops."""
        self._failed = True
        self._wake.set()

    @property
    def _enough(self) -> bool:
        full = self._left <= 0 or self._misfits > 0
        return self._failed or self._taken >= self._min_bytes or (full and self._taken > 0)

    def _wait(self, deadline: float) -> None:
        pace = self._pace
        by_partition = {
            reading.partition: reading
            for reading in pace.over(self._readings.values())
            if reading.partition is not None
        }
        try:
            for partition in pace.over(by_partition):
                partition.watch(self)
            if pace.pauses:  # any of them may have grown meanwhile
                self._grown.update(by_partition)
                self._wake.set()
            while not self._enough:
                left = deadline - time.monotonic()
                if left <= 0 or not self._wake.wait(left):
                    break
                self._wake.clear()
                grown, self._grown = self._grown, set()
                self._read(by_partition[partition] for partition in grown)
        finally:
            self._unwatch(by_partition)
        let_go(by_partition)

    def _unwatch(self, partitions: Iterable[Partition]) -> None:
        left = iter(partitions)
        try:
            for partition in self._pace.over(left):
                partition.unwatch(self)
        finally:
            for partition in left:  # the fetch was killed in a pause, and no partition may keep it
                partition.unwatch(self)

    def _read(self, readings: Iterable[_Reading]) -> None:
        for reading in self._pace.over(readings):
            if reading.diverging is not None:
                self._failed = True
                continue
            error = _check(reading)
            room = self._left > 0 and reading.limit > 0 and self._misfits < MISFITS
            if error is None and (room or not self._taken):
                try:
                    self._read_on(reading)
                    self._pace.rest()  # a batch of a file takes long
                except LogClosedError:
                    raise
                except DamagedError as failure:
                    error = CorruptRecordError
                    _tell(reading.partition, failure)
                except LogError as failure:
                    error = KafkaStorageError
                    _tell(reading.partition, failure)
            if error is not None and not reading.batches:
                reading.error = error
                self._failed = True
            if self._since_yield > YIELD_BYTES:
                self._since_yield = 0
                self._pace.pause()

    def _read_on(self, reading: _Reading) -> None:
        partition = reading.partition
        assert partition is not None
        written = partition.high_watermark
        end = self._producers.last_stable_offset(partition) if self._read_committed else written
        if reading.offset >= end:
            return
        limit = min(reading.limit, self._left)
        if self._stored and partition.stored.kind == "batch" and partition.writable:
            batches, behind = self._as_stored(partition.stored, reading.offset, end, limit)
        else:
            batches, behind = self._as_bytes(partition, reading.offset, end, limit)
        if not batches:
            batches = [encode_empty(reading.offset, end, self._epochs.of(partition).at(end - 1))]
            behind = read_header(batches[0]).next_offset
        size = sum(map(len, batches))
        if size > limit and self._taken:
            self._misfits += not reading.batches
            return
        begin, reading.offset = reading.offset, behind
        if self._read_committed:
            found = self._producers.aborted(partition, begin, reading.offset)
            aborted = [(one.producer_id, one.first) for one in found]
            if aborted:
                reading.aborted = dict.fromkeys([*reading.aborted, *aborted])  # in their order
        reading.batches = [*reading.batches, *_without_empty(batches)]
        reading.records += reading.offset - begin
        self.records += reading.offset - begin
        reading.limit -= size
        self._left -= size
        self._taken += size
        self._since_yield += size

    def _as_bytes(self, partition: Partition, offset: int, end: int, limit: int) -> tuple[list[bytes], int]:
        """Batches that begin before ``end``, and the offset behind them."""
        stored, wanted = partition.stored, limit
        if stored.kind == "raw":
            _, some = self._log.read(stored, offset, count=RAW_MESSAGES, max_bytes=limit)
            wanted = sum(map(len, some))
        messages = self._log.read_offsets(stored, offset, max_bytes=wanted)
        if end < stored.next_offset:
            messages = [message for message in messages if message[0] < end]
        if not messages:
            return [], offset
        if stored.kind == "raw":
            batches = _in_batches(messages, limit)
        else:
            batches = list(map(_content, messages))
            if not partition.writable:
                batches = list(map(_without_epoch, batches))
        return batches, read_header(batches[-1]).next_offset

    def _as_stored(self, stored: LogPartition, offset: int, end: int, limit: int) -> tuple[list[bytes], int]:
        """The same, with :class:`dafka.log.StoredBatches` among them, which have a length as batches have."""
        batches, behind = self._log.read_stored(stored, offset, end=end, max_bytes=limit)
        return cast("list[bytes]", batches), behind


def _tell(partition: Partition | None, failure: LogError) -> None:
    """Log a failure of reading, once for each place: clients get an error code only."""
    message = str(failure)
    if partition is not None and message not in partition.unreadable:
        kept = partition.unreadable if len(partition.unreadable) < MESSAGES_KEPT else ()
        partition.unreadable = frozenset((*kept, message))
        log.error("a fetch from (%r, %d) failed: %s", partition.topic.name, partition.number, message)


def _check(reading: _Reading) -> Error | None:
    partition = reading.partition
    if reading.refused is not None:
        return reading.refused
    if partition is None or partition.topic.deleted:
        return UnknownTopicOrPartitionError
    if not partition.log_start <= reading.offset <= partition.high_watermark:
        return OffsetOutOfRangeError
    return None


def _without_empty(batches: list[bytes]) -> list[bytes]:
    """Batches with records, and the last one, whose end is the next offset to fetch."""
    if any(map(_is_empty, batches)):
        return [batch for batch in batches[:-1] if not _is_empty(batch)] + batches[-1:]
    return batches


def _is_empty(batch: bytes) -> bool:
    return type(batch) is bytes and batch[_COUNT] == _NO_RECORDS


def _without_epoch(content: bytes) -> bytes:
    """A native producer's batch in the only epoch of its partition, whatever another broker wrote into it."""
    if content[_EPOCH] == _EPOCH_0:
        return content
    return with_offset(content, read_header(content).base_offset, FIRST.latest)


def _in_batches(messages: list[tuple[int, int, bytes]], limit: int) -> list[bytes]:
    """Raw messages (sequence, timestamp in ms, content) as batches; one timestamp in each (LogAppendTime).

    As many as fit into ``limit`` bytes, and at least one.
    """
    batches: list[bytes] = []
    for timestamp, group in groupby(messages, _timestamp):
        same = list(group)
        for begin in range(0, len(same), RAW_RECORDS):
            some = same[begin : begin + RAW_RECORDS]
            batch = _in_batch(some, timestamp)
            if len(batch) > limit:
                fitting = _fitting(some, limit) or int(not batches)
                return [*batches, _in_batch(some[:fitting], timestamp)] if fitting else batches
            batches.append(batch)
            limit -= len(batch)
    return batches


def _in_batch(messages: list[tuple[int, int, bytes]], timestamp: int) -> bytes:
    records = [(timestamp, None, content, ()) for _, _, content in messages]
    return encode_batch(records, base_offset=messages[0][0], timestamp_type=1)


def _fitting(messages: list[tuple[int, int, bytes]], limit: int) -> int:
    """How many of the messages fit into a batch of ``limit`` bytes."""
    ends = list(accumulate(map(len, map(_content, messages)), initial=HEADER_OCTETS))
    return bisect_right(range(1, len(ends)), limit, key=lambda n: ends[n] + n * RAW_OVERHEAD)
