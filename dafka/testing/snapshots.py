"""Snapshots of a test broker: its stored state, to begin other brokers with.

A snapshot is taken while the broker runs, and its clients notice nothing. The database is copied by SQLite's
backup, which sees one commit and nothing of later ones. Files of large values never change, so they are
linked and not copied; they are linked before and after the database is copied, because a value may be deleted
or stored meanwhile.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Collection
from contextlib import closing, suppress

from dafka.broker.groups.kept_members import MEMBERS
from dafka.log.boot import NOTE_NAME
from dafka.log.layout import DATABASE, PARTS
from dafka.log.table import pack_key
from dafka.log.values import VALUES


class Snapshot:
    """The stored state of a test broker at one moment: topics, records, committed offsets, transactions,
    settings, accounts; and how far its clock was ahead. Members of groups are not part of it.

    It stays until :meth:`close`, or as long as anything refers to it.
    """

    def __init__(self, source: str, ahead: float, memory: str | None) -> None:
        self.ahead = ahead
        """Seconds that the clock was ahead."""
        self._folder = tempfile.mkdtemp(prefix="dafka-snapshot-", dir=memory)
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        try:
            _link(source, self._folder)
            with (
                closing(sqlite3.connect(os.path.join(source, DATABASE))) as taken,
                closing(sqlite3.connect(os.path.join(self._folder, DATABASE))) as made,
            ):
                taken.backup(made)
                _forget_members(made)
            _link(source, self._folder)
            shutil.copyfile(os.path.join(source, NOTE_NAME), os.path.join(self._folder, NOTE_NAME))
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether it is gone."""
        return not self._remove.alive

    def check(self) -> None:
        """Raise ValueError if it is closed."""
        if self.closed:
            raise ValueError("the snapshot is closed")

    def close(self) -> None:
        """Remove it; brokers that have begun with it go on."""
        self._remove()

    def fill(self, folder: str, beside: Collection[str] = ()) -> None:
        """Make a folder begin as this. Raises FileExistsError if there is something in it, but for files
        ``beside`` it, and ValueError for a snapshot that is closed."""
        self.check()
        os.makedirs(folder, exist_ok=True)
        if set(os.listdir(folder)).difference(beside):
            raise FileExistsError(f"a broker begins with a snapshot in an empty folder, not in {folder!r}")
        for name in (DATABASE, NOTE_NAME):
            shutil.copyfile(os.path.join(self._folder, name), os.path.join(folder, name))
        _link(self._folder, folder)

    def __repr__(self) -> str:
        return "<snapshot, closed>" if self.closed else f"<snapshot in {self._folder!r}>"


def _forget_members(database: sqlite3.Connection) -> None:
    prefix = pack_key(MEMBERS, "")
    following = prefix[:-1] + bytes([prefix[-1] + 1])
    with database:
        database.execute("DELETE FROM Cache WHERE key >= ? AND key < ? AND raw = 1", (prefix, following))


def remove_log(folder: str) -> None:
    """Remove what a log has in a folder, and nothing else."""
    for name in PARTS:
        with suppress(FileNotFoundError):
            whole = os.path.join(folder, name)
            shutil.rmtree(whole) if os.path.isdir(whole) else os.unlink(whole)


def _link(source: str, target: str) -> None:
    """Link the files of large values, or copy them where that is not possible."""
    with suppress(FileNotFoundError), os.scandir(os.path.join(source, VALUES)) as entries:
        names = [entry.name for entry in entries]
        os.makedirs(os.path.join(target, VALUES), exist_ok=True)
        for name in names:
            begin, end = os.path.join(source, VALUES, name), os.path.join(target, VALUES, name)
            with suppress(FileExistsError, FileNotFoundError):  # linked already, or deleted meanwhile
                try:
                    os.link(begin, end)
                except OSError as error:
                    if isinstance(error, FileExistsError | FileNotFoundError):
                        raise
                    shutil.copyfile(begin, end)
