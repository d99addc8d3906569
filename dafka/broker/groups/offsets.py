"""The committed offsets of consumer groups: rows of the log's table ``offsets``, by group and partition.

The key consists of the length of the group's name, the name, the topic id and the partition's number, so that
the rows of a group have a common prefix whatever its name is, and a topic that was deleted and created again
starts without offsets. The value is offset, metadata, leader epoch, and the time of the commit (ms since
1970), which older rows lack.

Offsets of a transaction are written when it commits. Until then they are *held*: a request for stable offsets
gets UNSTABLE_OFFSET_COMMIT, because the transaction may replace the current offset at any moment. A group is
there with them already, as in Kafka, and who deletes its offsets deletes these, too.
"""

from __future__ import annotations

import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from operator import index
from typing import Any, NamedTuple
from uuid import UUID

import gevent.event
from kafka.errors import (
    InvalidCommitOffsetSizeError,
    InvalidGroupIdError,
    KafkaStorageError,
    OffsetMetadataTooLargeError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)

from dafka.broker.interface.broker import CommittedOffset, Error, TopicPartition
from dafka.broker.limits import (
    BARE_GROUPS,
    COMMIT_OFFSETS,
    OFFSET_METADATA_MAX_BYTES,
    OFFSETS_KEPT,
)
from dafka.broker.topics.table import Topic, TopicTable
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.turns import Pace, in_pieces
from dafka.log import DamagedError, Log, LogError, shapes

OFFSETS = "offsets"

_PARTITION = re.compile("/[0-9a-f]{32}/[0-9]{1,6}").fullmatch
_optional_text = shapes.either(shapes.text, shapes.nothing)
OFFSET = shapes.either(
    shapes.row_of(shapes.number, _optional_text, shapes.number),
    shapes.row_of(shapes.number, _optional_text, shapes.number, shapes.number),
)
"""The value of a row: offset, metadata, leader epoch, and the time of the commit."""


def is_key(key: str) -> bool:
    """Whether a row may have this key."""
    length, colon, rest = key.partition(":")
    size = int(length) if length.isascii() and length.isdecimal() and len(length) < 10 else -1
    return bool(colon) and 0 <= size <= len(rest) and bool(_PARTITION(rest[size:]))


class StoredOffset(NamedTuple):
    """A row of the table; ``topic`` is None after its deletion, ``committed_at`` (ms) in rows without it."""

    key: str
    group: str
    topic: str | None
    row: list[Any]

    @property
    def committed_at(self) -> int | None:
        return self.row[3] if len(self.row) > 3 else None

    def dated(self, at: int) -> Rows:
        """The row with a time of commit."""
        return {(OFFSETS, self.key): [*self.row[:3], at]}

    def deleted(self) -> Rows:
        """The change that deletes the row."""
        return {(OFFSETS, self.key): None}


class GroupOffsets:
    """The committed offsets of all groups."""

    def __init__(
        self, log: Log, writer: Writer, topics: TopicTable, clock: Callable[[], float] = time.time
    ) -> None:
        self._table = log.table(OFFSETS, shapes.rows(is_key, OFFSET))
        self._writer = writer
        self._topics = topics
        self._clock = clock
        self._writing: Counter[str] = Counter()  # rows that wait for their round
        # Groups whose last offset was deleted, or was never committed. A plain dict would look at each entry
        # that has been taken out before the oldest one, whenever that is wanted.
        self._bare: OrderedDict[str, None] = OrderedDict()
        self._table.kinds(_group_of, Pace().rest)
        # Rows of open transactions: a set, which grows at other sizes than the dictionaries that have the
        # same rows. With a hundred thousand of them each takes milliseconds for it.
        self._held: set[str] = set()
        self._held_again: Counter[str] = Counter()  # by how many further ones
        self._holding: Counter[str] = Counter()  # groups, by the number of held rows
        self.withdraw: Callable[[Iterable[str]], Rows] = _nothing
        """Takes rows out of the open transactions that hold them, and returns what is to be written for that.
        Waits as a green thread."""

    def commit(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, Error | None]:
        """Write a group's offsets in one round; waits as a green thread for the commit."""
        answers, rows = self.rows(group, offsets)
        failed = self._put(rows)
        return {key: error or failed for key, error in answers.items()}

    def without_partition(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """The ones of these partitions that do not exist."""
        return {key for key in partitions if self._topics.partition(*key) is None}

    def rows(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> tuple[dict[TopicPartition, Error | None], Rows]:
        """The errors of offsets of a group, and the rows of those without an error.

        Raises TypeError for an offset that is not an integer: a row that cannot be written would fail its
        whole round.
        """
        if not isinstance(group, str):
            return dict.fromkeys(offsets, InvalidGroupIdError), {}
        answers: dict[TopicPartition, Error | None] = {}
        rows: Rows = {}
        now = int(self._clock() * 1000)
        for (name, number), committed in offsets.items():
            partition = self._topics.partition(name, number)
            if partition is None:
                answers[name, number] = UnknownTopicOrPartitionError
            elif len((committed.metadata or "").encode("utf-8", "surrogatepass")) > OFFSET_METADATA_MAX_BYTES:
                answers[name, number] = OffsetMetadataTooLargeError
            else:
                key = _key(group, partition.topic, number)
                if key not in self._table and self._known + len(rows) >= OFFSETS_KEPT:
                    answers[name, number] = InvalidCommitOffsetSizeError
                    continue
                answers[name, number] = None
                rows[OFFSETS, key] = [
                    index(committed.offset),
                    committed.metadata,
                    index(committed.leader_epoch),
                    now,
                ]
        return answers, rows

    @property
    def _known(self) -> int:
        return len(self._table) + len(self._held) + len(self._writing)

    def hold(self, keys: Iterable[str]) -> None:
        """Note that an open transaction commits these rows."""
        for key in keys:
            if key in self._held:
                self._held_again[key] += 1
            else:
                self._held.add(key)
                self._holding[_group_of(key)] += 1

    def release(self, keys: Iterable[str]) -> None:
        """Note that a transaction with these rows has ended."""
        for key in keys:
            if key in self._held_again:
                _less(self._held_again, key)
            elif key in self._held:
                group = _group_of(key)
                self._held.remove(key)
                _less(self._holding, group)
                if group not in self._holding:
                    self._note_bare([group])

    def fetch(
        self, group: str, partitions: Iterable[TopicPartition] | None, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """The committed offsets of a group for these partitions, or for all.

        With ``require_stable`` raises UnstableOffsetCommitError if an open transaction commits one of them.
        """
        stable = not (require_stable and self._held)
        if partitions is None:
            if not stable and group in self._holding:
                raise UnstableOffsetCommitError(f"an open transaction commits offsets of group {group!r}")
            return dict(Pace().over(self._all(group)))
        answers = {}
        for name, number in Pace().over(partitions):
            topic = self._topics.get(name)
            key = "" if topic is None else _key(group, topic, number)
            if not stable and key in self._held:
                raise UnstableOffsetCommitError(
                    f"an open transaction commits the offset of group {group!r} in {name!r} {number}"
                )
            row = self._table.get(key)
            if row is not None:
                answers[name, number] = CommittedOffset(*row[:3])
        return answers

    def unstable_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> set[TopicPartition]:
        """The ones of these partitions, or of all with an offset, of which a transaction commits another."""
        if group not in self._holding:
            return set()
        if partitions is None:
            keys = (key for key in Pace().over(self._table.keys(_prefix(group))) if key in self._held)
            return {place for place in map(self._place, keys) if place is not None}
        found = set()
        for name, number in Pace().over(partitions):
            topic = self._topics.get(name)
            if topic is not None and _key(group, topic, number) in self._held:
                found.add((name, number))
        return found

    def all(self) -> Iterator[StoredOffset]:
        """All rows; rows may be added and deleted during the iteration."""
        for key in self._table.unordered():
            try:
                row = self._table.get(key)
            except DamagedError:
                continue
            if row is None:
                continue
            topic = self._topics.by_id(UUID(hex=key.rpartition("/")[0][-32:]))
            yield StoredOffset(key, _group_of(key), None if topic is None else topic.name, row)

    def rewrite(self, rows: Rows) -> int:
        """Write or delete rows that were read just now, except those that others are about to write; returns
        the number of deleted ones.

        Waits as a green thread for the commit, and raises the exceptions of the log.
        """
        free = {place: row for place, row in rows.items() if not self._is_coming(place[1])}
        if free:
            self._writer.put_and_wait(free)
        return sum(row is None for row in free.values())

    def _is_coming(self, key: str) -> bool:
        return key in self._writing or key in self._held

    def groups(self) -> Collection[str]:
        """The current names of the groups that :meth:`has_group` knows."""
        known = self._table.kinds(_group_of)
        others = chain(self._bare, (group for group in self._holding if group not in self._bare))
        return [*known, *(group for group in others if group not in known)]

    def has_group(self, group: str) -> bool:
        """Whether the group has offsets, also of open transactions, or had some until lately."""
        if not isinstance(group, str):
            return False
        return group in self._table.kinds(_group_of) or group in self._holding or group in self._bare

    def _note_bare(self, groups: Iterable[str]) -> None:
        """Remember those of the groups that have no offset any more."""
        for group in groups:
            if group not in self._table.kinds(_group_of) and group not in self._holding:
                self._bare[group] = None
                self._bare.move_to_end(group)
                if len(self._bare) > BARE_GROUPS:
                    self._bare.popitem(last=False)

    def forget_bare(self) -> None:
        """Forget groups whose offsets were deleted: as in Kafka with the next look for expired ones."""
        self._bare.clear()

    def delete(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Error | None]:
        """Delete the offsets of a group for these partitions, in one round; waits as a green thread for the
        commit."""
        answers: dict[TopicPartition, Error | None] = {}
        rows: Rows = {}
        held: list[str] = []
        for name, number in partitions:
            partition = self._topics.partition(name, number)
            if partition is None:
                answers[name, number] = UnknownTopicOrPartitionError
                continue
            answers[name, number] = None
            key = _key(group, partition.topic, number)
            if key in self._table:
                rows[OFFSETS, key] = None
            if key in self._held:
                held.append(key)
        if held:
            rows.update(self.withdraw(held))
        error = self._put(rows)
        if rows and error is None:
            self._note_bare([group])
        return {key: found or error for key, found in answers.items()}

    def delete_group(self, group: str) -> Error | None:
        """Delete all offsets of a group; waits as a green thread for the commit."""
        for keys in in_pieces(self._held_of(group), COMMIT_OFFSETS):
            error = self._put(self.withdraw(keys))
            if error is not None:
                return error
        for keys in in_pieces(self._table.keys(_prefix(group)), COMMIT_OFFSETS):
            error = self._put({(OFFSETS, key): None for key in keys})
            if error is not None:
                return error
        self._bare.pop(group, None)
        return None

    def _held_of(self, group: str) -> list[str]:
        """The rows about a group that open transactions commit; waits as a green thread."""
        if group not in self._holding:
            return []
        prefix = _prefix(group)
        return [key for key in Pace().over(list(self._held)) if key.startswith(prefix)]

    def _put(self, rows: Rows) -> Error | None:
        if not rows:
            return None
        outcome = gevent.event.AsyncResult()
        self._writing.update(key for _, key in rows)

        def done(error: Exception | None) -> None:
            for _, key in rows:
                _less(self._writing, key)
            outcome.set(error)

        self._writer.put(rows, done)
        error = outcome.get()
        if error is None or isinstance(error, LogError):
            return None if error is None else KafkaStorageError
        raise error

    def forget(self, topic: Topic) -> None:
        """Delete the offsets of all groups for a deleted topic.

        Waits as a green thread for the commits, and raises the exceptions of the log.
        """
        infix = f"/{topic.topic_id.hex}/"
        found = (key for key in Pace().over(self._table.unordered()) if infix in key[-44:])
        for keys in in_pieces(found, COMMIT_OFFSETS):
            self._writer.put_and_wait({(OFFSETS, key): None for key in keys})
            self._note_bare({_group_of(key) for key in keys})

    def _all(self, group: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for key, row in self._table.items(_prefix(group)):
            place = self._place(key)
            if place is not None:
                yield place, CommittedOffset(*row[:3])

    def _place(self, key: str) -> TopicPartition | None:
        """The partition that a row is about; None if its topic is deleted."""
        rest, _, number = key.rpartition("/")
        topic = self._topics.by_id(UUID(hex=rest[-32:]))
        return None if topic is None else (topic.name, int(number))


def _nothing(keys: Iterable[str]) -> Rows:
    """What is to be written where there are no transactions."""
    return {}


def check_offsets(offsets: Iterable[CommittedOffset]) -> None:
    """Raise TypeError if one of them is not an integer."""
    for committed in Pace().over(offsets):
        index(committed.offset)
        index(committed.leader_epoch)


def _less(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _group_of(key: str) -> str:
    length, _, rest = key.partition(":")
    return rest[: int(length)]


def _prefix(group: str) -> str:
    return f"{len(group)}:{group}/"


def _key(group: str, topic: Topic, number: int) -> str:
    return f"{_prefix(group)}{topic.topic_id.hex}/{number}"
