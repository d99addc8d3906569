"""The log itself: opening a folder, write rounds, reading by sequence, offset and timestamp."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Literal

from dafka.log.catalogue import read_catalogue
from dafka.log.errors import (
    LogClosedError,
    LogForkedError,
    LogOpenError,
    LogWriteError,
    NotALogError,
    TableValueError,
)
from dafka.log.growth import Growth
from dafka.log.limits import NAME_BYTES, TABLE_VALUE_BYTES, TAIL_BYTES
from dafka.log.lock import FolderLock
from dafka.log.partition import LogPartition
from dafka.log.reader import Reader, damaged
from dafka.log.round import Rows, WriteRound
from dafka.log.storage import SYNCHRONOUS, Storage, refuse_foreign
from dafka.log.table import Table, encode_value, pack_key, seal, unseal

Append = tuple[LogPartition, list[bytes]] | tuple[LogPartition, list[bytes], int]
TableValues = Mapping[tuple[str, str], object]
Durability = Literal["process", "power"]


class Log:
    """The log in folder ``path``, opened or created; one process, and one ``Log`` in it, at a time.

    ``durability`` says what a finished :meth:`write` survives: ``'process'`` the death of the process,
    ``'power'`` the death of the machine, too (the disk is synced in every commit). ``tail_bytes`` bounds the
    memory that recent messages take. ``clock`` gives seconds since the epoch: raw messages get their
    timestamps from it.

    One thread owns a log: it calls everything except :meth:`WriteRound.commit`, which may run anywhere.

    Raises LogLockedError, LogVersionError, NotALogError, LogOpenError, DamagedError (the index), and
    ValueError for a setting that is none. All methods raise LogClosedError after :meth:`close`, and
    LogForkedError in a child process forked while the log was open.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "process",
        tail_bytes: int = TAIL_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if durability not in SYNCHRONOUS:
            raise ValueError(f"durability is 'process' or 'power', not {durability!r}")
        if tail_bytes < 0:
            raise ValueError(f"tail_bytes is a number of bytes, not {tail_bytes}")
        self.path = os.path.abspath(os.fspath(path))
        self.durability = durability
        self._clock = clock
        self._closed: type[LogClosedError] | None = None
        self._round: WriteRound | None = None
        self._doubtful: bytes | None = None
        self._lock = _take(self.path)
        try:
            self._storage = Storage(self.path, durability)
            try:
                catalogue = read_catalogue(self._storage)
            except BaseException:
                self._storage.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        self._reader = Reader(self._storage, tail_bytes)
        self._partitions = {
            (partition.topic, partition.address): partition for partition in catalogue.partitions.values()
        }
        self._unwritten: weakref.WeakValueDictionary[tuple[bytes, bytes], LogPartition] = (
            weakref.WeakValueDictionary()
        )
        self._next_number = max(catalogue.partitions, default=-1) + 1
        self._tables: dict[str, Table] = {}
        for table, key in catalogue.table_keys:
            self.table(table).put_stored(key, None)
        _open_logs.add(self)

    # Partitions and tables

    def partition(self, topic: bytes, address: bytes) -> LogPartition:
        """The partition of ``address`` on ``topic``; a new one lasts from the first append on.

        Always the same object for the same names. Raises ValueError for a name over 255 bytes.
        """
        self._check_open()
        names = (topic, address)
        partition = self._partitions.get(names) or self._unwritten.get(names)
        if partition is None:
            for name in names:
                if len(name) > NAME_BYTES:
                    raise ValueError(f"a topic or address has at most {NAME_BYTES} bytes: {name[:40]!r}...")
            partition = self._unwritten[names] = LogPartition(topic, address)
        return partition

    def find(self, topic: bytes, address: bytes) -> LogPartition | None:
        """The partition of ``address`` on ``topic`` if anything was ever written to it."""
        self._check_open()
        return self._partitions.get((topic, address))

    def partitions(self) -> list[LogPartition]:
        """All partitions that were ever written to, in the order of their numbers."""
        self._check_open()
        return list(self._partitions.values())

    def table(self, name: str) -> Table:
        """The table ``name``; nothing needs creating. Raises TableValueError for a name over 255 bytes."""
        self._check_open()
        table = self._tables.get(name)
        if table is None:
            self._table_row(name, "")
            table = self._tables[name] = Table(name, self._load_value)
        return table

    # Writing

    def write(self, appends: Sequence[Append], values: TableValues | None = None) -> None:
        """Append messages and set table values in one transaction; returns after the commit.

        ``appends`` are pairs (partition, contents), or triples with the sequence of the first message for a
        partition that begins above 0 or has lost messages in between. A partition may occur several times,
        in its order. What one entry holds is stored as one value: keep it to about 1 MB, reading costs whole
        values. The first message ever decides what the partition holds: record batches (their offsets must
        rise; gaps are allowed) or raw messages (offset = sequence, whatever their bytes look like).

        ``values`` are ``{(table, key): value}``, None deletes; see :class:`Table` for what a value can be.

        Raises AppendError, TableValueError and LogWriteError; nothing has changed then, neither on disk nor
        in memory.
        """
        round_ = self.begin(appends, values)
        try:
            round_.commit()
        finally:
            round_.finish()

    def begin(self, appends: Sequence[Append], values: TableValues | None = None) -> WriteRound:
        """Prepare what :meth:`write` does as separate steps, so that the commit can run in another thread.

        Call ``commit()`` of the result once, then ``finish()`` in the owner's thread, whatever ``commit()``
        raised. There is one round at a time; LogWriteError if there is another one.
        """
        self._check_open()
        self._check_writable()
        now = int(self._clock() * 1000)
        growths: dict[LogPartition, Growth] = {}
        number = self._next_number
        for partition, contents, *rest in appends:
            growth = growths.get(partition)
            if growth is None:
                if not contents:
                    continue
                if partition.number < 0:
                    growth = Growth(self.path, partition, number, self._reader.load)
                    number += 1
                else:
                    growth = Growth(self.path, partition, partition.number, self._reader.load)
                growths[partition] = growth
            if contents:
                growth.append(contents, rest[0] if rest else None, now)
        encoded, rows = self._encode(values) if values else ({}, ([], []))
        self._round = WriteRound(self._storage, growths.values(), encoded, rows, self._finish)
        self._reader.replaced = self._round.replaced
        return self._round

    def _check_writable(self) -> None:
        if self._round is not None:
            raise LogWriteError(self.path, f"a round of the log {self.path} is not finished; finish it first")
        if self._doubtful is not None:
            # A commit can fail after its bytes have reached the file (a sync that fails), and come back to
            # life when SQLite recovers the file. Writing on would then store the same sequences twice.
            if self._storage.holds(self._doubtful):
                raise LogWriteError(
                    self.path,
                    f"a round of the log {self.path} that was reported as failed is on disk after all; "
                    "close the log and open it again before writing",
                )
            self._doubtful = None

    def _encode(self, values: TableValues) -> tuple[dict[tuple[str, str], bytes | None], Rows]:
        encoded: dict[tuple[str, str], bytes | None] = {}
        deleted: list[bytes] = []
        stored: list[tuple[bytes, bytes]] = []
        for (table, key), value in values.items():
            row = self._table_row(table, key)
            if value is None:
                encoded[table, key] = None
                deleted.append(row)
                continue
            try:
                content = encoded[table, key] = encode_value(value)
            except (TypeError, ValueError, RecursionError) as error:
                message = f"table {table!r}, key {key!r} cannot hold this value: {error}"
                raise TableValueError(self.path, message) from error
            if len(content) > TABLE_VALUE_BYTES:
                raise TableValueError(
                    self.path,
                    f"table {table!r}, key {key!r}: a value has at most {TABLE_VALUE_BYTES} bytes, "
                    f"this one {len(content)}",
                )
            stored.append((row, seal(row, content)))
        return encoded, (deleted, stored)

    def _table_row(self, table: str, key: str) -> bytes:
        try:
            return pack_key(table, key)
        except (ValueError, TypeError, AttributeError) as error:
            raise TableValueError(self.path, f"table {table!r}, key {key!r}: {error}") from error

    def _finish(self, round_: WriteRound) -> None:
        self._round = None
        self._reader.replaced = {}
        if not round_.committed:
            if round_.attempted:
                if round_.growths:
                    self._doubtful = round_.growths[0].added[-1].key.pack()
                for table, key in round_.values:
                    self.table(table).forget_value(key)
            return
        for growth in round_.growths:
            partition, index = growth.partition, growth.partition.index
            if partition.number < 0:
                index.number = growth.number
                self._next_number = growth.number + 1
                self._partitions[partition.topic, partition.address] = partition
                self._unwritten.pop((partition.topic, partition.address), None)
            index.drop_last(len(index) - growth.kept)
            index.extend(chunk.key for chunk in growth.added)
            for chunk in growth.added:
                self._reader.remember(chunk.key.pack(), chunk.loaded())
        for row in round_.replaced:
            self._reader.forget(row)
        for (table, name), value in round_.values.items():
            if value is None:
                self.table(table).drop(name)
            else:
                self.table(table).put_stored(name, value)

    # Reading

    def read(
        self, partition: LogPartition, sequence: int, *, count: int, max_bytes: int
    ) -> tuple[int, list[bytes]]:
        """Consecutive messages from ``sequence`` on: (sequence of the first, contents).

        At most ``count``, and ``max_bytes`` of contents but at least one. If ``sequence`` no longer exists,
        or lies in a gap, the first that exists after it comes first. ``(sequence, [])`` at the end. Raises
        DamagedError or LogReadError only if nothing could be read before that place.
        """
        self._check_open()
        return self._reader.read(partition, sequence, count, max_bytes)

    def read_offsets(
        self, partition: LogPartition, offset: int, *, max_bytes: int
    ) -> list[tuple[int, int, bytes]]:
        """Messages from the one that holds ``offset`` on: (base offset, timestamp in ms, content).

        If no message holds it, from the first one after it on. The first message may begin below ``offset``
        (a batch is served whole). At most ``max_bytes`` of contents, but at least one; empty at the end. A
        batch's timestamp is its largest. Raises DamagedError or LogReadError only if nothing could be read
        before that place.
        """
        self._check_open()
        return self._reader.read_offsets(partition, offset, max_bytes)

    def offset_for_timestamp(self, partition: LogPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """(offset, timestamp in ms) of the first record with that timestamp or a later one, or None."""
        self._check_open()
        return self._reader.offset_for_timestamp(partition, timestamp_ms)

    def _load_value(self, table: str, key: str) -> bytes:
        self._check_open()
        place = f"key {key!r} of table {table!r}"
        row = pack_key(table, key)
        try:
            return unseal(row, self._storage.get(row, place))
        except ValueError as error:
            raise damaged(self.path, place, error) from error

    # Closing

    def close(self) -> None:
        """Give the folder back; a second call does nothing. A round that is not finished is dropped.

        No commit may be running in another thread. That thread's connection stays open as long as it lives.
        """
        if self._closed is None:
            if self._round is not None:
                self._round.finish()
            self._closed = LogClosedError
            _open_logs.discard(self)
            self._reader.clear()
            try:
                self._storage.close()
            finally:
                self._lock.release()

    @property
    def closed(self) -> bool:
        return self._closed is not None

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed is LogClosedError:
            raise LogClosedError(self.path, f"the log {self.path} is closed; open it again")
        if self._closed is not None:
            raise LogForkedError(
                self.path,
                f"the log {self.path} was opened before this process was forked and stays with its parent; "
                "open logs after the fork",
            )

    def _leave_to_parent(self) -> None:
        self._closed = LogForkedError
        self._lock.drop_in_child()
        _of_parent.append(self._storage)


def _take(path: str) -> FolderLock:
    """Make the folder if there is none, see that it is ours, and lock it."""
    if os.path.expandvars(path) != path:
        raise LogOpenError(path, f"{path!r} names an environment variable, which diskcache would replace")
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotALogError(path, f"{path} is not a folder; a log needs a folder of its own") from error
    except OSError as error:
        raise LogOpenError(path, f"the folder {path} for a log cannot be made: {error}") from error
    refuse_foreign(path)
    try:
        return FolderLock(path)
    except OSError as error:
        raise LogOpenError(path, f"the log {path} cannot be locked: {error}") from error


_open_logs: weakref.WeakSet[Log] = weakref.WeakSet()
_of_parent: list[Storage] = []  # kept, so that no destructor in a child works on the parent's database


def _after_fork_in_child() -> None:
    for log in list(_open_logs):
        log._leave_to_parent()
    _open_logs.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
