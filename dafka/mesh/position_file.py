"""A file in which a consumer keeps how far it has got, because stores keep nothing about consumers.

It is JSON, the sequence at which to go on by partition. It is written anew and put in the place of the old
one, so after a crash it is either of the two. A lock beside it (``.lock``) keeps a second consumer away.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from dafka.mesh.address import InvalidAddressError, check_address
from dafka.protocol.errors import DafkaError
from dafka.protocol.json_text import read_json
from dafka.roles.limits import LAST_SEQUENCE


class PositionFileError(DafkaError, ValueError):
    """The file of a consumer's positions is not one, or another consumer has it."""


class PositionFile:
    """The file at ``path``, which need not exist; its folder does.

    Raises :class:`PositionFileError`, OSError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._lock: IO[str] | None = self._locked()
        try:
            self.positions: Mapping[str, int] = self._read()
        except BaseException:
            self.close()
            raise

    def write(self, positions: Mapping[str, int]) -> None:
        """Put these in the place of what is in the file; they are on disk then."""
        new = self.path.with_name(f"{self.path.name}.new")
        with open(new, "w", encoding="ascii") as file:
            json.dump({"version": 1, "positions": positions}, file, indent=0)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path)
        self.positions = dict(positions)

    def close(self) -> None:
        """Leave the file to others."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _locked(self) -> IO[str]:
        lock = open(self.path.with_name(f"{self.path.name}.lock"), "w", encoding="ascii")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise PositionFileError(f"another consumer keeps its positions in {self.path}") from error
        return lock

    def _read(self) -> dict[str, int]:
        try:
            text = self.path.read_text(encoding="ascii")
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError as error:
            raise self._unknown("is not JSON") from error
        try:
            tree = read_json(text)
        except ValueError as error:
            raise self._unknown(f"is not JSON: {error}") from error
        if not isinstance(tree, dict) or tree.get("version") != 1:
            raise self._unknown("does not say that it has version 1")
        positions = tree.get("positions")
        if not isinstance(positions, dict):
            raise self._unknown("has no positions")
        for partition, sequence in positions.items():
            try:
                check_address(partition)
            except InvalidAddressError as error:
                raise self._unknown(str(error)) from error
            if type(sequence) is not int or not 0 <= sequence < LAST_SEQUENCE:
                raise self._unknown(f"has the sequence {sequence!r} for partition {partition}")
        return positions

    def _unknown(self, why: str) -> PositionFileError:
        return PositionFileError(f"{self.path} is not a file of a consumer's positions: {why}")
