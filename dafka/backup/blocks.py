"""Databases as blocks of 64 KiB, each of which a folder of backups has once.

A database changes where records were appended, so most of its blocks are in the backup before. New blocks of
one backup are one file, a pack.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator

from dafka.backup.errors import BackupDamagedError
from dafka.backup.repository import BLOCKS, Repository, open_new

BLOCK_BYTES = 64 * 1024

Block = tuple[str, str, int, int]
"""SHA-256, name of the pack, place in it, octets."""


def store(repository: Repository, path: str, name: str, known: Iterable[Block]) -> tuple[list[Block], int]:
    """Store the file at ``path``, for the backup ``name``: (its blocks, octets that are new)."""
    by_digest = {block[0]: block for block in known}
    blocks: list[Block] = []
    pack, written = name + ".pack", 0
    with open(path, "rb") as file, repository.unfinished("pack") as unfinished:
        with open_new(unfinished) as output:
            while content := file.read(BLOCK_BYTES):
                digest = hashlib.sha256(content).hexdigest()
                block = by_digest.get(digest)
                if block is None:
                    block = by_digest[digest] = (digest, pack, written, len(content))
                    output.write(content)
                    written += len(content)
                blocks.append(block)
        if written:
            repository.finish(unfinished, BLOCKS, pack)
    return blocks, written


def read(repository: Repository, blocks: Iterable[Block]) -> Iterator[bytes]:
    """The contents of blocks, checked. Raises BackupDamagedError."""
    for block in blocks:
        content = _content(repository, block)
        if content is None or hashlib.sha256(content).hexdigest() != block[0]:
            raise BackupDamagedError(
                f"{place(repository, block)} {'is missing' if content is None else 'is damaged'}: the "
                "database of the backup cannot be put together. Restore another backup; "
                "`dafka backup verify` says which are whole"
            )
        yield content


def check(repository: Repository, blocks: Iterable[Block], note: Callable[[str, str], object]) -> None:
    """Call ``note(place, cause)`` for each block that is not what was written."""
    for block in blocks:
        cause = damage(repository, block)
        if cause:
            note(place(repository, block), cause)


def damage(repository: Repository, block: Block) -> str:
    """The fault of a block, or nothing."""
    try:
        content = _content(repository, block)
    except OSError as error:  # of a disk that is dying
        return f"it cannot be read: {error.strerror}"
    if content is None:
        return "it is missing"
    if hashlib.sha256(content).hexdigest() == block[0]:
        return ""
    return "its checksum (SHA-256) does not match its bytes"


def place(repository: Repository, block: Block) -> str:
    """Where a block is, in words."""
    _, pack, at, size = block
    return f"{repository.path(BLOCKS, pack)}, octets {at} to {at + size - 1},"


def _content(repository: Repository, block: Block) -> bytes | None:
    _, pack, at, size = block
    try:
        with open(repository.path(BLOCKS, os.path.basename(pack)), "rb") as file:
            file.seek(at)
            return file.read(size)
    except FileNotFoundError:
        return None
