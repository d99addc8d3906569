"""Restoring a backup into a new folder.

The folder is put together beside its place, in a folder of its name with ``.restoring`` behind it, and
renamed when it is whole. That folder looks like no log, so that a log of such a name is never taken for it. A
process that was killed leaves it, and the next one takes up what is there. Nothing is overwritten: renaming
fails if something has come there meanwhile.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress

from crc32c import crc32c

from dafka.backup import blocks
from dafka.backup.checking import damage
from dafka.backup.errors import (
    BackupDamagedError,
    BackupError,
    BackupLockedError,
    NewerBackupError,
    RestoreTargetError,
)
from dafka.backup.repository import VALUES, Manifest, Repository, open_new, sync
from dafka.log import LogLockedError
from dafka.log.boot import note_restored
from dafka.log.layout import DATABASE
from dafka.log.limits import LAYOUT
from dafka.log.lock import LOCK_NAME, FolderLock
from dafka.log.values import VALUES as LOG_VALUES

SUFFIX = ".restoring"
_WORK, _PART = "restored", "unfinished"  # in it: the folder to be, and the file that is being written


def restore(
    folder: str,
    data: str,
    name: str | None = None,
    *,
    keep_damaged: bool = False,
    say: Callable[[str], object] = lambda _: None,
) -> Manifest:
    """Restore the backup ``name`` (None: the newest) in ``folder`` to the new folder ``data``.

    ``keep_damaged``: values that are damaged or missing in the backup are told, and left as they are, instead
    of ending it: a broker with ``on_damage="skip"`` reads what lies around them. Raises RestoreTargetError if
    there is anything at ``data`` but an empty folder, or if it is in ``folder``, whose next backup or pruning
    would clear it away; and the other errors of :mod:`dafka.backup.errors`.
    """
    data = os.path.abspath(data)
    repository = Repository(folder)
    manifest = repository.read(name)
    if manifest.layout > LAYOUT:
        raise NewerBackupError(
            f"the backup {manifest.name} is of a log with layout {manifest.layout}, and this version of "
            f"dafka reads layout {LAYOUT}: upgrade dafka to restore it"
        )
    _refuse_used(data)
    backups = os.path.realpath(folder)
    if os.path.commonpath((backups, os.path.realpath(data))) == backups:
        raise RestoreTargetError(f"{data} is in the folder of backups {folder}: name another place")
    work = data + SUFFIX
    try:
        os.makedirs(os.path.dirname(work), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(work, mode=0o700)
        _refuse_foreign(work)
        lock = FolderLock(work)
    except LogLockedError as error:
        raise BackupLockedError(f"process {error.pid} is restoring to {data} just now") from error
    except OSError as error:
        raise BackupError(f"the folder {work} cannot be made: {error.strerror}") from error
    try:
        _fill(repository, manifest, os.path.join(work, _WORK), os.path.join(work, _PART), keep_damaged, say)
        _refuse_used(data)
        os.rename(os.path.join(work, _WORK), data)  # fails if there is something in a folder of that name
        sync(os.path.dirname(data))
        with suppress(OSError):
            os.unlink(os.path.join(work, LOCK_NAME))
            os.rmdir(work)
    except OSError as error:
        raise BackupError(
            f"{data} cannot be restored: {error.strerror}; what is done stays in {work}, and the same "
            "command goes on"
        ) from error
    finally:
        lock.release()
    return manifest


def _refuse_used(data: str) -> None:
    if not os.path.lexists(data):
        return
    if os.path.islink(data) or not os.path.isdir(data) or os.listdir(data):
        raise RestoreTargetError(
            f"{data} is there already, and a restore overwrites nothing: name a new folder"
        )


def _refuse_foreign(work: str) -> None:
    """Nothing is written or deleted in a folder that no restore of this user has made."""
    found = os.lstat(work)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RestoreTargetError(
            f"{work} is needed for restoring, and is not this user's folder; move it away"
        )
    foreign = set(os.listdir(work)) - {_WORK, _PART, LOCK_NAME}
    if foreign:
        raise RestoreTargetError(f"{work} is needed for restoring, and holds {min(foreign)}; move it away")


def _fill(
    repository: Repository,
    manifest: Manifest,
    work: str,
    part: str,
    keep_damaged: bool,
    say: Callable[[str], object],
) -> None:
    """Put the folder ``work`` together; ``part`` is the name of each file while it is written."""
    values = os.path.join(work, LOG_VALUES)
    os.makedirs(work, mode=0o700, exist_ok=True)
    os.makedirs(values, mode=0o700, exist_ok=True)
    wanted = {name for name, _, _ in manifest.values}
    for name in set(os.listdir(values)) - wanted:  # from another backup that was begun here
        os.unlink(os.path.join(values, name))
    for name, size, checksum in manifest.values:
        path = os.path.join(values, os.path.basename(name))
        if _is_there(path, size, checksum):
            continue
        cause = damage(repository, name, size, checksum)
        place = repository.path(VALUES, name)
        if cause and not keep_damaged:
            raise BackupDamagedError(
                f"{place} is not as it was written: {cause}. Restore another backup, or take what is left "
                "with --keep-damaged; `dafka backup verify` lists all damages"
            )
        if cause:
            say(f"{place}: {cause}")
        with suppress(FileNotFoundError), open(place, "rb") as file:
            _put(part, path, [file.read()])
    if not os.listdir(values):
        os.rmdir(values)
    else:
        sync(values)
    _put(part, os.path.join(work, DATABASE), blocks.read(repository, manifest.blocks))
    timeline = _begin_timeline(repository, manifest, say)
    note_restored(work, timeline, timeline - manifest.timeline)
    sync(work)


def _begin_timeline(repository: Repository, manifest: Manifest, say: Callable[[str], object]) -> int:
    """The number of the history that begins with this restore."""
    try:
        return repository.begin_timeline(manifest.timeline)
    except OSError as error:
        say(
            f"it cannot be noted in {repository.folder} that this is a restore ({error.strerror}): the next "
            "one gets the same leader epochs, so let no client use both"
        )
        return max(repository.last_timeline(), manifest.timeline) + 1


def _is_there(path: str, size: int, checksum: int) -> bool:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return False
    return len(content) == size and crc32c(content) == checksum


def _put(part: str, path: str, contents: object) -> None:
    with suppress(FileNotFoundError):
        os.unlink(part)
    with open_new(part) as output:
        output.writelines(contents)
    sync(part)
    os.replace(part, path)
