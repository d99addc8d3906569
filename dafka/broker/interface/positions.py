"""Octet positions: a partition as one stream of octets, each record being a message in RAW form.

ZPER's clients name places by such positions and keep them for ever. The position of a record is the sum of
the sizes of the visible records before it (:mod:`dafka.protocol.raw` says what a record's message is). A
record is visible if it lies below the last stable offset, and is neither of an aborted transaction nor a
transaction marker. Positions begin when a partition's are first asked for, and stay the same when the front
of the partition is deleted.

See :mod:`dafka.broker.interface.broker` for what all methods have in common. Positions are those of a broker
in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kafka.errors import KafkaError

from dafka.protocol.errors import DafkaError


class PositionOutOfRangeError(DafkaError, KafkaError):
    """A position before ``first`` or behind ``end``, both of which exist."""

    def __init__(self, position: int, first: int, end: int) -> None:
        super().__init__(f"position {position} is not between {first} and {end}")
        self.position, self.first, self.end = position, first, end


class DamagedPositionError(DafkaError, KafkaError):
    """The octets at ``position`` are damaged on disk, and skipped; ``next`` is the first position behind."""

    def __init__(self, position: int, next_: int) -> None:
        super().__init__(f"the octets from position {position} to {next_ - 1} are damaged on disk")
        self.position, self.next = position, next_


class PartitionPositions(ABC):
    """The positions of one partition. Hub side; most methods may wait as a green thread.

    All of them raise UnknownTopicOrPartitionError when the topic is deleted, BrokerStoppedError when the
    broker is stopped, UnsupportedCompressionTypeError if a batch needs a codec that is not installed, and
    what the log raises when it cannot be read (:class:`dafka.log.LogError`).
    """

    @property
    @abstractmethod
    def first(self) -> int:
        """The position of the first record that exists; may wait when the front has been deleted."""

    @property
    @abstractmethod
    def end(self) -> int:
        """The position behind the last record that was measured. Never waits."""

    @abstractmethod
    def catch_up(self) -> None:
        """Measure what there is up to the last stable offset; :attr:`end` is behind it then.

        Waits while records are read that :meth:`advance` was not told of: of very many, for minutes.
        """

    @abstractmethod
    def wait(self, timeout: float) -> bool:
        """Wait until :meth:`catch_up` may find more or the topic is deleted; at most so many seconds.

        Whether that is so. Returns at once if there are records that are not measured yet. Compare
        :attr:`end` right before: another green thread may have caught up meanwhile.
        """

    @abstractmethod
    def read(self, position: int, max_octets: int) -> bytes:
        """Octets in RAW form from ``position`` on, at most so many, and none from :attr:`end` on.

        There may be fewer than asked for, but at least one if any are there. The first and the last message
        may be cut. Raises PositionOutOfRangeError, and DamagedPositionError where damage is skipped.
        """

    @abstractmethod
    def messages(self, position: int, max_octets: int) -> tuple[list[list[bytes]], int]:
        """Whole messages as their frames, from the first one on that begins at ``position`` or behind it, and
        the position behind the last of them.

        They have at most so many octets, but there is at least one if any is there. Damaged octets are passed
        over. Raises PositionOutOfRangeError.
        """

    @abstractmethod
    def position_of(self, offset: int) -> int:
        """The position of the first record at ``offset`` or behind it; :attr:`end` if none was measured.

        Raises OffsetOutOfRangeError below the log's start, and behind what was measured.
        """

    @abstractmethod
    def offset_of(self, position: int) -> int:
        """The offset of the record whose message holds ``position``; at :attr:`end` that of the next record.

        Raises PositionOutOfRangeError.
        """

    @abstractmethod
    def bounds(self, position: int) -> tuple[int, int]:
        """The first octet of the message that holds ``position``, and the octet behind it.

        Raises PositionOutOfRangeError, also at :attr:`end`, and DamagedPositionError.
        """

    @abstractmethod
    def advance(self, base_offset: int, sizes: Sequence[int]) -> int | None:
        """Take the sizes of records that were just committed from ``base_offset`` on, one offset each.

        They are what :func:`dafka.protocol.raw.message_sizes` says of their messages. If the records before
        them are measured, these need not be read for it; otherwise this catches up first. Returns the
        position of the first of them, or None if that is not decided yet, because a transaction is open that
        began before it.
        """


class PositionsInterface(ABC):
    """The positions of all partitions of a broker."""

    @abstractmethod
    def open(self, topic: str, partition: int, *, base: int | None = None) -> PartitionPositions:
        """The positions of a partition; always the same object. Waits for a commit when they begin.

        They begin with the first record that exists, at ``base`` (0 if it is None). From then on the topic
        cannot become compacted. Raises UnknownTopicOrPartitionError, PolicyViolationError for a topic that
        is compacted and for a ``base`` other than the one that they have begun at, and the log's errors.
        """

    @abstractmethod
    def partitions(self) -> list[tuple[str, int]]:
        """Topic and number of each partition whose positions have begun. Of many topics it takes turns."""
