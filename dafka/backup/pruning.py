"""Deleting old backups, and what only they had."""

from __future__ import annotations

import os
from contextlib import suppress

from dafka.backup.errors import BackupDamagedError, BackupError
from dafka.backup.repository import BACKUPS, BLOCKS, VALUES, Repository, sync


def prune(repository: Repository, keep: int) -> tuple[list[str], int]:
    """Keep the newest ``keep`` backups: (names of those that were deleted, octets that were freed).

    Lists of backups go first, so that a process that is killed leaves no backup with something missing; the
    next call deletes the rest. Raises BackupDamagedError, before anything is deleted, if one of those that
    stay cannot be read, and BackupError if something cannot be deleted.
    """
    with repository.locked():
        names = repository.names()
        gone, kept = names[: max(0, len(names) - keep)], names[max(0, len(names) - keep) :]
        if not kept:
            return [], 0
        needed_values: set[str] = set()
        needed_packs: set[str] = set()
        for name in kept:
            try:
                manifest = repository.read(name)
            except BackupDamagedError as error:
                raise BackupDamagedError(
                    f"{str(error).partition(';')[0]}, so that it is not known what it needs, and nothing is "
                    "deleted: delete this file if you give that backup up"
                ) from None
            needed_values.update(value[0] for value in manifest.values)
            needed_packs.update(block[1] for block in manifest.blocks)
        try:
            for name in gone:
                os.unlink(repository.path(BACKUPS, name + ".json"))
            sync(repository.path(BACKUPS))
            freed = _delete(repository, VALUES, needed_values) + _delete(repository, BLOCKS, needed_packs)
        except OSError as error:
            raise BackupError(
                f"{error.filename or repository.folder} cannot be deleted: {error.strerror}; backups that "
                "stay are whole, and the same command goes on"
            ) from error
    return gone, freed


def _delete(repository: Repository, folder: str, needed: set[str]) -> int:
    freed = 0
    for name in set(os.listdir(repository.path(folder))) - needed:
        path = repository.path(folder, name)
        with suppress(FileNotFoundError):
            freed += os.stat(path, follow_symlinks=False).st_size
            os.unlink(path)
    return freed
