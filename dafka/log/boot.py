"""The boot id of the machine when a log was last opened: it tells whether a power cut may have come since.

Linux gives each boot an id, which is noted in the log's folder when the log is opened. The note is not
synced: a note that is missing or old after a power cut says just as well that the machine went down.
"""

from __future__ import annotations

import os
from contextlib import suppress

NOTE_NAME = "dafka.boot"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str | None:
    """The id of this boot; None where the system has none."""
    boot = _read(_BOOT_ID)
    return None if boot is None else boot.decode("ascii", "replace")


def rebooted(folder: str) -> bool:
    """Whether the machine has gone down, or may have, since the log in ``folder`` was opened.

    False where the system does not say.
    """
    boot = _read(_BOOT_ID)
    return boot is not None and boot != _read(os.path.join(folder, NOTE_NAME))


def note_boot(folder: str) -> None:
    """Note in ``folder`` that the log was opened in this boot."""
    if rebooted(folder):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with (
            suppress(OSError),
            open(os.open(os.path.join(folder, NOTE_NAME), flags, 0o600), "wb") as file,
        ):  # a failed note is written next time
            file.write(_read(_BOOT_ID) or b"")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(100).strip()
    except OSError:
        return None
