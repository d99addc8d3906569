"""The log itself: opening a folder, write rounds, reading by sequence, offset and timestamp."""

from __future__ import annotations

import os
import time
import weakref
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import TracebackType
from typing import Literal

from dafka.log.catalogue import read_catalogue
from dafka.log.chunk import Chunk, decode_chunk
from dafka.log.errors import (
    DamagedError,
    LogClosedError,
    LogError,
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
from dafka.log.round import Rows, WriteRound
from dafka.log.storage import SYNCHRONOUS, Storage, refuse_foreign
from dafka.log.table import Table, encode_value, pack_key, seal, unseal
from dafka.log.tail import ChunkCache
from dafka.log.timestamps import first_record_since

Append = tuple[LogPartition, list[bytes]] | tuple[LogPartition, list[bytes], int]
TableValues = Mapping[tuple[str, str], object]
Durability = Literal["process", "power"]

_FIT_STEP = 64  # messages looked at first when as many as fit into a number of bytes are wanted


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
        # Half for what was written, half for what was read: a reader of old records leaves the tail alone.
        self._tail = ChunkCache(tail_bytes - tail_bytes // 2)
        self._read = ChunkCache(tail_bytes // 2)
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
        """The table ``name``; there is nothing to create. Raises TableValueError for a name over 255 bytes."""
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
                    growth = Growth(self.path, partition, number, self._load)
                    number += 1
                else:
                    growth = Growth(self.path, partition, partition.number, self._load)
                growths[partition] = growth
            if contents:
                growth.append(contents, rest[0] if rest else None, now)
        encoded, rows = self._encode(values) if values else ({}, ([], []))
        self._round = WriteRound(self._storage, growths.values(), encoded, rows, self._finish)
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
                raise TableValueError(self.path, f"table {table!r}, key {key!r} cannot hold this: {error}") from error
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
            for key, contents, stamps in growth.added:
                self._tail.put(key.pack(), Chunk(key.kind, key.first, contents, stamps, key.size))
        for row in round_.replaced:
            self._tail.drop(row)
            self._read.drop(row)
        for (table, key), value in round_.values.items():
            if value is None:
                self.table(table).drop(key)
            else:
                self.table(table).put_stored(key, value)

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
        index = partition.index
        position = index.at_sequence(sequence)
        start = sequence
        taken: list[bytes] = []
        while position < len(index) and len(taken) < count and (max_bytes > 0 or not taken):
            try:
                chunk = self._load(partition, position)
            except LogError:
                if taken:
                    break
                raise
            if not taken:
                start = max(start, chunk.first)
            elif chunk.first != start + len(taken):
                break
            skip = start + len(taken) - chunk.first
            stop = min(len(chunk.contents), skip + count - len(taken))
            fitting, size = _fitting(chunk.contents, skip, stop, max_bytes)
            if not fitting and not taken:
                fitting = 1
            taken += chunk.contents[skip : skip + fitting]
            max_bytes -= size
            if skip + fitting < stop:
                break
            position += 1
        return start, taken

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
        index = partition.index
        position = index.at_offset(offset)
        taken: list[tuple[int, int, bytes]] = []
        while position < len(index) and (max_bytes > 0 or not taken):
            try:
                chunk = self._load(partition, position)
            except LogError:
                if taken:
                    break
                raise
            bases, ends = chunk.offsets()
            skip = 0 if taken else bisect_right(ends, offset)
            fitting, size = _fitting(chunk.contents, skip, len(chunk.contents), max_bytes)
            if not fitting and not taken:
                fitting = 1
            stop = skip + fitting
            taken += zip(bases[skip:stop], chunk.timestamps(skip, fitting), chunk.contents[skip:stop], strict=True)
            max_bytes -= size
            if stop < len(chunk.contents):
                break
            position += 1
        return taken

    def offset_for_timestamp(self, partition: LogPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """(offset, timestamp in ms) of the first record with that timestamp or a later one, or None."""
        self._check_open()
        index = partition.index
        for position in range(index.at_timestamp(timestamp_ms), len(index)):
            found = first_record_since(self._load(partition, position), timestamp_ms)
            if found is not None:
                return found
        return None

    def _load(self, partition: LogPartition, position: int) -> Chunk:
        known = partition.index[position]
        key = known.pack()
        chunk = self._tail.get(key) or self._read.get(key)
        if chunk is None and self._round is not None:
            chunk = self._round.replaced.get(key)
        if chunk is None:
            place = (
                f"sequences {known.first} to {known.next - 1} of topic {partition.topic!r} "
                f"of {partition.address!r}"
            )
            value = self._storage.get(key, place)
            try:
                chunk = decode_chunk(key, value)
            except ValueError as error:
                raise self._damaged(place, error) from error
            self._read.put(key, chunk)
        return chunk

    def _load_value(self, table: str, key: str) -> bytes:
        self._check_open()
        place = f"key {key!r} of table {table!r}"
        row = pack_key(table, key)
        try:
            return unseal(row, self._storage.get(row, place))
        except ValueError as error:
            raise self._damaged(place, error) from error

    def _damaged(self, place: str, error: ValueError) -> DamagedError:
        return DamagedError(
            self.path, f"{place} in the log {self.path} is damaged: {error}; what is behind it can be read", place
        )

    # Closing

    def close(self) -> None:
        """Give the folder back; a second call does nothing. A round under way must be finished before."""
        if self._closed is None:
            self._closed = LogClosedError
            _open_logs.discard(self)
            self._tail.clear()
            self._read.clear()
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
        raise LogOpenError(path, f"{path!r} names an environment variable, which diskcache would put in its place")
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


def _fitting(contents: list[bytes], start: int, stop: int, room: int) -> tuple[int, int]:
    """How many of ``contents[start:stop]`` fit into ``room`` bytes together, and their size."""
    fitting = size = 0
    step = _FIT_STEP
    while start + fitting < stop:
        part = contents[start + fitting : min(stop, start + fitting + step)]
        sizes = list(accumulate(map(len, part), initial=size))
        if sizes[-1] > room:
            more = bisect_right(sizes, room) - 1
            return fitting + more, sizes[more]
        fitting += len(part)
        size = sizes[-1]
        step *= 2
    return fitting, size


_open_logs: weakref.WeakSet[Log] = weakref.WeakSet()
_of_parent: list[Storage] = []  # kept, so that no destructor in a child works on the parent's database


def _after_fork_in_child() -> None:
    for log in list(_open_logs):
        log._leave_to_parent()
    _open_logs.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
