"""Random histories of a log and its backups: appending, deleting, backups that are killed, damage, pruning.

In each of them, a backup is restored to what the log was when it was taken, octet by octet, or the restore
says that it is damaged; `verify` finds exactly those that are; leftovers of a killed process harm nothing.

``DAFKA_TEST_BACKUP_HISTORIES`` sets how many; a failure names its seed, and ``-k`` with it repeats it.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log.messages import ADDRESS

from dafka.backup import blocks, creating, repository
from dafka.backup.checking import check
from dafka.backup.creating import create
from dafka.backup.errors import BackupDamagedError
from dafka.backup.pruning import prune
from dafka.backup.repository import BACKUPS, BLOCKS, VALUES, Repository
from dafka.backup.restoring import SUFFIX, restore
from dafka.log import Log
from dafka.log.limits import FILE_BYTES

HISTORIES = int(os.environ.get("DAFKA_TEST_BACKUP_HISTORIES", "6"))
STEPS = 40

Content = dict[Any, Any]


def content_of(data: str) -> Content:
    """Everything that a log has."""
    with Log(data) as log:
        found: Content = {
            (one.topic, one.address): log.read(one, one.first_sequence, count=10_000, max_bytes=2**40)
            for one in log.partitions()
        }
        found["table"] = [log.table("table").get(f"key {number}") for number in range(5)]
        return found


class History:
    """A log, its backups, and what each of them has to be."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.data, self.backups = str(folder / "data"), str(folder / "backups")
        self.folder = folder
        self.expected: dict[str, Content] = {}
        self.restores = 0
        self.append()

    def step(self) -> None:
        ways: dict[Callable[[], None], int] = {
            self.append: 6,
            self.drop: 1,
            self.back_up: 6,
            self.killed: 4,
            self.damage: 2,
            self.prune: 1,
            self.verify: 3,
            self.restore: 4,
        }
        (way,) = self.random.choices(list(ways), list(ways.values()))
        way()

    def append(self) -> None:
        with Log(self.data) as log:
            for _ in range(self.random.randint(1, 4)):
                partition = log.partition(b"topic %d" % self.random.randrange(3), ADDRESS)
                size = self.random.choice([10, 1000, FILE_BYTES + 1, 3 * FILE_BYTES])
                values = [self.random.randbytes(size) for _ in range(self.random.randint(1, 2))]
                log.write([(partition, values)], {("table", f"key {self.random.randrange(5)}"): size})

    def drop(self) -> None:
        with Log(self.data) as log:
            if found := list(log.partitions()):
                log.drop(self.random.choice(found))
                log.write([], collect_bytes=2**30)

    def back_up(self) -> None:
        made = create(self.data, self.backups, check_all=self.random.random() < 0.3)
        assert not made.damaged
        self.expected[made.name] = content_of(self.data)

    def killed(self) -> None:
        """A process that dies in the middle, at one of the places where it writes."""
        after, restoring = self.random.randint(1, 12), self.random.random() < 0.3
        target = str(self.folder / "killed")
        child = os.fork()
        if not child:
            left = [after]

            def dying(function: Any) -> Any:
                def call(*arguments: Any) -> Any:
                    left[0] -= 1
                    if left[0] <= 0:
                        os._exit(0)
                    return function(*arguments)

                return call

            for module in (repository, blocks, creating):
                module.open_new = dying(module.open_new)  # type: ignore[attr-defined]
            repository.os.replace = dying(os.replace)  # type: ignore[attr-defined, unused-ignore]
            repository.sync = dying(repository.sync)
            try:
                if restoring:
                    restore(self.backups, target)
                else:
                    create(self.data, self.backups)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        if not restoring:
            for name in set(self.names()) - self.expected.keys():  # it came to its end
                self.expected[name] = content_of(self.data)
        shutil.rmtree(target, ignore_errors=True)
        if self.random.random() < 0.5:  # otherwise a later one meets what is left
            shutil.rmtree(target + SUFFIX, ignore_errors=True)

    def damage(self) -> None:
        """Something flips a bit in the folder of backups, cuts a file, or takes it away."""
        folder = Path(self.backups)
        files = [path for name in (VALUES, BLOCKS, BACKUPS) for path in sorted((folder / name).glob("*"))]
        if not files:
            return
        path = self.random.choice(files)
        octets = bytearray(path.read_bytes())
        kind = self.random.randrange(3)
        if kind == 0 and path.parent.name != BACKUPS:
            path.unlink()
        elif kind == 1 or not octets:
            path.write_bytes(octets[: len(octets) // 2])
        else:
            octets[self.random.randrange(len(octets))] ^= 1 << self.random.randrange(8)
            path.write_bytes(octets)

    def prune(self) -> None:
        if not os.path.isdir(self.backups):
            return
        before = self.names()
        keep = self.random.randint(1, 4)
        try:
            gone, _ = prune(Repository(self.backups), keep)
        except BackupDamagedError:
            assert self.names() == before
            return
        assert self.names() == before[-keep:] and gone == before[:-keep]

    def verify(self) -> None:
        """It finds damage in a backup if, and only if, it cannot be restored whole."""
        for name in self.names():
            found: list[tuple[str, str]] = []
            check(Repository(self.backups), [name], lambda *one, found=found: found.append(one))
            assert bool(found) is not self._restored(name), (name, found)

    def restore(self) -> None:
        if names := self.names():
            self._restored(self.random.choice(names))

    def _restored(self, name: str) -> bool:
        """Whether a backup can be restored; the restored log is compared with the model."""
        self.restores += 1
        target = str(self.folder / f"restored {self.restores}")
        try:
            restore(self.backups, target, name)
        except BackupDamagedError:
            assert not os.path.exists(target)
            shutil.rmtree(target + SUFFIX, ignore_errors=True)
            return False
        assert content_of(target) == self.expected[name], name
        shutil.rmtree(target)
        return True

    def names(self) -> list[str]:
        return Repository(self.backups).names() if os.path.isdir(os.path.join(self.backups, BACKUPS)) else []


@pytest.mark.timeout(60 + 20 * HISTORIES)
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_backup_is_restored_to_what_was_there_or_is_told_to_be_damaged(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    for _ in range(STEPS):
        history.step()
    history.back_up()  # a new one is whole in any case
    create(history.data, history.backups, check_all=True)
    newest = history.names()[-1]
    history.expected[newest] = content_of(history.data)
    assert history._restored(newest)
