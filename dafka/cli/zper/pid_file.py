"""The pid file of a server: a lock that it holds as long as it runs, with its pid in it as soon as it serves.

The kernel gives the lock back whenever the process dies. So a file that is left over is recognized, and a pid
that another process has got since is never signalled.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import IO

from dafka.protocol.errors import DafkaError

_PAUSE = 0.02  # seconds between two looks


class RunningError(DafkaError):
    """Another server holds the pid file."""


class PidFile:
    """The pid file of this process; for a ``with`` block. Raises :class:`RunningError` and OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _locked(path)
        if self._file is None:
            raise RunningError(f"a server runs already: process {pid_of(path) or 'unknown'} holds {path}")
        self._file.truncate(0)

    def serving(self) -> None:
        """Say that this process serves from now on."""
        assert self._file is not None
        self._file.write(b"%d\n" % os.getpid())

    def __enter__(self) -> PidFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        self._path.unlink(missing_ok=True)
        self._file.close()


def pid_of(path: Path) -> int | None:
    """The pid in the file, once its process serves."""
    try:
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.endswith("\n") and text.strip().isdecimal() else None


def is_held(path: Path) -> bool:
    """Whether the process that made the file is alive. A file that is left over is removed."""
    if not path.exists():
        return False
    file = _locked(path)
    if file is None:
        return True
    path.unlink(missing_ok=True)
    file.close()
    return False


def wait_until_released(path: Path, seconds: float) -> bool:
    """Wait until the process that holds the file has ended; whether it has, after so many seconds."""
    deadline = time.monotonic() + seconds
    while is_held(path):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
    return True


def _locked(path: Path) -> IO[bytes] | None:
    """The file, open and locked; None if another process has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - it outlives this call
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        if _is_there(path, file):
            return file
        file.close()  # another process has removed it meanwhile


def _is_there(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
