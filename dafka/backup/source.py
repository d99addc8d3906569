"""The folder that is backed up, as another process reads it: nothing is written to it, no lock is taken."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple
from urllib.parse import quote

from dafka.backup.errors import BackupError
from dafka.log import NotALogError
from dafka.log.boot import timeline
from dafka.log.layout import DATABASE, opening_error, read_layout, refuse_foreign
from dafka.log.limits import BUSY_SECONDS
from dafka.log.partition import PARTITION_TAG
from dafka.log.values import VALUES, is_value_name

_FILES = (
    "SELECT CAST(filename AS TEXT), size, CAST(key AS BLOB) FROM Cache WHERE filename IS NOT NULL "
    "ORDER BY rowid"
)
_PARTITIONS = "SELECT COUNT(*) FROM Cache WHERE raw = 1 AND key >= ? AND key < ?"


class ValueFile(NamedTuple):
    """The file of a value: its name in the folder of values, its size in octets, and the key of its row."""

    name: str
    size: int
    key: bytes


class Source:
    """The log in ``folder``, which may be open in another process.

    Raises NotALogError, LogVersionError and LogOpenError.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        if not folder or not os.path.isdir(self.folder):
            raise NotALogError(self.folder, f"{folder!r} is not a log: there is no such folder")
        refuse_foreign(self.folder)
        try:
            layout = read_layout(self.folder)
        except sqlite3.Error as error:
            raise opening_error(self.folder, error) from error
        if layout is None:
            raise NotALogError(self.folder, f"{self.folder} is not a log: there is nothing in it")
        self.layout = layout
        self.timeline = timeline(self.folder)
        path = quote(os.path.join(self.folder, DATABASE))
        self._connection = sqlite3.connect(
            f"file:{path}?mode=ro", uri=True, isolation_level=None, timeout=BUSY_SECONDS
        )

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """All reads in the block see the state after one round. The WAL grows meanwhile: be quick."""
        with self._reading():
            self._connection.execute("BEGIN")
            try:
                self._connection.execute("SELECT 1 FROM Cache LIMIT 1").fetchall()  # begins it in fact
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")

    def files(self) -> list[ValueFile]:
        """The files of all values."""
        with self._reading():
            rows = self._connection.execute(_FILES).fetchall()
        for name, _, _ in rows:
            if not is_value_name(name):
                raise BackupError(f"a row of the log {self.folder} names the file {name!r}: no log has that")
        return [ValueFile(os.path.basename(name), size, key) for name, size, key in rows]

    def partitions(self) -> int:
        """How many partitions were ever written to."""
        above = bytes([PARTITION_TAG[0] + 1])
        with self._reading():
            return int(self._connection.execute(_PARTITIONS, (PARTITION_TAG, above)).fetchone()[0])

    def copy_database(self, path: str) -> None:
        """Copy the database, as the transaction sees it, to the new file ``path``."""
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as copy:
                copy.execute("PRAGMA synchronous = OFF")
                self._connection.backup(copy)
        except sqlite3.Error as error:  # of either side: a full disk is that of the copy
            raise BackupError(
                f"the database of the log {self.folder} cannot be copied to {os.path.dirname(path)}: {error}"
                "; the same command goes on with what was copied"
            ) from error

    def read(self, file: ValueFile) -> bytes | None:
        """The octets of a value's file; None if it is not there."""
        path = os.path.join(self.folder, VALUES, file.name)
        try:
            with open(
                os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
            ) as opened:
                return opened.read(file.size + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror}") from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BackupError(f"the database of the log {self.folder} cannot be copied: {error}") from error
