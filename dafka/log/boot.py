"""Notes in a log's folder about what has become of it: the last boot of the machine, and a restore.

The boot id of the machine when a log was last opened tells whether a power cut may have come since.

Linux gives each boot an id, which is noted in the log's folder when the log is opened. The note is not
synced: a note that is missing or old after a power cut says just as well that the machine went down.

A folder that was restored from a backup says so until the broker that opens it has dealt with it: readers may
know records that came after the backup. It also says, for ever, in which timeline it is. As with
PostgreSQL's, what is written after a restore is another history than what was written after the backup
elsewhere, and each restore begins one that has a number above all others of these backups.
"""

from __future__ import annotations

import os
from contextlib import suppress

NOTE_NAME = "dafka.boot"
RESTORED_NAME = "dafka.restored"
TIMELINE_NAME = "dafka.timeline"
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


def note_restored(folder: str, timeline: int = 1, ahead: int = 1) -> None:
    """Note in ``folder`` that it is a backup's content, in a timeline that is ``ahead`` of the backup's."""
    for name, number in ((RESTORED_NAME, ahead), (TIMELINE_NAME, timeline)):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(os.path.join(folder, name), flags, 0o600), "wb") as file:
            file.write(b"%d\n" % number)
            file.flush()
            os.fsync(file.fileno())


def restored_ahead(folder: str) -> int:
    """By how many timelines, if that was noted and not forgotten; otherwise 0."""
    if not os.path.lexists(os.path.join(folder, RESTORED_NAME)):
        return 0
    return max(
        _number(folder, RESTORED_NAME), 1
    )  # a file without a number is from before there were timelines


def timeline(folder: str) -> int:
    """The timeline of what is in ``folder``: 0 unless it was restored and opened since."""
    return max(begun_timeline(folder) - restored_ahead(folder), 0)


def begun_timeline(folder: str) -> int:
    """The timeline that the last restore began, also before the folder is opened; 0 if none was noted."""
    return _number(folder, TIMELINE_NAME)


def forget_restored(folder: str) -> None:
    """Forget it. If that fails it is found again next time."""
    with suppress(OSError):
        os.unlink(os.path.join(folder, RESTORED_NAME))


def _number(folder: str, name: str) -> int:
    """The number in a note; 0 if there is none."""
    text = _read(os.path.join(folder, name)) or b""
    return int(text) if len(text) < 7 and text.isdigit() else 0


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(100).strip()
    except OSError:
        return None
