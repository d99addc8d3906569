"""A machine whose power can be cut, with a broker's folder on its disk."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from dafka.log.space import Space


class Machine:
    """The broker's folder in ``folder``. After a power cut it is as it was when it was synced last, by a
    checkpoint or by :meth:`synced`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder / "data"
        self._disk = folder / "disk"
        self._boot = folder / "boot"
        self._boots = 0
        monkeypatch.setattr("dafka.log.boot._BOOT_ID", str(self._boot))
        checkpoint = Space.checkpoint

        def and_sync(space: Space, truncate: bool = False) -> bool:
            done = checkpoint(space, truncate)
            self.synced()
            return done

        monkeypatch.setattr(Space, "checkpoint", and_sync)
        self.reboot()

    def reboot(self) -> None:
        self._boots += 1
        self._boot.write_text(f"{self._boots}\n")

    def synced(self) -> None:
        """All that there is has reached the disk."""
        shutil.rmtree(self._disk, ignore_errors=True)
        shutil.copytree(self.path, self._disk)

    def power_cut(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self._disk, self.path)
        self.reboot()

    def power_cut_of_files(self, chance: random.Random) -> None:
        """The database has reached the disk, and of the newer files only some have."""
        for file in sorted((self.path / "values").glob("*")):
            if not (self._disk / "values" / file.name).exists() and chance.random() < 0.6:
                file.unlink()
        self.reboot()
