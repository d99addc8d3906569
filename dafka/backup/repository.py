"""The folder of backups: which are there, and what they share.

::

    dafka-backup.json             says that this folder holds backups, and in which layout
    backups/20261123T140502Z.json a backup: its blocks, its values, what it was taken of
    blocks/20261123T140502Z.pack  the blocks of databases that came with this backup
    values/NAME.val               files of values, under the names that they have in the log
    restores                      the number of the last timeline that a restore began
    unfinished/                   what a process is writing

Everything is written under ``unfinished``, synced and renamed. Files that no backup names were left by a
process that was killed: values are taken up by the next backup, everything else is deleted by it.

The mark and each backup bear the number of their format, which is looked at before anything else.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from dafka.backup.errors import (
    BackupDamagedError,
    BackupError,
    BackupLockedError,
    NewerBackupError,
    NoSuchBackupError,
    NotABackupError,
)
from dafka.protocol.json_text import read_json

FORMAT = 1
"""Of the mark and of a backup's file. A number goes up when older versions could not read what is written."""
MARK, LOCK, RESTORES = "dafka-backup.json", "dafka-backup.lock", "restores"
BACKUPS, BLOCKS, VALUES, UNFINISHED = "backups", "blocks", "values", "unfinished"
_FOLDERS = (BACKUPS, BLOCKS, VALUES, UNFINISHED)
_NAME = re.compile(r"(\d{8}T\d{6}Z)(?:-(\d+))?", re.ASCII)
_NEW_MARK = re.compile(re.escape(MARK) + r"\.\d+", re.ASCII)  # the mark, before it is whole


@dataclass
class Manifest:
    """A backup."""

    name: str
    taken: str
    """When the state was as the backup has it, in UTC."""
    source: str
    layout: int
    partitions: int = 0
    bytes: int = 0
    """Octets of the database and of all values."""
    new_bytes: int = 0
    """Octets that this backup added to the folder."""
    blocks: list[tuple[str, str, int, int]] = field(default_factory=list)
    """The database, in order: SHA-256, name of the pack, place in it, octets."""
    values: list[tuple[str, int, int]] = field(default_factory=list)
    """Name, octets and CRC-32C of each value's file."""
    damaged: list[str] = field(default_factory=list)
    """Values that were damaged or missing in the log already."""
    checked: int = 0
    """Which part of what was reused was read and compared; the next backup takes the next part."""
    timeline: int = 0
    """The timeline of what was backed up (:mod:`dafka.log.boot`)."""


_FIELDS = {one.name for one in fields(Manifest)}


class Repository:
    """The backups in ``folder``. Raises NotABackupError."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self._check()

    @classmethod
    def made(cls, folder: str) -> Repository:
        """The backups in ``folder``, which is made if it is missing, or taken if it is empty."""
        folder = os.path.abspath(folder)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if all(_NEW_MARK.fullmatch(name) for name in os.listdir(folder)):
                _mark(folder)
        except FileExistsError as error:
            raise NotABackupError(f"{folder} is not a folder") from error
        except OSError as error:
            raise BackupError(f"the folder {folder} for backups cannot be made: {error.strerror}") from error
        self = cls(folder)
        for name in _FOLDERS:
            os.makedirs(self.path(name), mode=0o700, exist_ok=True)
        return self

    def _check(self) -> None:
        path = self.path(MARK)
        try:
            with open(path, "rb") as file:
                found = read_json(file.read(1000))
            layout = found["format"]
        except (FileNotFoundError, NotADirectoryError):
            there = os.path.lexists(self.folder)
            state = f"it has no {MARK}" if there else "there is no such folder"
            raise NotABackupError(f"{self.folder} holds no backups: {state}") from None
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            raise BackupDamagedError(
                f"{path} is damaged: it does not say in which layout the backups are"
            ) from None
        if layout != FORMAT:
            raise NotABackupError(
                f"the backups in {self.folder} have layout {layout!r}, and this version of dafka reads "
                f"layout {FORMAT}: they were made by a newer one, upgrade dafka"
            )

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time writes to the folder. Raises BackupLockedError."""
        descriptor = os.open(self.path(LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise BackupLockedError(f"another process is writing to the backups in {self.folder}") from None
        try:
            yield
        finally:
            os.close(descriptor)

    # Backups

    def names(self) -> list[str]:
        """The names of all backups, in the order in which they were made."""
        with suppress(FileNotFoundError):
            found = [
                name.removesuffix(".json")
                for name in os.listdir(self.path(BACKUPS))
                if name.endswith(".json")
            ]
            return sorted(filter(_NAME.fullmatch, found), key=_order)
        return []

    def newest(self) -> Manifest | None:
        """The newest one whose list can be read: its files need not be copied again."""
        for name in reversed(self.names()):
            with suppress(BackupDamagedError):
                return self.read(name)
        return None

    def read(self, name: str | None) -> Manifest:
        """The backup of that name; None: the newest.

        Raises NoSuchBackupError, NewerBackupError and BackupDamagedError.
        """
        names = self.names()
        if not names:
            raise NoSuchBackupError(f"there is no backup in {self.folder} yet")
        if name is None:
            name = names[-1]
        if name not in names:
            raise NoSuchBackupError(
                f"there is no backup {name!r} in {self.folder}; there are {', '.join(names[-3:])}"
                + (f" and {len(names) - 3} older ones" if len(names) > 3 else "")
            )
        path = self.path(BACKUPS, name + ".json")
        try:
            with open(path, "rb") as file:
                outer = read_json(file.read())
            if outer.get("format", FORMAT) != FORMAT:
                raise NewerBackupError(_newer(path, f"format {outer['format']!r}"))
            inner = outer["backup"]
            if _digest(inner) != outer["sha256"]:
                raise ValueError("its checksum does not match")
            if strange := inner.keys() - _FIELDS:
                raise NewerBackupError(_newer(path, f"the field {min(strange)!r}"))
            blocks = [
                (str(digest), str(pack), int(at), int(size)) for digest, pack, at, size in inner["blocks"]
            ]
            values = [(str(value), int(size), int(crc)) for value, size, crc in inner["values"]]
            return Manifest(**{**inner, "blocks": blocks, "values": values})
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupDamagedError(f"{path} is damaged: {error}; restore another backup") from None

    def write(self, manifest: Manifest) -> None:
        """From here on the backup exists."""
        inner = asdict(manifest)
        content = json.dumps(
            {"format": FORMAT, "sha256": _digest(inner), "backup": inner}, separators=(",", ":")
        ).encode()
        with self.unfinished("backup") as path:
            _write_new(path, content)
            self.finish(path, BACKUPS, manifest.name + ".json")

    # Files

    @contextmanager
    def unfinished(self, name: str) -> Iterator[str]:
        """The path of a new file, which is deleted at the end of the block if it is still there."""
        path = self.path(UNFINISHED, name)
        with suppress(FileNotFoundError):
            os.unlink(path)
        try:
            yield path
        except OSError as error:
            raise BackupError(_not_written(self.folder, error)) from error
        finally:
            with suppress(FileNotFoundError):
                os.unlink(path)

    def finish(self, path: str, *names: str) -> None:
        """Bring a written file to its place, so that a power cut does not take it away."""
        sync(path)
        os.replace(path, self.path(*names))
        sync(self.path(names[0]))

    def clear(self) -> None:
        """Delete what a killed process has left, but for files of values."""
        for name in os.listdir(self.path(UNFINISHED)):
            with suppress(OSError):
                os.unlink(self.path(UNFINISHED, name))
        named = set(self.names())
        strange = {name for name in os.listdir(self.path(BLOCKS)) if name.removesuffix(".pack") not in named}
        if strange:
            with suppress(BackupDamagedError):  # which blocks are needed is not known then
                for name in strange - {block[1] for one in named for block in self.read(one).blocks}:
                    os.unlink(self.path(BLOCKS, name))

    def next_name(self, taken: float) -> str:
        """The name of a backup of that time. A clock may be set back: a name is behind all others even so."""
        stem, number = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(taken)), 1
        there = {name.removesuffix(".pack") for name in os.listdir(self.path(BLOCKS))} | set(self.names())
        last = max(map(_order, filter(_NAME.fullmatch, there)), default=("", 0))
        if stem <= last[0]:
            stem, number = last[0], last[1] + 1
        return stem if number == 1 else f"{stem}-{number}"

    def begin_timeline(self, after: int) -> int:
        """The number of a new timeline, above ``after`` and all that restores of these backups have begun.

        Raises OSError if it cannot be noted, as where backups can only be read, and BackupDamagedError.
        """
        path = self.path(RESTORES)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # let go of when the file is closed
            number = max(_restores(path, file.read(20)), after) + 1
            file.seek(0)
            file.write(b"%d\n" % number)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        sync(self.folder)  # the file may be new
        return number

    def last_timeline(self) -> int:
        """The number that the last restore has noted; 0 if there is none, or if it cannot be read."""
        path = self.path(RESTORES)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:
                return _restores(path, file.read(20))
        except OSError:
            return 0

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free


def sync(path: str) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_new(path: str) -> Any:
    """A new file that only its owner can read, opened for writing."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    return open(os.open(path, flags, 0o600), "wb")


def _mark(folder: str) -> None:
    """Mark a folder as one of backups: wholly or not at all, even if other processes do the same just now."""
    path = os.path.join(folder, f"{MARK}.{os.getpid()}")
    with suppress(FileNotFoundError):
        os.unlink(path)  # of a process that was killed
    try:
        _write_new(path, json.dumps({"format": FORMAT}).encode() + b"\n")
        os.replace(path, os.path.join(folder, MARK))
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise


def _order(name: str) -> tuple[str, int]:
    """The time, and which one of this second it is."""
    found = _NAME.fullmatch(name)
    assert found is not None
    return found[1], int(found[2] or 1)


def _write_new(path: str, content: bytes) -> None:
    with open_new(path) as file:
        file.write(content)


def _digest(inner: object) -> str:
    return hashlib.sha256(json.dumps(inner, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _restores(path: str, content: bytes) -> int:
    """The number in the file ``restores``. Raises BackupDamagedError."""
    text = content.strip() or b"0"
    if len(text) > 6 or not text.isdigit():
        raise BackupDamagedError(
            f"{path} is damaged: it has the number of restores; write a higher one into it, such as 1000"
        )
    return int(text)


def _newer(path: str, what: str) -> str:
    return f"{path} was made by a newer version of dafka ({what}): upgrade dafka to use it"


def _not_written(folder: str, error: OSError) -> str:
    more = "; free some space, the same command goes on from here" if error.errno == errno.ENOSPC else ""
    return f"the backups in {folder} cannot be written: {error.strerror}{more}"
