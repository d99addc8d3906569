"""The records' part of the broker interface: produce, fetch, and offsets by time and by leader epoch.

See :mod:`dafka.broker.interface.broker` for what all methods have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.interface.transactions import Writes

LATEST = -1  # a timestamp of list_offsets: the offset behind the last record
EARLIEST = -2  # ... the first record that exists
MAX_TIMESTAMP = -3  # ... the first record with the largest timestamp of the partition

NO_OFFSET = -1
NO_EPOCH = -1

MOST_IN_FLIGHT = 5  # produce requests under way at once: of an idempotent producer Kafka remembers so many


class RecordError(NamedTuple):
    """The error of one record of a refused batch. 0 is the first record that was refused."""

    batch_index: int
    message: str


class Produced(NamedTuple):
    """The outcome for one partition of a produce.

    ``base_offsets`` are the offsets of the first record of each batch; with an error, those of the batches
    that were appended before the refused one (a remote broker appends them one at a time); with ``acks`` 0
    there are none. ``timestamp`` (ms) is -1 where records keep the time that their producer gave them.
    ``detail`` says in words what is wrong. ``record_errors`` are the records because of which the others were
    refused with them, if that is known.
    """

    error: Error | None
    base_offsets: tuple[int, ...] = ()
    timestamp: int = -1
    log_start_offset: int = NO_OFFSET
    detail: str = ""
    record_errors: Sequence[RecordError] = ()

    @property
    def base_offset(self) -> int:
        """The offset of the first record that was produced; -1 if there was an error, or with ``acks`` 0."""
        return self.base_offsets[0] if self.error is None and self.base_offsets else NO_OFFSET


class FetchFrom(NamedTuple):
    """Where to read on, and how many bytes of batches at most (but for the first batch of a fetch).

    ``leader_epoch`` is the epoch that the reader takes for the leader's, ``last_epoch`` that of the last
    record it has read; -1: it does not say."""

    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH


class Fetched(NamedTuple):
    """The records read from one partition: whole batches, the first of which holds the offset asked for.

    ``high_watermark`` is the offset behind the last committed record. With OffsetOutOfRangeError both limits
    are filled in.

    ``last_stable_offset`` is the first offset of a transaction that is still open, or the high watermark;
    readers of committed records get none from there on. ``aborted`` are (producer id, first offset) of the
    aborted transactions among the records, for those readers only.

    ``diverging`` is there, and no batches, if the records of the reader's ``last_epoch`` end before the
    offset: the largest epoch up to that one, and the end of its records.

    ``records`` is the number of records in the batches; a broker over TCP does not count them."""

    error: Error | None
    high_watermark: int
    log_start_offset: int
    batches: Sequence[bytes]
    last_stable_offset: int = -1
    aborted: Sequence[tuple[int, int]] = ()
    diverging: tuple[int, int] | None = None
    records: int = 0


class ListedOffset(NamedTuple):
    """An offset, with timestamp (ms) and leader epoch of its record; all are -1 if no record is that late."""

    error: Error | None
    offset: int = NO_OFFSET
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


class EpochEnd(NamedTuple):
    """The largest epoch up to the one asked for, and the offset behind its last record; -1 and -1 for an
    epoch that is still to come."""

    error: Error | None
    leader_epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET


NO_EPOCHS: Mapping[TopicPartition, int] = MappingProxyType({})


class PartitionWatch(ABC):
    """Says which of many partitions have changed: their end or beginning has moved, or they are gone."""

    @abstractmethod
    def add(self, key: TopicPartition) -> bool:
        """Watch a partition from now on, also one that is watched already; False if there is none."""

    @abstractmethod
    def remove(self, key: TopicPartition) -> None:
        """Watch it no longer."""

    @abstractmethod
    def take(self) -> Collection[TopicPartition]:
        """The partitions that have changed since the last call, the first to change first."""

    @abstractmethod
    def wait(self, timeout: float) -> bool:
        """Wait until there is something to take, for at most that many seconds; whether there is."""

    @abstractmethod
    def close(self) -> None:
        """End it, and the waiting; may itself wait as a green thread."""


class RecordInterface(ABC):
    """Records."""

    @abstractmethod
    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[bytes]],
        acks: int = -1,
        *,
        transactional_id: str | None = None,
        writes: Writes = Writes.ANNOUNCED,
        in_flight: int = MOST_IN_FLIGHT,
        trusted: bool = False,
        from_0: bool = False,
    ) -> dict[TopicPartition, Produced]:
        """Append record batches (magic 2) and return after the commit.

        ``acks`` 0 returns when the batches are numbered; 1 and -1 mean the same here. The batches of one
        partition are appended together or not at all. A large one may be a view of memory that can be written
        and is given away until it is stored: it gets its offsets there, instead of a copy.

        ``in_flight``: the most requests under way at once that a broker in another process may be sent.
        ``trusted``: the batches were encoded in this process, so a broker in it does not examine their
        records unless the topic's configuration asks for it.
        ``from_0``: a batch with another base offset than 0 is refused, as Kafka refuses it of clients.
        Without it batches are taken as another log has numbered them.

        Batches of idempotent producers (with a producer id) are appended once: a repeated batch, also while
        the first is under way, gets the offset of the first. The partition of a transactional batch must
        have been added to the open transaction of ``transactional_id``, or is added now: see ``writes``.
        Errors: UnknownTopicOrPartitionError,
        PolicyViolationError (a native producer's), CorruptRecordError, InvalidRecordError (no batch, an empty
        one, a record without a key for a compacted topic), InvalidTimestampError, MessageSizeTooLargeError,
        InvalidRequiredAcksError, KafkaStorageError (not written); OutOfOrderSequenceNumberError,
        InvalidProducerEpochError, InvalidTxnStateError, TransactionAbortableError,
        InvalidProducerIdMappingError, ConcurrentTransactionsError (try again).
        """

    @abstractmethod
    def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool = False,
        stored: bool = False,
        counted: bool = True,
    ) -> dict[TopicPartition, Fetched]:
        """Read batches; waits until there are ``min_bytes``, or an error, for at most ``max_wait`` seconds.

        Answered are the partitions with data or an error; all of them when the time is over. Partitions are
        read in the order given until ``max_bytes`` are reached; the first batch of all comes whatever its
        size. With ``read_committed`` nothing is read from the last stable offset on, and the answer names the
        aborted transactions. With ``stored`` a broker of this process may have
        :class:`dafka.log.StoredBatches` among the batches. A caller that may throw away what it gets says
        that it is not ``counted``, and :meth:`count_fetched` what it has used.

        Errors: UnknownTopicOrPartitionError, OffsetOutOfRangeError, KafkaStorageError
        (unreadable), CorruptRecordError (damaged on disk), FencedLeaderEpochError, UnknownLeaderEpochError.
        """

    def count_fetched(self, records: int, octets: int) -> None:
        """Count records that were given to a client. A broker without such figures ignores it."""
        return

    def watch(self) -> PartitionWatch:
        """A watch without partitions. Only for a broker of this process."""
        raise NotImplementedError("partitions are watched in the broker's process; over TCP a fetch waits")

    @abstractmethod
    def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        leader_epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> dict[TopicPartition, ListedOffset]:
        """The first offset with that timestamp (ms) or a later one; or LATEST, EARLIEST, MAX_TIMESTAMP.

        With ``read_committed`` LATEST is the last stable offset, and nothing is found from there on.
        ``leader_epochs`` are what the caller takes for the leaders' epochs: FencedLeaderEpochError for one
        that is over, UnknownLeaderEpochError for one that is still to come.
        """

    @abstractmethod
    def epoch_ends(
        self,
        epochs: Mapping[TopicPartition, int],
        *,
        leader_epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> dict[TopicPartition, EpochEnd]:
        """Where the records of these leader epochs end (Kafka's OffsetForLeaderEpoch); ``leader_epochs`` as
        in :meth:`list_offsets`. A reader that has come further has read records that were lost since."""
