"""Checking backups: whether everything that they name is there, and is what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crc32c import crc32c

from dafka.backup import blocks
from dafka.backup.errors import BackupDamagedError
from dafka.backup.repository import VALUES, Repository


def check(repository: Repository, names: Iterable[str], note: Callable[[str, str], object]) -> int:
    """Read everything that the backups of these names consist of; the number of octets.

    ``note(place, cause)`` is called for each damage; files that several backups share are read once.
    """
    seen: set[object] = set()
    size = 0
    for name in names:
        try:
            manifest = repository.read(name)
        except BackupDamagedError as error:
            note(name, str(error))
            continue
        new_blocks = [block for block in dict.fromkeys(manifest.blocks) if block not in seen]
        blocks.check(repository, new_blocks, note)
        new_values = [value for value in manifest.values if value not in seen]
        for value, length, checksum in new_values:
            cause = damage(repository, value, length, checksum)
            if cause:
                note(repository.path(VALUES, value), cause)
        size += sum(block[3] for block in new_blocks) + sum(value[1] for value in new_values)
        seen.update(new_blocks)
        seen.update(new_values)
    return size


def damage(repository: Repository, name: str, size: int, checksum: int) -> str:
    """The fault of a value's file, or nothing."""
    try:
        with open(repository.path(VALUES, name), "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if len(content) != size:
        return f"it has {len(content)} bytes, not {size}"
    return "" if crc32c(content) == checksum else "its checksum (CRC-32C) does not match its bytes"
