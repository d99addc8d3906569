"""The stored states of share groups: rows of the log's table ``share``, by group and partition.

A share partition has a row with a snapshot (:mod:`dafka.broker.share.stored`) and behind it rows with what
has changed since. A key consists of the group as in the table of committed offsets, the topic's id, the
partition's number, and the number of the row. The changes go as soon as a new snapshot is written, in the
same round.

Acknowledgements of a share partition by any members that come while a round is being written go into the
next one together, in one row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain
from uuid import UUID

import gevent.event
from kafka.errors import KafkaStorageError

from dafka.broker.interface.broker import Error
from dafka.broker.share import stored
from dafka.broker.share.limits import DELTAS, ROW_RUNS
from dafka.broker.share.partition import SharePartition
from dafka.broker.topics.table import Partition, Topic
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.turns import Pace, in_pieces
from dafka.log import Log, LogClosedError, LogError, shapes

SHARE = "share"

_REST = re.compile("/[0-9a-f]{32}/[0-9]{1,6}/[0-9]{12}").fullmatch
_ROWS_AT_ONCE = 250


def is_key(key: str) -> bool:
    """Whether a row may have this key."""
    length, colon, rest = key.partition(":")
    size = int(length) if length.isascii() and length.isdecimal() and len(length) < 10 else -1
    return bool(colon) and 0 <= size <= len(rest) and bool(_REST(rest[size:]))


def topic_of(key: str) -> UUID:
    """The id of the topic that a row is about."""
    return UUID(hex=key.rsplit("/", 3)[1])


class States:
    """The stored states of all share partitions. Hub side."""

    def __init__(self, log: Log, writer: Writer) -> None:
        self._table = log.table(SHARE, shapes.rows(is_key, stored.is_stored))
        self.writer = writer
        self._table.kinds(_group_of, Pace().rest)

    def has_group(self, group: str) -> bool:
        """Whether there is something of this group."""
        return group in self._table.kinds(_group_of)

    def has(self, group: str, topic: UUID, number: int) -> bool:
        """Whether there is something of this share partition."""
        return next(iter(self._table.keys(key_of(group, topic, number))), None) is not None

    def places(self, group: str) -> list[tuple[UUID, int]]:
        """The partitions that a group has a state for."""
        prefix = _prefix(group)
        found: dict[tuple[UUID, int], None] = {}
        for key in Pace().over(self._table.keys(prefix)):
            topic, number, _ = key[len(prefix) :].split("/")
            found[UUID(hex=topic), int(number)] = None
        return list(found)

    def load(self, group: str, partition: Partition) -> tuple[stored.Stored | None, list[str]]:
        """The state of a share partition, and the keys of its rows; waits as a green thread.

        Raises the log's errors.
        """
        prefix = key_of(group, partition.topic.topic_id, partition.number)
        keys, values = [], []
        for key, value in self._table.items(prefix):
            keys.append(key)
            values.append(value)
        pace = Pace()
        found = stored.restored(values, pace.over)
        pace.rest()
        return found, keys

    def delete(self, group: str, topic: UUID, numbers: Iterable[int]) -> Error | None:
        """Delete the rows of share partitions of a topic, many in a round; waits as a green thread."""
        keys = (list(self._table.keys(key_of(group, topic, number))) for number in numbers)
        return self._delete(chain.from_iterable(keys))

    def delete_group(self, group: str) -> Error | None:
        """Delete all rows of a group; waits as a green thread."""
        return self._delete(self._table.keys(_prefix(group)))

    def forget(self, topic: Topic) -> None:
        """Delete the rows about a deleted topic; waits, and raises the exceptions of the log."""
        found = (key for key in Pace().over(self._table.unordered()) if topic_of(key) == topic.topic_id)
        for keys in in_pieces(found, _ROWS_AT_ONCE):
            self.writer.put_and_wait({(SHARE, key): None for key in keys})

    def _delete(self, keys: Iterable[str]) -> Error | None:
        try:
            for some in in_pieces(keys, _ROWS_AT_ONCE):
                self.writer.put_and_wait({(SHARE, key): None for key in some})
        except LogError:
            return KafkaStorageError
        return None


class Saved:
    """Writes the changes of one share partition, one round at a time. Hub side.

    ``machine()`` is its state now, None before anybody has read it; ``keys`` are those of its rows. ``epoch``
    is the state epoch: alterations of offsets raise it. ``told()`` is called after each round.
    """

    def __init__(
        self,
        writer: Writer,
        prefix: str,
        keys: list[str],
        epoch: int,
        machine: Callable[[], SharePartition | None],
        told: Callable[[], object] = lambda: None,
    ) -> None:
        self._writer = writer
        self._told = told
        self._prefix = prefix
        self._keys = keys
        self.epoch = epoch
        self._machine = machine
        self._next = int(keys[-1].rpartition("/")[2]) + 1 if keys else 0
        self._whole = not keys  # whether the next row has to be a snapshot
        self._writing = False
        self._closed = False
        self._waiting: list[gevent.event.AsyncResult] = []
        self._round: list[gevent.event.AsyncResult] = []  # that wait for what is being written

    def begin(self, whole: bool = False) -> gevent.event.AsyncResult | None:
        """Have all changes so far written, with ``whole`` as a snapshot; returns the outcome for :meth:`end`.

        Changes that are being written already are part of it.
        """
        machine = self._machine()
        self._whole = self._whole or whole
        outcome = gevent.event.AsyncResult()
        if self._whole or (machine is not None and machine.changed):
            self._waiting.append(outcome)
            if not self._writing:
                self._write()
            return outcome
        if not self._writing:
            return None
        self._round.append(outcome)
        return outcome

    @staticmethod
    def end(outcome: gevent.event.AsyncResult | None) -> Error | None:
        """Wait as a green thread for what was begun."""
        error = None if outcome is None else outcome.get()
        if error is None or isinstance(error, LogError):
            return None if error is None else KafkaStorageError
        raise error

    def post(self) -> None:
        """Have all changes so far written, without waiting for it."""
        machine = self._machine()
        if not self._writing and machine is not None and machine.changed:
            self._write()

    def idle(self) -> None:
        """Wait as a green thread until nothing is being written."""
        while self._writing:
            outcome = gevent.event.AsyncResult()
            self._round.append(outcome)
            outcome.wait()

    def close(self) -> None:
        """Begin to write nothing more."""
        self._closed = True

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._closed:
            for outcome in waiting:
                outcome.set(LogClosedError(self._writer.log.path, "the share partition is gone"))
            return
        rows = self._rows()
        self._writing, self._round = True, waiting

        def done(error: Exception | None) -> None:
            self._writing = False
            if error is None:
                self._keys = [key for key in self._keys if rows.get((SHARE, key), b"") is not None]
            else:
                self._whole = True  # the changes of the row are not on disk: the next one has everything
            for outcome in waiting:
                outcome.set(error)
            machine = self._machine()
            self._told()
            if self._waiting or (
                not self._closed and error is None and machine is not None and machine.changed
            ):
                self._write()

        self._writer.put(rows, done)

    def _rows(self) -> Rows:
        machine = self._machine()
        ranges: list[tuple[int, int]] = []
        if machine is not None:
            ranges = machine.take_changes()
        if machine is None or self._whole or machine.size <= ROW_RUNS or len(self._keys) >= DELTAS:
            self._whole = False
            first, *rest = self._keys or [self._new_key()]
            self._keys = [first, *rest]
            rows: Rows = {(SHARE, key): None for key in rest}
            rows[SHARE, first] = stored.snapshot(self.epoch, machine)
            return rows
        key = self._new_key()
        self._keys.append(key)
        return {(SHARE, key): stored.change(self.epoch, machine, ranges)}

    def _new_key(self) -> str:
        self._next += 1
        return f"{self._prefix}{self._next - 1:012}"


def key_of(group: str, topic: UUID, number: int) -> str:
    """How the keys of a share partition begin."""
    return f"{_prefix(group)}{topic.hex}/{number}/"


def _group_of(key: str) -> str:
    length, _, rest = key.partition(":")
    return rest[: int(length)]


def _prefix(group: str) -> str:
    return f"{len(group)}:{group}/"
