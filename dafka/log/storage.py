"""The rows of a log on disk: a diskcache.Cache with the settings of a database instead of a cache's.

Only here, in :mod:`dafka.log.database` and in :mod:`dafka.log.values` is diskcache used. Facts about it that
shape them (diskcache 5.6.3):

- By default it evicts and culls. All of that is off: every value is a row of one SQLite database in WAL mode,
  so a transaction covers everything, and nothing is ever dropped. Large ones have files of their own, as far
  as durability allows it (:mod:`dafka.log.values`).
- ``iterkeys()`` is in key order but asks with an ``OR`` that SQLite answers by scanning the index from its
  start for every 100 keys: 100 000 keys take 2.5 s. Iterating the cache itself reads the rows, and with
  them some of each value. To open a log, keys are read from their index (:mod:`dafka.log.database`).
- ``transact`` may leave SQLite's transaction open when COMMIT fails, and a ROLLBACK that fails hides the
  first error. So after any error the connection is closed: that ends the transaction for certain, and the
  next use opens a new one. ``retry=True`` would try for ever on any error and is never used.
- BEGIN turns every error of SQLite into ``Timeout`` and keeps the cause in ``__context__``.
- Each thread has a connection of its own, which closes with the thread or by ``close()`` in that thread. A
  small page cache serves, since the log keeps its own tail. :mod:`dafka.log.database` says why not each green
  thread has one.
- ``auto_vacuum`` cannot be changed later. INCREMENTAL costs some 5 % of writing large values and lets
  retention give space back without rewriting the file; FULL (diskcache's default) would move pages about
  in the commit of every round that merges chunks.
- SQLite by itself copies the WAL into the database in whatever commit makes it longer than 4 MB: with
  a sync, some 10 to 100 ms. That is off; the owner of the log calls :meth:`Storage.checkpoint` in time.
- Pages have 4 KiB: with 16 KiB a commit of small values takes three times as long, with 64 KiB seven.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import diskcache

from dafka.log.chunk import Pieces
from dafka.log.creating import create_database, fill_database, open_database, sync_folders
from dafka.log.errors import DamagedError, LogReadError, LogWriteError
from dafka.log.layout import (
    DATABASE,
    cause_of,
    opening_error,
    read_layout,
    refuse_without_database,
)
from dafka.log.limits import (
    CHECKPOINT_BYTES,
    FILE_BYTES,
    NOTED_ROWS,
    REMOVABLE_FILES,
    RESERVE_BYTES,
    RESERVE_SHARE,
    VACUUM_BYTES,
)
from dafka.log.stored import ValueFile
from dafka.log.sweeping import Sweep, leave_note, lost_values, take_note
from dafka.log.values import ValueDisk, is_value_name

SYNCHRONOUS = {"process": 1, "power": 2}  # SQLite's NORMAL and FULL
_NO_FILES = 2**62  # larger than any value
_FILES_FROM = {"process": FILE_BYTES, "power": _NO_FILES}

_PAGE = 4096  # SQLite's page; diskcache leaves it at that

_FAILURES = (sqlite3.Error, diskcache.Timeout, OSError, OverflowError, MemoryError)


class Storage:
    """The rows in ``folder``; the database is created if missing. The caller holds the folder's lock.

    Calls ``pause`` now and then while it looks for files.
    """

    def __init__(self, folder: str, durability: str, pause: Callable[[], object] = lambda: None) -> None:
        self.folder = folder
        self.wal_bytes = 0  # about what was written since the last checkpoint
        self.lost: frozenset[bytes] = frozenset()
        """Keys of values whose files a power cut kept from being written: only some of the last seconds."""
        self._doubtful: list[tuple[bytes, ValueFile]] = []  # files of a round whose COMMIT failed
        self._untidy = False  # whether such a round may have left files that no row names
        self._sweep: Sweep | None = None  # while those of former times are looked for
        try:
            new = read_layout(folder) is None
            files_from = _FILES_FROM[durability]
            made = None
            if new:
                refuse_without_database(folder)
                made = create_database(folder, files_from)
            # diskcache writes its settings one by one: not with a sync of the disk for each
            self._cache: Any = open_database(folder, files_from) if made is None else made
            self._files: ValueDisk = self._cache.disk
            if made is None:
                self._look_for_files(pause)
                if new:
                    fill_database(self._cache)
            self._cache.reset("sqlite_synchronous", SYNCHRONOUS[durability])
            if new and durability == "power":
                sync_folders(folder)
        except (sqlite3.Error, diskcache.Timeout, OSError) as error:
            raise opening_error(folder, error) from error

    def _look_for_files(self, pause: Callable[[], object]) -> None:
        """Find out which files are lost, and those that no row names."""
        try:
            # Also of a log that was closed: the power may have gone after that.
            self.lost = lost_values(self._cache, self._files, pause)
            last_row = self._cache.last_row()
            if not take_note(self.folder, last_row):
                self._sweep = Sweep(self._cache, self._files)
                while last_row < NOTED_ROWS and self.sweep():
                    pause()
                self._remove_files()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            pass  # damage, which reading the keys reports

    def __iter__(self) -> Iterator[object]:
        """All keys as the rows have them, in no order that means anything."""
        try:
            yield from self._cache
        except sqlite3.Error as error:
            raise self._reading(error, "the index") from error

    def keys(self, tag: bytes, begin: bytes = b"", end: bytes = b"") -> Iterator[list[object]]:
        """The keys that begin with the octet ``tag``, in order and some at a time. Reads no values.

        Those from ``begin`` on and up to ``end``, which begin with it as well, if these are given.

        A key that no log has, here or below, is a :class:`dafka.log.values.ForeignKey`, or text.
        """
        try:
            yield from self._cache.keys(tag, begin, end)
        except sqlite3.Error as error:
            raise self._reading(error, "the index") from error

    def other_keys(self, tags: Iterable[bytes]) -> list[object]:
        """Keys that begin with other octets than these; a few of them if there are many."""
        try:
            return self._cache.other_keys(tags)  # type: ignore[no-any-return]
        except sqlite3.Error as error:
            raise self._reading(error, "the index") from error

    def get(self, key: bytes, place: str) -> object:
        """The value of ``key`` or None; ``place`` says in errors what was to be read."""
        try:
            return self._cache.get(key)
        except (sqlite3.Error, OSError) as error:
            raise self._reading(error, place) from error

    def get_small(self, keys: Sequence[bytes]) -> dict[bytes, object]:
        """The values of those of ``keys`` that are small and in the database: one question for all of them.

        Any other key is left out, as all are where the database cannot be read: :meth:`get` says why.
        """
        try:
            return self._cache.small(keys)  # type: ignore[no-any-return]
        except (sqlite3.Error, OSError):
            return {}

    def open_file(self, key: bytes, place: str, name: str | None = None) -> tuple[int, ValueFile] | None:
        """A descriptor of the file that the value of ``key`` is in, and the file as it is; None if it is in
        none. ``name`` is the file's, if that is known."""
        try:
            name = name or self._cache.file_of(key)
            return self._files.open(name) if is_value_name(name) else None
        except (sqlite3.Error, OSError) as error:
            raise self._reading(error, place) from error

    @property
    def written(self) -> Sequence[tuple[bytes, ValueFile]]:
        """Keys and files of the values that the last round has put into files."""
        return self._files.written

    def holds(self, key: bytes) -> bool:
        try:
            return key in self._cache
        except (sqlite3.Error, OSError) as error:
            raise self._reading(error, "the index") from error

    def commit(self, deleted: Sequence[bytes], stored: Iterable[tuple[bytes, bytes | Pieces]]) -> None:
        """Delete and store in one transaction. Raises LogWriteError; then nothing of it is visible."""
        cache, files = self._cache, self._files
        whole = False
        files.begin(deleted)
        try:
            self._take_back_doubtful()
            with cache.transact():
                cache.drop(deleted)
                sizes = cache.put(stored)
                whole = True
            files.committed()
            self.wal_bytes += _PAGE * (1 + len(deleted) + len(sizes)) + sum(sizes)
        except BaseException as error:
            self._untidy = True
            if whole:
                self._doubtful += files.written
            else:
                for _, file in files.written:
                    files.unlink(file.name)
            self.close()
            if isinstance(error, _FAILURES):
                raise self._not_written(cause_of(error)) from error
            raise

    def keep_reserve(self, appended: int) -> None:
        """Raise LogWriteError if appending so many bytes would take the last space on the disk.

        That is kept for the next checkpoint and for deleting, which takes space before it gives any back.
        """
        if self._is_short(appended, 0):
            spare = self.free_bytes()[0]
            if self._is_short(appended, spare):
                # Where much was deleted, there is room in the database, and the WAL's file may give its own.
                self.checkpoint(truncate=spare > self._reserve(os.statvfs(self.folder)))
                if self._is_short(appended, spare):
                    raise self._not_written(f"{os.strerror(errno.ENOSPC)}, but what is kept for deleting")

    @property
    def checkpoint_due(self) -> bool:
        """Whether enough waits for :meth:`checkpoint`."""
        return self.wal_bytes > CHECKPOINT_BYTES or self._files.removable >= REMOVABLE_FILES

    @property
    def removable_bytes(self) -> int:
        """Files of deleted rows, which the next complete checkpoint removes."""
        return self._files.removable_bytes

    def checkpoint(self, truncate: bool = False) -> bool:
        """Copy the WAL into the database, as far as it goes; True if that was all of it.

        Rounds may go on meanwhile in other threads; their writes are not copied. When all was copied, the
        next round begins the WAL anew. ``truncate`` empties the file as well: no round may be under way.
        """
        before, removable = self.wal_bytes, self._files.removable
        mode = "TRUNCATE" if truncate else "PASSIVE"
        busy, pages, copied = self._pragma(f"wal_checkpoint({mode})", "checkpointed")[0]
        left = max(0, pages - copied) * _PAGE
        self.wal_bytes += left - before
        whole = not busy and left == 0
        if whole:
            self._files.unlink_removed(removable)
        return whole

    def free_bytes(self) -> tuple[int, int]:
        """(space in the database that holds nothing, size of the database)."""
        free, size = (self._pragma(name, "examined")[0][0] for name in ("freelist_count", "page_count"))
        return free * _PAGE, size * _PAGE

    def vacuum(self, max_bytes: int = VACUUM_BYTES) -> None:
        """Give up to ``max_bytes`` of free space back to the file system; a transaction of its own."""
        pages = max(1, max_bytes // _PAGE)
        with self._failing("made smaller"):
            self._cache.vacuum(pages)
        self.wal_bytes += 2 * pages * _PAGE

    @property
    def sweeps(self) -> bool:
        """Whether files that no row names are still looked for."""
        return self._sweep is not None

    def sweep(self) -> bool:
        """Look at some rows or files for those that no row names; whether there are more. In any thread.

        The next complete checkpoint removes them. On an error of the database or the disk they stay.
        """
        if self._sweep is None:
            return False
        try:
            found = self._sweep.step()
        except (sqlite3.Error, OSError):
            self._untidy = True
            found = None
        if found is None:
            self._sweep = None
            return False
        self._files.remove_later(found)
        return True

    def damages(self) -> list[str]:
        """The damage that SQLite finds in the database's pages; reads all of them."""
        try:
            rows = self._cache.pragma("quick_check")
        except sqlite3.Error as error:
            return [str(error)]
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def disk_bytes(self, *suffixes: str) -> int:
        """Size on disk of the database, its WAL and the files of values, or of files with these suffixes."""
        total = 0 if suffixes else self._files.removable_bytes
        if not suffixes:
            with contextlib.suppress(sqlite3.Error):
                total += self._cache.reset("size")  # which diskcache keeps of the rows that have files
        for suffix in suffixes or ("", "-wal"):
            try:
                total += os.stat(os.path.join(self.folder, DATABASE + suffix)).st_size
            except OSError:
                continue
        return total

    def _pragma(self, text: str, what: str) -> list[tuple[Any, ...]]:
        with self._failing(what):
            return self._cache.pragma(text)  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Errors of the database become LogWriteError, saying what could not be done."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, _FAILURES):
                message = f"the database of the log {self.folder} could not be {what}: {cause_of(error)}"
                raise LogWriteError(self.folder, message) from error
            raise

    def settle(self) -> None:
        """Tidy up what opening would have to tidy up otherwise; no round is under way, or will be."""
        self._remove_files()
        if self._sweep is not None:
            self._sweep.close()
        if self._files.removable or self._untidy or self.sweeps:
            return
        with contextlib.suppress(sqlite3.Error, OSError):
            leave_note(self.folder, self._cache.last_row())

    def _remove_files(self) -> None:
        """Remove the files of deleted rows, unless the database cannot be brought to the disk now."""
        if self._files.removable:
            with contextlib.suppress(LogWriteError):
                self.checkpoint()

    def _is_short(self, appended: int, spare: int) -> bool:
        try:
            disk = os.statvfs(self.folder)
        except OSError:
            return False  # writing the round will report the error
        grows = max(0, self.wal_bytes + appended - spare)  # the database, with the next checkpoint
        return disk.f_bavail * disk.f_frsize < appended + grows + self._reserve(disk)

    def _reserve(self, disk: os.statvfs_result) -> int:
        return min(RESERVE_BYTES, disk.f_blocks * disk.f_frsize // RESERVE_SHARE)

    def _take_back_doubtful(self) -> None:
        """Remove the files of a round whose COMMIT failed, unless it was committed after all."""
        for key, file in self._doubtful:
            if self._cache.file_of(key) != file.name:
                self._files.unlink(file.name)
        self._doubtful = []

    def connections(self) -> list[object]:
        """Those of each thread to the database."""
        return self._cache.connections()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the calling thread's connection; the next call here opens another one."""
        try:
            self._cache.close()
        except sqlite3.Error as error:
            raise LogWriteError(self.folder, f"the log {self.folder} could not be closed: {error}") from error

    def _not_written(self, cause: str) -> LogWriteError:
        return LogWriteError(
            self.folder,
            f"a round could not be written to the log {self.folder}: {cause}; nothing of it was stored. "
            "Free disk space or repair the folder, and append again",
        )

    def _reading(self, error: Exception, place: str) -> LogReadError | DamagedError:
        if isinstance(error, sqlite3.OperationalError | OSError):
            return LogReadError(self.folder, f"{place} in the log {self.folder} could not be read: {error}")
        return DamagedError(self.folder, f"{place} in the log {self.folder} is damaged: {error}", place)
