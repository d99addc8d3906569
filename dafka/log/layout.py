"""Recognising a log's folder and its layout, and the errors for a folder that cannot be opened."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import suppress

import diskcache

from dafka.log.boot import NOTE_NAME, RESTORED_NAME, TIMELINE_NAME
from dafka.log.errors import DamagedError, LogOpenError, LogVersionError, NotALogError
from dafka.log.limits import BUSY_SECONDS, LAYOUT
from dafka.log.lock import LOCK_NAME
from dafka.log.sweeping import TIDY_NAME
from dafka.log.values import VALUES, has_files

LAYOUT_KEY = "layout"
DATABASE = diskcache.core.DBNAME
PARTS = (
    DATABASE,
    DATABASE + "-wal",
    DATABASE + "-shm",
    DATABASE + "-journal",
    LOCK_NAME,
    NOTE_NAME,
    RESTORED_NAME,
    TIMELINE_NAME,
    VALUES,
    TIDY_NAME,
)
"""Names of the files in a log's folder."""
_WORD = re.compile(r"[a-z-]+")


def folder_name(path: object) -> str:
    """The name of a folder as a user gives it. Raises TypeError for what is no name of a file, and ValueError
    for what no folder is called."""
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"path is the name of a folder, not {path!r:.100}") from None
    if not name:  # as $DATA is when it is not set
        raise ValueError("path is the name of a folder; the current folder is '.'")
    try:
        if b"\0" not in os.fsencode(name):
            return name
    except UnicodeEncodeError:
        pass
    raise ValueError(f"path is the name of a folder, and none can be called {name!r:.100}")


def refuse_foreign(folder: str) -> None:
    """Raise NotALogError if ``folder`` holds anything that is not a log's; touches nothing."""
    try:
        names = set(os.listdir(folder))
    except NotADirectoryError:
        raise NotALogError(folder, f"{folder} is not a folder; a log needs a folder of its own") from None
    except OSError as error:
        raise opening_error(folder, error) from error
    for part in names.intersection(PARTS):
        if os.path.islink(os.path.join(folder, part)):
            raise NotALogError(
                folder,
                f"{folder} is not a log: its {part} is a symbolic link, and a log would write to what that "
                "names; put the file or folder itself there",
            )
    if not names or LOCK_NAME in names:
        return  # a log's lock is made before anything else
    if DATABASE not in names:
        others = ", ".join(sorted(names)[:3])
        raise NotALogError(
            folder, f"{folder} is not a log: it holds {others}; give the log an empty or a new folder"
        )
    try:
        if read_layout(folder) is None:
            raise NotALogError(folder, f"{folder} is not a log: its {DATABASE} is not one of Dafka's")
    except sqlite3.Error as error:
        raise opening_error(folder, error) from error


def read_layout(folder: str) -> int | None:
    """The layout of the log in ``folder``, or None if there is none yet; writes nothing.

    It is read before diskcache opens the database, because diskcache writes its settings into whatever it
    opens. A process that died while creating a log leaves a database without rows: it has no layout yet.
    """
    path = os.path.join(folder, DATABASE)
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS)
    try:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Cache'").fetchall():
            return None
        select = "SELECT value FROM Cache WHERE key = ? AND raw = 1"
        rows = connection.execute(select, (LAYOUT_KEY,)).fetchall()
        if not rows:
            if connection.execute("SELECT 1 FROM Cache LIMIT 1").fetchall():
                raise NotALogError(folder, f"{folder} is not a log: its {DATABASE} is not one of Dafka's")
            return None
    finally:
        connection.close()
    found = rows[0][0]
    if found != LAYOUT:
        newer = isinstance(found, int) and found > LAYOUT
        raise LogVersionError(
            folder,
            f"the log {folder} has layout {found!r} and this version of dafka reads layout {LAYOUT}"
            + ("; it was written by a newer one: upgrade dafka" if newer else ""),
            found,
            LAYOUT,
        )
    return LAYOUT


def read_settings(folder: str, ours: Iterable[str]) -> dict[str, object]:
    """The settings in the database. Raises DamagedError for one that is not a log's; ``ours`` are the known
    names.

    diskcache runs each setting as a PRAGMA, or makes it an attribute, whatever its name and value are.
    """
    path = os.path.join(folder, DATABASE)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS)
    try:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'").fetchall():
            return {}
        rows = connection.execute("SELECT key, value FROM Settings").fetchall()
    finally:
        connection.close()
    known = {*diskcache.core.DEFAULT_SETTINGS, *diskcache.core.METADATA, *ours}
    for name, value in rows:
        if name not in known or not (type(value) is int or (type(value) is str and _WORD.fullmatch(value))):
            raise DamagedError(
                folder,
                f"the database of the log {folder} is damaged: no log has the setting {name!r} = {value!r}. "
                "Restore the folder from a copy",
                "the database",
            )
    return dict(rows)


def refuse_without_database(folder: str) -> None:
    """Raise DamagedError if ``folder``, where no layout was found, holds what a database has left behind.

    A log that was opened all the same would be a new one, and removes what nothing names.
    """
    size, wal_size = (_size(os.path.join(folder, DATABASE + suffix)) for suffix in ("", "-wal"))
    gone = size is None
    if has_files(folder) or (gone and wal_size is not None) or (size == 0 and wal_size):
        state = "is missing" if gone else "is empty"
        raise DamagedError(
            folder,
            f"the database of the log {folder}, {DATABASE}, {state} and the rest of the log is there: bring "
            "it back, or use another folder",
            "the database",
        )


def _size(path: str) -> int | None:
    """The size of a file, None if there is none."""
    return os.path.getsize(path) if os.path.exists(path) else None


def opening_error(folder: str, error: BaseException) -> LogOpenError | NotALogError | DamagedError:
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        if "not a database" in str(error):
            return NotALogError(folder, f"{folder} is not a log: its {DATABASE} is not a SQLite database")
        return DamagedError(folder, f"the database of the log {folder} is damaged: {error}", "the database")
    cause = cause_of(error)
    hint = _FULL if _is_full(folder) else _hint(error, cause)
    return LogOpenError(folder, f"the log {folder} cannot be opened: {cause}{hint}")


_FULL = "; free some space on its disk, a few megabytes will do"


def _is_full(folder: str) -> bool:
    """Whether there is no space on the disk: SQLite may call that an I/O error."""
    with suppress(OSError):
        return shutil.disk_usage(folder).free == 0
    return False


def _hint(error: BaseException, cause: str) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ENOSPC or "disk is full" in cause:
        return _FULL
    if number in (errno.EMFILE, errno.ENFILE):
        return "; let the process have more of them (ulimit -n)"
    if number == errno.EIO or "disk I/O error" in cause:
        return ""  # the access rights are not the cause
    return "; check that the folder exists or can be made, and that this user may write to it"


def cause_of(error: BaseException) -> str:
    """The cause of an error in words; for diskcache's Timeout, SQLite's message."""
    if isinstance(error, diskcache.Timeout):
        said = error.__context__
        return f"no write transaction could be started ({said or 'another program holds the database'})"
    return str(error) or type(error).__name__
