"""One process at a time: an advisory lock on a file in the folder, with the owner's pid in it.

``flock`` locks belong to the open file, not to the process, so a second opener in the same process is
refused too, and the kernel gives the lock back whenever the owner dies. The file itself stays: deleting it
would let two openers lock two different files of the same name.

A forked child inherits the open file and with it the lock. The child closes its copy at once, and the
owner unlocks explicitly instead of only closing, so that a remaining copy cannot keep the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import IO

from dafka.log.errors import LogLockedError

LOCK_NAME = "dafka.lock"


class FolderLock:
    """The exclusive lock on ``folder``, held from construction to :meth:`release`.

    Raises :class:`LogLockedError` if it is taken, and OSError if the lock file cannot be made.
    """

    def __init__(self, folder: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(os.path.join(folder, LOCK_NAME), flags, 0o600)
        file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - it outlives this call
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _owner(file)
            file.close()
            raise LogLockedError(folder, _message(folder, pid), pid) from None
        except BaseException:
            file.close()
            raise
        self._file: IO[bytes] | None = file
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only its owner's name is missing
            file.truncate(0)
            file.write(b"%d\n" % os.getpid())

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        file, self._file = self._file, None
        if file is not None:
            fcntl.flock(file, fcntl.LOCK_UN)
            file.close()

    def drop_in_child(self) -> None:
        """Close this process's copy without unlocking: the lock stays with the parent."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _owner(file: IO[bytes]) -> int | None:
    file.seek(0)
    text = file.read(32).strip()
    return int(text) if text.isdigit() else None


def _message(folder: str, pid: int | None) -> str:
    if pid is None:
        who = "another process (its pid is not readable)"
    elif pid == os.getpid():
        who = f"this process (pid {pid})"
    else:
        who = f"process {pid}"
    return f"the log {folder} is open in {who}; close it there, or use another folder"
