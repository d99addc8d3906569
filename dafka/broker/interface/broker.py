"""The one interface of a broker: Kafka's operations as plain methods on plain values.

Everything that speaks Kafka stands on it: the facade in the same process calls it through the hub, the wire
listener decodes requests into the same calls, and a remote broker is the same interface over TCP. There is
no second path to the data.

Every method runs in the hub and may wait as a green thread. Topics are str, partitions are numbers, and
``(topic, partition)`` is a plain pair (a kafka-python ``TopicPartition`` is one, too). A request for several
things is answered for each of them: ``error`` is a class of ``kafka.errors``, or None. What a method raises
itself concerns the broker as a whole: :class:`dafka.broker.interface.errors.BrokerStoppedError`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from dafka.broker.interface.admin import AdminInterface
from dafka.broker.interface.groups import (
    CommittedOffset,
    Error,
    GroupDescription,
    GroupInterface,
    Joined,
    JoinedMember,
    JoinRequest,
    LeavingMember,
    ListedGroup,
    MemberDescription,
    Synced,
    TopicPartition,
)
from dafka.broker.interface.transactions import TransactionInterface

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "NO_EPOCH",
    "NO_EPOCHS",
    "NO_OFFSET",
    "BrokerInterface",
    "CommittedOffset",
    "EpochEnd",
    "Error",
    "FetchFrom",
    "Fetched",
    "GroupDescription",
    "JoinRequest",
    "Joined",
    "JoinedMember",
    "LeavingMember",
    "ListedGroup",
    "ListedOffset",
    "MemberDescription",
    "Metadata",
    "PartitionMetadata",
    "PartitionWatch",
    "Produced",
    "RecordError",
    "Synced",
    "TopicMetadata",
    "TopicPartition",
    "TopicSpec",
]

LATEST = -1  # a timestamp of list_offsets: the offset behind the last record
EARLIEST = -2  # ... the first record that exists
MAX_TIMESTAMP = -3  # ... the first record with the largest timestamp of the partition

NO_OFFSET = -1
NO_EPOCH = -1


class PartitionMetadata(NamedTuple):
    """A partition of a topic: ``address`` names the Dafka producer that writes it.

    ``writable`` is False for the partition of a native producer: only that producer writes it.
    ``leader_epoch`` goes up when committed records may have been lost.
    """

    number: int
    address: str
    writable: bool
    leader_epoch: int = 0


class TopicMetadata(NamedTuple):
    """A topic with its partitions in the order of their numbers; ``error`` if there is none of that name."""

    name: str
    topic_id: UUID
    error: Error | None
    partitions: list[PartitionMetadata]


class Metadata(NamedTuple):
    """What the broker has. ``brokers`` are (node id, host, port)."""

    cluster_id: str
    controller_id: int
    brokers: list[tuple[int, str, int]]
    topics: dict[str, TopicMetadata]


class TopicSpec(NamedTuple):
    """A topic to be created. ``partitions`` -1: the broker's default. ``configs`` are Kafka's, as text."""

    partitions: int = -1
    configs: Mapping[str, str] = {}


class RecordError(NamedTuple):
    """What is wrong with one record of a refused batch. 0 is the first record that was refused."""

    batch_index: int
    message: str


class Produced(NamedTuple):
    """The outcome for one partition of a produce.

    ``base_offset`` is the offset of the first record; ``timestamp`` (ms) is -1 where records keep the time
    that their producer gave them; ``detail`` says in words what is wrong. ``base_offsets`` are there only
    where the batches do not stand one behind the other, because some of them had come before or because
    they were taken one at a time (by a remote broker); with an error, they are those of the batches that
    were taken before the first that was not. ``record_errors`` are the records because of which the others
    were refused with them, if that is known.
    """

    error: Error | None
    base_offset: int = NO_OFFSET
    timestamp: int = -1
    log_start_offset: int = NO_OFFSET
    detail: str = ""
    base_offsets: Sequence[int] = ()
    record_errors: Sequence[RecordError] = ()


class FetchFrom(NamedTuple):
    """Where to read on, and how many bytes of batches at most (but for the first batch of a fetch).

    ``leader_epoch`` is the epoch that the reader takes for the leader's, ``last_epoch`` that of the last
    record it has read; -1: it does not say."""

    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH


class Fetched(NamedTuple):
    """What was read from one partition: whole batches, the first being the one that holds the offset asked
    for. ``high_watermark`` is the offset behind the last committed record. With OffsetOutOfRangeError both
    limits are filled in.

    ``last_stable_offset`` is the first offset of a transaction that is still open, or the high watermark;
    who reads committed records only gets none from there on. ``aborted`` are (producer id, first offset) of
    the aborted transactions in what was read, for those readers only.

    ``diverging`` is there, and no batches, if the records of the reader's ``last_epoch`` end before the
    offset: the largest epoch up to that one, and where its records end."""

    error: Error | None
    high_watermark: int
    log_start_offset: int
    batches: list[bytes]
    last_stable_offset: int = -1
    aborted: Sequence[tuple[int, int]] = ()
    diverging: tuple[int, int] | None = None


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
        """Those that have changed since this was called last, the first to change first."""

    @abstractmethod
    def wait(self, timeout: float) -> bool:
        """Wait until there is something to take, for at most that many seconds; whether there is."""

    @abstractmethod
    def close(self) -> None:
        """End it, and the waiting; may itself wait as a green thread."""


class BrokerInterface(GroupInterface, AdminInterface, TransactionInterface):
    """A broker. See the module for what all methods have in common, and
    :mod:`dafka.broker.interface.groups`, :mod:`dafka.broker.interface.admin` and
    :mod:`dafka.broker.interface.transactions` for the others."""

    @abstractmethod
    def metadata(self, topics: Iterable[str] | None, create: bool = False) -> Metadata:
        """Brokers, and the topics of these names (None: all).

        A topic that does not exist is created with the default number of partitions if ``create`` is set
        and the broker allows that; otherwise it is there with UnknownTopicOrPartitionError. An illegal name
        has InvalidTopicError.
        """

    def topic_names(self, ids: Iterable[UUID]) -> dict[UUID, str]:
        """The names of the topics with these ids, as far as there are such topics."""
        wanted = set(ids)
        topics = self.metadata(None).topics.values()
        return {topic.topic_id: topic.name for topic in topics if topic.topic_id in wanted}

    @abstractmethod
    def create_topics(
        self,
        topics: Mapping[str, TopicSpec],
        *,
        validate_only: bool = False,
        details: MutableMapping[str, str] | None = None,
    ) -> dict[str, Error | None]:
        """Create topics, or with ``validate_only`` say what would become of it.

        ``details`` gets, by topic, what is wrong in words. Errors: InvalidTopicError,
        TopicAlreadyExistsError, InvalidPartitionsError, InvalidConfigurationError, KafkaStorageError.
        """

    @abstractmethod
    def create_partitions(self, totals: Mapping[str, int]) -> dict[str, Error | None]:
        """Raise the number of partitions of topics to these totals, those of native producers counted.

        The new ones stand behind all that the topic has. Errors: UnknownTopicOrPartitionError,
        InvalidPartitionsError (not more than there are), KafkaStorageError.
        """

    @abstractmethod
    def delete_topics(self, names: Iterable[str]) -> dict[str, Error | None]:
        """Delete topics with their records. Errors: UnknownTopicOrPartitionError, KafkaStorageError."""

    @abstractmethod
    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[bytes]],
        acks: int = -1,
        *,
        transactional_id: str | None = None,
    ) -> dict[TopicPartition, Produced]:
        """Append record batches (magic 2, with any base offset) and return after the commit.

        ``acks`` 0 returns when the batches are numbered; 1 and -1 mean the same here. What comes for one
        partition is taken as a whole or not at all.

        Batches of idempotent producers (with a producer id) are appended once: one that comes again, also
        while the first is under way, gets the offset that the first has. Transactional ones need their
        partition added to the open transaction of ``transactional_id``. Errors: UnknownTopicOrPartitionError,
        PolicyViolationError (a native producer's), CorruptRecordError, InvalidRecordError (no batch, an empty
        one, a record without a key for a compacted topic), InvalidTimestampError, MessageSizeTooLargeError,
        InvalidRequiredAcksError, KafkaStorageError (not written); OutOfOrderSequenceNumberError,
        InvalidProducerEpochError, InvalidTxnStateError,
        InvalidProducerIdMappingError.
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
    ) -> dict[TopicPartition, Fetched]:
        """Read batches; waits until there are ``min_bytes``, or an error, for at most ``max_wait`` seconds.

        Answered are the partitions with data or an error; all of them when the time is over. Partitions are
        read in the order given until ``max_bytes`` are reached; the first batch of all comes whatever its
        size. With ``read_committed`` nothing is read from the last stable offset on, and the answer names the
        aborted transactions. Errors: UnknownTopicOrPartitionError, OffsetOutOfRangeError, KafkaStorageError
        (unreadable), CorruptRecordError (damaged on disk), FencedLeaderEpochError, UnknownLeaderEpochError.
        """

    def watch(self) -> PartitionWatch:
        """A watch that watches nothing yet. Only the embedded broker can tell."""
        raise NotImplementedError

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
