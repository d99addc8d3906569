"""The log itself: opening a folder, write rounds, reading, trimming, deleting, closing."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from dafka.log.boot import note_boot
from dafka.log.catalogue import read_catalogue
from dafka.log.changes import Changes, Rewrite, Trim, drop_trimmed
from dafka.log.chunk import Chunk, ChunkKey
from dafka.log.errors import DamagedError, LogClosedError, LogForkedError, LogWriteError
from dafka.log.folder import take_folder
from dafka.log.forks import closed, opened
from dafka.log.growth import Append, grow
from dafka.log.layout import folder_name
from dafka.log.limits import COLLECT_ROWS, DAMAGED_PLACES, TAIL_BYTES
from dafka.log.partition import LogPartition, Partitions
from dafka.log.reader import Reader
from dafka.log.repeating import bounded_logger
from dafka.log.round import WriteRound
from dafka.log.shapes import RowShape
from dafka.log.space import Space
from dafka.log.storage import SYNCHRONOUS, Storage
from dafka.log.stored import StoredBatches
from dafka.log.table import (
    COMPACTION_TABLE,
    LOST_TABLE,
    Encoded,
    Table,
    encode_values,
    pack_key,
)
from dafka.log.tables import Tables

logger = bounded_logger(__name__)

TableValues = Mapping[tuple[str, str], object]
Durability = Literal["process", "power"]
OnDamage = Literal["raise", "skip"]


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


class Log:
    """The log in folder ``path``, opened or created; one process, and one ``Log`` in it, at a time.

    ``durability`` says what a finished :meth:`write` survives: ``'process'`` the death of the process,
    ``'power'`` the death of the machine, too (the disk is synced in every commit). ``tail_bytes`` bounds the
    memory that recent messages take. ``clock`` gives seconds since the epoch: raw messages get their
    timestamps from it. ``on_damage`` says what reading does about a stored value that is damaged: ``'raise'``
    refuses it with DamagedError, ``'skip'`` logs its place as an error, keeps it in :attr:`damaged_places`,
    and goes on behind it as if its messages had never been written; table values are refused in any case.

    Opening a large log takes seconds; ``pause()`` is called now and then meanwhile.

    :attr:`space` is the space that it takes on the disk. One thread owns a log: it calls everything except
    :meth:`WriteRound.commit`, :meth:`Space.checkpoint` and :meth:`Space.vacuum`, which may run anywhere.

    Raises LogLockedError, LogVersionError, NotALogError, LogOpenError, DamagedError (the index), and
    ValueError for an invalid setting. All methods raise LogClosedError after :meth:`close`, and
    LogForkedError in a child process forked while the log was open.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "process",
        tail_bytes: int = TAIL_BYTES,
        on_damage: OnDamage = "raise",
        clock: Callable[[], float] = time.time,
        pause: Callable[[], object] = lambda: None,
    ) -> None:
        if durability not in SYNCHRONOUS:
            raise ValueError(f"durability is 'process' or 'power', not {durability!r}")
        if tail_bytes < 0:
            raise ValueError(f"tail_bytes is a number of bytes, not {tail_bytes}")
        if on_damage not in ("raise", "skip"):
            raise ValueError(f"on_damage is 'raise' or 'skip', not {on_damage!r}")
        self.path = os.path.abspath(folder_name(path))
        self.durability = durability
        self._clock = clock
        self._closed: type[LogClosedError] | None = None
        self._round: WriteRound | None = None
        self._doubtful: tuple[bytes, bool] | None = None  # of a round that failed, see :meth:`_doubt`
        self._lock = take_folder(self.path)
        try:
            self._storage = Storage(self.path, durability, pause)
            try:
                catalogue = read_catalogue(self._storage, pause)
                next_number = max([*catalogue.names, *catalogue.dropped], default=-1) + 1
                self._partitions = Partitions(catalogue.partitions(), next_number, pause)
                self._blocks = catalogue.blocks
                keys = catalogue.table_keys
                self._tables = Tables(self.path, self._storage, keys, self._check_open, pause)
            except BaseException:
                self._storage.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        self.damaged_places: deque[str] = deque(maxlen=DAMAGED_PLACES)
        skip = self._note_damage if on_damage == "skip" else None
        self._reader = Reader(self._storage, tail_bytes, skip)
        self._garbage = catalogue.garbage
        self.space = Space(self._storage, self._garbage, self._check_open, self._collect)
        note_boot(self.path)
        opened(self)

    # Partitions and tables

    def partition(self, topic: bytes, address: bytes) -> LogPartition:
        """The partition of ``address`` on ``topic``; a new one lasts from the first append on.

        Always the same object for the same names. Raises ValueError for a name over 255 bytes.
        """
        self._check_open()
        return self._partitions.get(topic, address)

    def find(self, topic: bytes, address: bytes) -> LogPartition | None:
        """The partition of ``address`` on ``topic`` if anything was ever written to it."""
        self._check_open()
        return self._partitions.find(topic, address)

    def names(self) -> list[tuple[bytes, bytes]]:
        """Topic and address of all partitions that were ever written to, without looking at them."""
        self._check_open()
        return self._partitions.names()

    def each_partition(self) -> Iterator[LogPartition]:
        """The :meth:`partitions` that are there now, one after the other. The first look at each since the
        log was opened takes time. Those that are dropped meanwhile are left out."""
        for names in self.names():
            partition = self.find(*names)
            if partition is not None:
                yield partition

    def partitions(self) -> list[LogPartition]:
        """All partitions that were ever written to, in the order of their numbers."""
        self._check_open()
        return self._partitions.written()

    def table(self, name: str, shape: RowShape | None = None) -> Table:
        """The table ``name``; nothing needs creating. Raises TableValueError for a name over 255 bytes.

        The owner of a table says what its rows look like, before anybody reads them. All keys are looked at
        then, with a ``pause`` now and then, and values when they are read from the disk; both raise
        DamagedError for one of another shape.
        """
        self._check_open()
        return self._tables.get(name, shape)

    # Writing

    def write(
        self,
        appends: Sequence[Append],
        values: TableValues | None = None,
        *,
        trims: Iterable[Trim] = (),
        drops: Iterable[LogPartition] = (),
        rewrites: Iterable[Rewrite] = (),
        collect_bytes: int = 0,
    ) -> None:
        """Append messages and set table values in one transaction; returns after the commit.

        ``appends`` are pairs (partition, contents), or triples with the sequence of the first message for a
        partition that begins above 0 or has lost messages in between. A partition may occur several times, in
        its order. The contents of one entry are stored as one value: keep them to about 1 MB, because reading
        costs whole values. The first message ever decides what the partition holds: record batches (their
        offsets must rise; gaps are allowed) or raw messages (offset = sequence, whatever their bytes look
        like).

        ``values`` are ``{(table, key): value}``, None deletes; see :class:`Table` for what a value can be.

        ``trims`` drop messages from the front of partitions (places count from before this round's appends),
        ``drops`` delete partitions for good: their objects are dead then, the same names stand for a new
        partition. Both are done when the round is, whatever they cover; their garbage on the disk is deleted
        in later rounds, about ``collect_bytes`` bytes in each that asks for it, while there is
        ``space.garbage_bytes``. ``rewrites`` are compaction's. A partition that is dropped or rewritten
        cannot be appended to in the same round.

        Raises AppendError, TableValueError, LogWriteError and StaleRewriteError; nothing has changed then,
        neither on disk nor in memory.
        """
        round_ = self.begin(
            appends, values, trims=trims, drops=drops, rewrites=rewrites, collect_bytes=collect_bytes
        )
        try:
            round_.commit()
        finally:
            round_.finish()
        if self._storage.checkpoint_due:
            self._storage.checkpoint()

    def trim(self, partition: LogPartition, *, before_sequence: int = 0, before_offset: int = 0) -> None:
        """:meth:`write` one :class:`Trim`."""
        self.write([], trims=[Trim(partition, before_sequence, before_offset)])

    def drop(self, partition: LogPartition) -> None:
        """Delete a partition for good with all it holds (:meth:`write` with ``drops``)."""
        self.write([], drops=[partition])

    def _collect(self, max_bytes: int) -> None:
        self.write([], collect_bytes=max_bytes)

    def begin(
        self,
        appends: Sequence[Append],
        values: TableValues | None = None,
        *,
        trims: Iterable[Trim] = (),
        drops: Iterable[LogPartition] = (),
        rewrites: Iterable[Rewrite] = (),
        collect_bytes: int = 0,
        checked: Container[LogPartition] = (),
    ) -> WriteRound:
        """Prepare what :meth:`write` does as separate steps, so that the commit can run in another thread.

        Call ``commit()`` of the result once, then ``finish()`` in the owner's thread, whatever ``commit()``
        raised. There is one round at a time; LogWriteError if there is another one. ``checked``: partitions
        whose new record batches the caller has compared with their checksums. Callers of this method
        call ``space.checkpoint()`` when ``space.checkpoint_due`` says so.
        """
        self._check_open()
        self._check_writable()
        changes = Changes(drops)
        changes.add_trims(trims, self._reader.floor)
        for rewrite in rewrites:
            changes.add_rewrite(self.path, rewrite)
        if collect_bytes > 0:
            changes.collected = self._garbage.first(collect_bytes, COLLECT_ROWS)
        fixed = {*changes.drops, *(rewrite.partition for rewrite, _ in changes.rewrites)}
        now = int(self._clock() * 1000)
        number = self._partitions.next_number
        growths = grow(self.path, appends, fixed, number, self._reader.load, now, checked)
        for growth in growths:
            changes.add_seal(growth.partition, growth.kept)
        if changes.drops:
            states = {
                (table, str(partition.number)): None
                for table in (COMPACTION_TABLE, LOST_TABLE)
                for partition in changes.drops
            }
            values = {**(values or {}), **states}
        encoded: Encoded = {}
        rows: tuple[list[bytes], list[tuple[bytes, bytes]]] = ([], [])
        if values:
            encoded, rows = encode_values(self.path, values)
        self._round = WriteRound(self._storage, growths, encoded, rows, changes, self._finish)
        self._reader.replaced = self._round.replaced
        self._blocks.held = changes.unsealed
        return self._round

    def _check_writable(self) -> None:
        if self._round is not None:
            raise LogWriteError(self.path, f"a round of the log {self.path} is not finished; finish it first")
        if self._doubtful is not None:
            # A commit can fail after its bytes have reached the file (a sync that fails), and come back to
            # life when SQLite recovers the file. Writing on would then store the same sequences twice.
            row, there = self._doubtful
            if self._storage.holds(row) is there:
                raise LogWriteError(
                    self.path,
                    f"a round of the log {self.path} that was reported as failed is on disk after all; "
                    "close the log and open it again before writing",
                )
            self._doubtful = None

    def _doubt(self, round_: WriteRound) -> tuple[bytes, bool] | None:
        """A row, and whether it is there if and only if the round is on disk; None if it does not matter."""
        if round_.doubt is not None:
            return round_.doubt, True
        deleted = (place for place, value in round_.values.items() if value is None)
        gone = next((place for place in deleted if place[1] in self._tables.get(place[0])), None)
        return None if gone is None else (pack_key(*gone), False)

    def _finish(self, round_: WriteRound) -> None:
        self._round = None
        self._reader.replaced = {}
        if not round_.committed:
            self._blocks.held = {}
            if round_.attempted:
                self._doubtful = self._doubt(round_)
                self._tables.forget(round_.values)
            return
        for growth in round_.growths:
            partition, index = growth.partition, growth.partition.index
            if partition.number < 0:
                self._partitions.register(partition, growth.number)
            index.drop_last(len(index) - growth.kept)
            index.extend(chunk.key for chunk in growth.added)
        for row in round_.replaced:
            self._reader.forget(row)
        added = {chunk.key.pack(): chunk for growth in round_.growths for chunk in growth.added}
        in_files = self._reader.note_files(added)
        for row, chunk in added.items():
            if not (row in in_files and chunk.has_views):  # such a value is read from its file
                self._reader.remember(row, chunk.loaded())
        for partition in round_.changes.drops:
            self._partitions.drop(partition)
        for row in round_.changes.apply(self._garbage, self._blocks.load):
            self._reader.forget(row)
        self._blocks.forget_held()
        for growth in round_.growths:
            # Trimmed chunks that had stayed only because they say where the partition ends.
            for gone in drop_trimmed(growth.partition.index, self._garbage):
                self._reader.forget(gone.pack())
        self._tables.commit(round_.values)

    # Reading

    def offset_to_sequence(self, partition: LogPartition, offset: int) -> int:
        """The sequence of the message that holds ``offset``, or of the first one after it; the next sequence
        behind the end. Raises DamagedError or LogReadError if that needs a value that cannot be read."""
        self._check_open()
        return self._reader.sequence_of(partition, offset)

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

    def read_stored(
        self, partition: LogPartition, offset: int, *, end: int, max_bytes: int
    ) -> tuple[list[bytes | StoredBatches], int]:
        """The batches of :meth:`read_offsets` that begin before ``end``, and the offset behind them.

        Those that are in a file and not in memory come as :class:`StoredBatches`, many in one, with the file
        open: for callers that send them from there, and then close it. Each of these has records.
        """
        self._check_open()
        return self._reader.read_stored(partition, offset, end, max_bytes)

    def offset_for_timestamp(self, partition: LogPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """(offset, timestamp in ms) of the first record with that timestamp or a later one, or None.

        Raises DamagedError and LogReadError.
        """
        return next(filter(None, self.search_timestamp(partition, timestamp_ms)), None)

    def search_timestamp(
        self, partition: LogPartition, timestamp_ms: int, run: Callable[..., Any] = _call
    ) -> Iterator[tuple[int, int] | None]:
        """:meth:`offset_for_timestamp` in steps, between which anything may be done with the log.

        Each reads one value and gives None, the last one what was found. Mostly the first step is the last,
        but a batch may say a later time than its records do, and then there are more. ``run(function,
        arguments...)`` looks through the records of a value, maybe in another thread: it may take a second.
        """
        self._check_open()
        for found in self._reader.search_timestamp(partition, timestamp_ms, run):
            yield found
            self._check_open()

    def load(self, partition: LogPartition, key: ChunkKey) -> Chunk:
        """The stored value with that key, from disk; in any thread. DamagedError, LogReadError."""
        self._check_open()
        return self._reader.fetch(partition, key)

    def _note_damage(self, error: DamagedError) -> None:
        if error.place not in self.damaged_places:
            logger.error("%s; it is skipped", error)
            self.damaged_places.append(error.place)

    # Closing

    def close(self) -> None:
        """Give the folder back; a second call does nothing. A round that is not finished is dropped.

        No commit may be running in another thread. That thread's connection stays open as long as it lives.
        """
        if self._closed is None:
            if self._round is not None:
                self._round.finish()
            self._closed = LogClosedError
            closed(self)
            self._reader.clear()
            try:
                self._storage.settle()
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

    def connections(self) -> list[object]:
        """Those of each thread to the database."""
        return self._storage.connections()

    def leave_to_parent(self) -> Storage:
        """Close the log in a forked child: it is the parent's. Returns what must not be destroyed."""
        self._closed = LogForkedError
        self._lock.drop_in_child()
        return self._storage
