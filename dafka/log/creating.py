"""The database of a new log, and how databases are opened.

diskcache makes its tables one after the other, and writes each of its settings in transactions of their own,
whenever it opens a database: 2.5 ms of processor time, a third of what it takes to start a broker. Where the
settings are a log's, all of that is the same each time. So a process has it done once; then new databases are
copies of that one, and those that are like it are opened as they are.

A new database appears under its name with everything in it, or not at all, whenever the power goes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from dafka.log.database import Database
from dafka.log.layout import DATABASE, LAYOUT_KEY, read_settings
from dafka.log.limits import BUSY_SECONDS, LAYOUT
from dafka.log.values import ValueDisk

SETTINGS = {
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**62,
    "statistics": 0,
    "tag_index": 0,
    "sqlite_auto_vacuum": 2,
    "sqlite_cache_size": -2048,  # KiB
    "sqlite_journal_mode": "wal",
    "sqlite_journal_size_limit": 16 * 1024 * 1024,  # size of the WAL after a very large round
    "sqlite_mmap_size": 0,
    "sqlite_secure_delete": 0,  # or deleting writes all of what it deletes; some builds have it on
    "sqlite_synchronous": 1,
    "sqlite_trusted_schema": 0,  # or a stranger's triggers could call more than SQL's own functions
    "sqlite_wal_autocheckpoint": 0,  # see :meth:`dafka.log.storage.Storage.checkpoint`
}


class _Made(NamedTuple):
    database: Database  # closed; its folder is gone
    settings: Mapping[str, object]
    content: bytes


_made: dict[int, _Made] = {}  # by the size from which on values are files, which is one of the settings


def create_database(folder: str, files_from: int) -> Database | None:
    """Make and open the database of a new log; its values from ``files_from`` octets on are files.

    None, and nothing is made, where there is a file of that name: of a process that died while it was making
    a log, in former versions.
    """
    path = os.path.join(folder, DATABASE)
    if os.path.exists(path) and os.path.getsize(path):
        return None
    os.makedirs(folder, 0o700, exist_ok=True)
    unfinished = path + ".new"
    _remove(unfinished)
    _remove(
        path + "-journal"
    )  # of a process that died while it made a log; SQLite would take it for this one's
    made = _made.get(files_from)
    if made is None:
        try:
            made = _made[files_from] = _make(unfinished, files_from)
        finally:
            _remove(unfinished)
    try:
        # SQLite gives the files beside it the same rights.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(made.content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        _remove(unfinished)  # of a full disk it may have taken the last space
        raise
    return made.database.at(folder)


def open_database(folder: str, files_from: int) -> Database:
    """Open the database of a log. Raises DamagedError for one whose settings are not a log's."""
    stored = read_settings(folder, SETTINGS)
    made = _made.get(files_from)
    if made is not None and stored.items() >= made.settings.items():
        return made.database.at(folder)
    return _opened(folder, files_from)


def fill_database(database: Database) -> None:
    """Add what a log's database has besides diskcache's tables; the layout says that it is complete."""
    database.index_what_expires()
    database.set(LAYOUT_KEY, LAYOUT)


def sync_folders(folder: str) -> None:
    """Make the new files' names survive a power loss, too."""
    for path in (folder, os.path.dirname(os.path.abspath(folder))):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _opened(folder: str, files_from: int) -> Database:
    return Database(folder, timeout=BUSY_SECONDS, disk=ValueDisk, disk_min_file_size=files_from, **SETTINGS)


def _make(folder: str, files_from: int) -> _Made:
    """Have diskcache make a database in ``folder``, which nobody else reads."""
    os.mkdir(folder, 0o700)
    database = _opened(folder, files_from)
    try:
        fill_database(database)
        settings = database.settings()
        database.pragma("synchronous = OFF")  # the copies are synced
    finally:
        database.close()  # which brings the WAL into the file
    with open(os.path.join(folder, DATABASE), "rb") as file:
        return _Made(database, settings, file.read())


def _remove(unfinished: str) -> None:
    if os.path.isdir(unfinished) and not os.path.islink(unfinished):
        shutil.rmtree(unfinished)
    else:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
