"""Taking a backup: the theory of operation is in :mod:`dafka.backup`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import closing

from crc32c import crc32c

from dafka.backup import blocks
from dafka.backup.checking import damage
from dafka.backup.errors import BackupError
from dafka.backup.repository import BLOCKS, VALUES, Manifest, Repository, open_new
from dafka.backup.source import Source, ValueFile
from dafka.log.chunk import decode_chunk

PASSES = 8
"""Passes over the files of values before a transaction is held for what is left."""

LEFT_BYTES = 32 * 1024 * 1024
"""So little is copied while the transaction is held, unless more is written than can be copied."""


PARTS = 10
"""Content of earlier backups is read and compared in so many parts, one with each backup."""


def create(
    data: str, folder: str, *, check_all: bool = False, say: Callable[[str], object] = lambda _: None
) -> Manifest:
    """Back up the log in ``data``, which may be open, to ``folder``, which is made if it is missing.

    Of what the backup before has already, a tenth is read and compared, another one with each backup, or
    everything with ``check_all``; damaged ones are copied again. ``say(text)`` tells what goes on. After an
    interruption the next call takes up the values that are there. Raises the errors of
    :mod:`dafka.backup.errors`, NotALogError, LogVersionError, LogOpenError.
    """
    with closing(Source(data)) as source:
        real = os.path.realpath(source.folder)
        if os.path.commonpath((real, os.path.realpath(folder))) == real:
            raise BackupError(
                f"{folder} is in the folder {data} that is backed up; name another place, on another disk"
            )
        repository = Repository.made(folder)
        with repository.locked():
            repository.clear()
            return _Creation(source, repository, check_all, say).run()


class _Creation:
    def __init__(
        self, source: Source, repository: Repository, check_all: bool, say: Callable[[str], object]
    ) -> None:
        self._source = source
        self._repository = repository
        self._say = say
        self._before = repository.newest()
        before = () if self._before is None else self._before.values
        self._left = _sizes(
            repository.path(VALUES)
        )  # from earlier backups, or from a process that was killed
        self._checksums = {name: (size, crc) for name, size, crc in before if self._left.get(name) == size}
        """Of files that are in the folder as they should be."""
        known = [] if self._before is None else self._before.damaged
        self._damaged = {text.partition(":")[0].removeprefix("values/"): text for text in known}
        self._new_bytes = 0
        self._part = 0 if self._before is None else (self._before.checked + 1) % PARTS
        self._check_all = check_all

    def run(self) -> Manifest:
        self._check_values()
        self._copy_most()
        missing: set[str] = set()
        while True:
            with self._repository.unfinished("database") as path:
                with self._source.pinned():
                    taken = time.time()
                    files = self._source.files()
                    gone = self._copy(files)
                    if gone - missing:  # the broker was stopped just now; a file missing twice is lost
                        missing |= gone
                        continue
                    self._source.copy_database(path)
                    partitions = self._source.partitions()
                return self._finish(
                    path, taken, [file for file in files if file.name not in gone], gone, partitions
                )

    def _is_checked(self, digits: str) -> bool:
        """Whether what has this name is read and compared before it is reused."""
        return self._check_all or crc32c(digits.encode()) % PARTS == self._part

    def _check_values(self) -> None:
        """Have values that have become damaged in the folder copied again."""
        for name, (size, checksum) in list(self._checksums.items()):
            if not self._is_checked(name):
                continue
            cause = damage(self._repository, name, size, checksum)
            if cause:
                self._say(f"{self._repository.path(VALUES, name)}: {cause}; it is copied again if it can be")
                del self._checksums[name]

    def _is_rotten(self, block: blocks.Block) -> bool:
        """Whether a block of an earlier backup cannot be reused."""
        cause = blocks.damage(self._repository, block) if self._is_checked(block[0]) else ""
        if cause:
            self._say(f"{blocks.place(self._repository, block)} {cause}; earlier backups need it")
        return bool(cause)

    def _copy_most(self) -> None:
        """Copy files without holding a transaction: some may be deleted meanwhile."""
        for _ in range(PASSES):
            left = [file for file in self._source.files() if file.name not in self._checksums]
            size = sum(file.size for file in left)
            if size <= LEFT_BYTES:
                return
            self._say(f"copying {size:,} bytes in {len(left):,} values")
            self._copy(left)

    def _copy(self, files: Iterable[ValueFile]) -> set[str]:
        """Have these files in the folder; the names of those that are not there any more."""
        gone = set()
        for file in files:
            known = self._checksums.get(file.name)
            if known is None and not self._take_up(file) and not self._copy_one(file):
                gone.add(file.name)
        return gone

    def _take_up(self, file: ValueFile) -> bool:
        """Whether a killed process has copied it already, and wholly."""
        if self._left.get(file.name) != file.size:
            return False
        try:
            with open(self._repository.path(VALUES, file.name), "rb") as opened:
                content = opened.read()
        except OSError:  # of a disk that is dying: it is copied anew
            return False
        if _damage(file, content):
            return False
        self._checksums[file.name] = file.size, crc32c(content)
        return True

    def _copy_one(self, file: ValueFile) -> bool:
        content = self._source.read(file)
        if content is None:
            return False
        cause = _damage(file, content)
        if cause:
            self._damaged[file.name] = f"values/{file.name}: {cause}"
        with self._repository.unfinished("value") as path:
            with open_new(path) as output:
                output.write(content)
            self._repository.finish(path, VALUES, file.name)
        self._checksums[file.name] = len(content), crc32c(content)
        self._new_bytes += len(content)
        return True

    def _finish(
        self, path: str, taken: float, files: list[ValueFile], gone: set[str], partitions: int
    ) -> Manifest:
        name = self._repository.next_name(taken)
        packs = _sizes(self._repository.path(BLOCKS))
        before = () if self._before is None else self._before.blocks
        known = [
            block
            for block in dict.fromkeys(before)
            if packs.get(block[1], 0) >= block[2] + block[3] and not self._is_rotten(block)
        ]
        stored, new = blocks.store(self._repository, path, name, known)
        values = [(file.name, *self._checksums[file.name]) for file in files]
        manifest = Manifest(
            name=name,
            taken=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(taken)),
            source=self._source.folder,
            layout=self._source.layout,
            timeline=self._source.timeline,
            partitions=partitions,
            bytes=sum(block[3] for block in stored) + sum(size for _, size, _ in values),
            new_bytes=self._new_bytes + new,
            blocks=stored,
            values=values,
            damaged=[f"values/{one}: it is missing" for one in sorted(gone)]
            + [self._damaged[file.name] for file in files if file.name in self._damaged],
            checked=self._part,
        )
        self._repository.write(manifest)
        return manifest


def _damage(file: ValueFile, content: bytes) -> str:
    """The fault of a value, or nothing."""
    try:
        decode_chunk(file.key, content)
    except ValueError as error:
        return str(error)
    return ""


def _sizes(folder: str) -> dict[str, int]:
    with os.scandir(folder) as entries:
        return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries}
