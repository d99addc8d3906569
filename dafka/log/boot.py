"""In which run of the machine a log was last opened: whether the power may have gone since then.

Linux gives each run an id. It is noted in the folder when a log has been opened. Nothing waits for the note
to reach the disk: one that a power cut takes, or leaves as it was before, says just as well that it went.
"""

from __future__ import annotations

import os
from contextlib import suppress

NOTE_NAME = "dafka.boot"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str | None:
    """The run of the machine; None where the system does not say."""
    boot = _read(_BOOT_ID)
    return None if boot is None else boot.decode("ascii", "replace")


def rebooted(folder: str) -> bool:
    """Whether the machine has gone down, or may have, since the log in ``folder`` was opened.

    False where the system does not say.
    """
    boot = _read(_BOOT_ID)
    return boot is not None and boot != _read(os.path.join(folder, NOTE_NAME))


def note_boot(folder: str) -> None:
    """Note that the log is open in this run of the machine."""
    if rebooted(folder):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with (
            suppress(OSError),
            open(os.open(os.path.join(folder, NOTE_NAME), flags, 0o600), "wb") as file,
        ):  # or it is done next time
            file.write(_read(_BOOT_ID) or b"")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(100).strip()
    except OSError:
        return None
