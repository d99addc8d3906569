"""The format of keys and values in rows, and of large values in files beside the database.

As diskcache has it: a row holds its value, or the name of the file that does. But diskcache unpickles what
a row says is pickled, and reads or deletes whatever file a row names, so that a stranger's folder could run
code or delete files. Here keys are bytes (the layout's is text), values are bytes (the layout's is a number),
files have names that were made here, and every other row is damage.

SQLite writes a value twice, into the WAL and into the database, in pages of 4 KiB and with syncs of the
disk; a file is written once, and making one takes 0.1 to 0.2 ms. Values of a megabyte are stored two to five
times as fast this way with less than half of the processor's time, those of 100 kB no faster. So with
durability ``'process'`` values from FILE_BYTES on are files. With ``'power'`` each file would need syncs of
its own (some 5 ms), and all values are rows.

- diskcache spreads files over 65 536 folders; making those costs more than the files. Here is one folder.
- A file is written before its row is committed, under a name that no other ever has, and never changed. A
  round that fails takes its files back. Those of a killed process are found when the log is opened next.
- The file of a deleted row stays until a checkpoint has brought the deletion into the database: before that
  a power cut could bring the row back, and the file would be missed in the midst of the log.
- Values of tables are rows whatever their size: a table must not be without one that it had before. So are
  those that take the place of others (merging, compaction): their records may have been safe for long.
- Nothing waits for files to be synced. After a power cut the last ones may not be there while their rows are;
  then the log ends before the first of them (:mod:`dafka.log.lost`).
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import stat
import struct
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from itertools import count, islice
from typing import Any, NamedTuple

import diskcache

from dafka.log.chunk import CHUNK_TAG, Pieces
from dafka.log.limits import BUSY_SECONDS, CHUNK_BYTES, SWEPT_FILES
from dafka.log.stored import NOWHERE, ValueFile

VALUES = "values"
"""The folder of the files, in the folder of the log."""

_SUFFIX = ".val"
_NAME = re.compile(re.escape(VALUES + os.sep) + r"[0-9a-f]{32}" + re.escape(_SUFFIX))
_READ = (
    os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
)  # or opening a pipe would wait for a writer
_CREATE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL
_PRIVATE = 0o600
_NUMBERS = (1 << 128) - 1
_MADE = 1 << 64  # more files than a log that is open ever makes
_FLAGS = struct.Struct("=i4x")
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602  # FS_IOC_GETFLAGS and FS_IOC_SETFLAGS of Linux
_UNRELATED = 0x20000  # FS_TOPDIR_FL
_AT_ONCE = 512  # pieces for one writev; systems allow 1024


def has_files(folder: str) -> bool:
    """Whether there are files of values in the log's ``folder``."""
    try:
        with os.scandir(os.path.join(folder, VALUES)) as entries:
            return any(is_value_name(os.path.join(VALUES, entry.name)) for entry in entries)
    except FileNotFoundError:
        return False


class ForeignKey(NamedTuple):
    """A row's key that no log writes, as the row has it."""

    raw: object
    key: object


class ValueDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """How the database's values go into files and come back. Rounds come one after the other."""

    def __init__(self, directory: str, **settings: Any) -> None:
        super().__init__(directory, **settings)
        self.written: list[tuple[bytes, ValueFile]] = []
        """(key, file) of the files of the round under way."""
        self._released: list[tuple[str, int]] = []  # files of rows that the round under way deletes
        self._files_allowed = True
        self._removable: deque[tuple[str, int]] = deque()
        self._begin = int.from_bytes(os.urandom(16), "big")
        self._numbers = count(self._begin)

    @property
    def removable(self) -> int:
        """How many files belong to deleted rows."""
        return len(self._removable)

    @property
    def removable_bytes(self) -> int:
        """Size of these files."""
        return sum([size for _, size in [*self._removable]])  # of a copy: it changes in other threads

    def begin(self, deleted: Iterable[bytes]) -> None:
        """Begin a round that deletes these rows. Rows that a failed round was to delete keep their files."""
        self.written = []
        self._released = []
        self._files_allowed = all(key[:1] != CHUNK_TAG for key in deleted)

    def committed(self) -> None:
        """The round is in the database: a checkpoint that begins now brings its deletions there."""
        self._removable += self._released
        self._released = []

    def takes(self, key: bytes, value: bytes | Pieces) -> bool:
        """Whether the value of ``key`` becomes a file."""
        return len(value) >= self.min_file_size and key[:1] == CHUNK_TAG and self._files_allowed

    def filename(self, key: object = None, value: object = None) -> tuple[str, str]:
        # A number drawn by chance for each log that is opened, and counted on: to draw one for each file is
        # a call in which another thread takes the interpreter's lock.
        name = os.path.join(VALUES, f"{next(self._numbers) & _NUMBERS:032x}{_SUFFIX}")
        return name, self._path(name)

    def put(self, key: object) -> tuple[object, bool]:
        if type(key) is not bytes and type(key) is not str:
            raise TypeError(f"a row's key is bytes or text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> object:
        return key if raw == 1 and type(key) in (bytes, str) else ForeignKey(raw, key)

    def store(self, value: object, read: bool, key: object = diskcache.UNKNOWN) -> tuple[Any, ...]:
        if type(value) is int:
            return 0, diskcache.core.MODE_RAW, None, value
        if not isinstance(value, (bytes, Pieces)) or type(key) is not bytes:
            raise TypeError(f"a row's value is bytes, not {type(value).__name__}")
        if not self.takes(key, value):
            return 0, diskcache.core.MODE_RAW, None, bytes(value)
        name, path = self.filename()
        self.written.append((key, ValueFile(name, NOWHERE)))
        try:
            written = _write(path, name, value)
        except FileNotFoundError:
            self._make_folder()
            written = _write(path, name, value)
        self.written[-1] = key, written
        return len(value), diskcache.core.MODE_BINARY, name, None

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> object:
        if mode == diskcache.core.MODE_RAW and filename is None:
            return value
        if mode != diskcache.core.MODE_BINARY or not is_value_name(filename):
            raise sqlite3.DatabaseError(
                f"its row has mode {mode!r} and the file {filename!r}: no log has that"
            )
        try:
            return _read(self._path(str(filename)))
        except FileNotFoundError:
            return None
        except OSError as error:  # which diskcache would take for a value that is not there
            raise sqlite3.OperationalError(str(error)) from error

    def open(self, name: str) -> tuple[int, ValueFile]:
        """A descriptor of a value's file, and the file as it is. Raises OSError, sqlite3.DatabaseError."""
        path = self._path(name)
        descriptor = os.open(path, _READ)
        try:
            _refuse_others(path, descriptor)
            return descriptor, ValueFile.of(name, descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def remove(self, file_path: str) -> None:
        """Note that the round under way deletes the row; diskcache says so before it is committed."""
        if not is_value_name(file_path):
            return  # not a file of this log: leave it alone
        try:
            size = os.stat(self._path(file_path)).st_size
        except OSError:
            return
        self._released.append((file_path, size))

    def has_old(self) -> bool:
        """Whether there are others."""
        with closing(self.names()) as pages:
            return not all(self.is_new(name) for names in pages for name in names)

    def remove_later(self, names: Iterable[str]) -> None:
        """Files that no row names, as a checkpoint that begins now leaves it on the disk as well."""
        for name in names:
            size = self.size_of(name)
            if size is not None:
                self._removable.append((name, size))

    def unlink_removed(self, count: int) -> None:
        """Delete the first ``count`` files of deleted rows."""
        for _ in range(count):
            name, _ = self._removable.popleft()
            self.unlink(name)

    def unlink(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(self._path(name))

    def size_of(self, name: str) -> int | None:
        """The size of a file, None if it is not there."""
        try:
            return os.stat(self._path(name), follow_symlinks=False).st_size
        except OSError:
            return None

    def names(self) -> Generator[list[str]]:
        """The names of all files, SWEPT_FILES at a time; and maybe of those that come or go meanwhile."""
        with suppress(FileNotFoundError), os.scandir(self._path(VALUES)) as entries:
            while some := [entry.name for entry in islice(entries, SWEPT_FILES)]:
                yield [name for name in (os.path.join(VALUES, one) for one in some) if is_value_name(name)]

    def is_new(self, name: str) -> bool:
        """Whether a file was made since the log was opened."""
        return (number_of(name) - self._begin) & _NUMBERS < _MADE

    def _make_folder(self) -> None:
        """Make the folder of the files, after bringing what the database has to the disk (some 10 ms).

        The folder of a log that a power cut leaves with files and without a database is refused as damaged.
        The name that it is made under is one of chance, by which ext4 chooses its place (_spread); a crash
        right then leaves it behind empty.
        """
        with closing(sqlite3.connect(self._path(diskcache.core.DBNAME), timeout=BUSY_SECONDS)) as database:
            database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        _spread(self._directory)
        made = self._path(f"{VALUES}-{self._begin:032x}")
        os.mkdir(made, 0o700)
        os.rename(made, self._path(VALUES))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def is_value_name(name: object) -> bool:
    """Whether :meth:`ValueDisk.filename` may have made it."""
    return type(name) is str and _NAME.fullmatch(name) is not None


def number_of(name: str) -> int:
    """The number in the name of a file."""
    return int(name[len(VALUES) + 1 : -len(_SUFFIX)], 16)


def _spread(folder: str) -> None:
    """Have ext4 put folders that are made in this one where little else is, by their names.

    Where it has no journal, as in some virtual machines, to make a file it passes over each that was deleted
    thereabouts in the last minutes: 0.2 to 0.6 ms where many were, in place of 0.02. Others refuse the hint.
    """
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flags = fcntl.ioctl(descriptor, _GET_FLAGS, bytes(_FLAGS.size))
            fcntl.ioctl(descriptor, _SET_FLAGS, _FLAGS.pack(_FLAGS.unpack(flags)[0] | _UNRELATED))
        finally:
            os.close(descriptor)


def _write(path: str, name: str, value: bytes | Pieces) -> ValueFile:
    pieces = [value] if isinstance(value, bytes) else value.pieces
    descriptor = os.open(path, _CREATE, _PRIVATE)
    try:
        for begin in range(0, len(pieces), _AT_ONCE):
            _write_all(descriptor, pieces[begin : begin + _AT_ONCE])
        return ValueFile.of(name, descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, pieces: list[bytes]) -> None:
    left = sum(map(len, pieces)) - os.writev(descriptor, pieces)
    if left:  # a signal came, or the disk is nearly full: rare, so what is left is joined
        rest = memoryview(b"".join(pieces))[-left:]
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _read(path: str) -> bytes:
    with open(os.open(path, _READ), "rb") as file:
        _refuse_others(path, file.fileno())
        return file.read()


def _refuse_others(path: str, descriptor: int) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > CHUNK_BYTES:
        raise sqlite3.DatabaseError(f"{path} is not a file of a value")
