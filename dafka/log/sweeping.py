"""Looking after the files of values when a log is opened and closed: which are lost, and which nobody names.

A file can be *lost* in a power cut only if it was written in the seconds before, so only the values that were
stored last are looked at: rows are numbered in the order in which they were stored.

A file that no row names is left by a round that never ended, or belongs to a row that is deleted. To find it,
all files and all rows are gone through. It is removed when a checkpoint has brought the deletion to the disk.
Before that a power cut could bring the row back, whose records compaction may have put into rows that go
with the same WAL. A log of many rows that is closed in order has no such files, and says so in a note
(:func:`leave_note`), which counts once: it is taken away before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from dafka.log.database import Database
from dafka.log.limits import LOST_SECONDS, NOTED_ROWS
from dafka.log.values import ValueDisk, is_value_name

TIDY_NAME = "dafka.tidy"

_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_NUMBER_OCTETS = 20


def lost_values(database: Database, files: ValueDisk, pause: Callable[[], object]) -> frozenset[bytes]:
    """The keys of rows of the last seconds whose files are not as they were written."""
    young = database.young_files(LOST_SECONDS, pause)
    return frozenset(key for name, size, key in young if is_value_name(name) and files.size_of(name) != size)


def unnamed(database: Database, files: ValueDisk, pause: Callable[[], object]) -> set[str]:
    """The files that no row names. Goes through all of them: some microseconds for each."""
    found = files.names(pause)
    if found:
        for some in database.file_names(pause):
            found.difference_update(some)
    return found


def leave_note(folder: str, last_row: int) -> None:
    """Note that there are no such files in ``folder``, whose last row has that number."""
    if last_row < NOTED_ROWS:
        return
    path = os.path.join(folder, TIDY_NAME)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS
    with (
        suppress(OSError),
        open(os.open(path, flags, 0o600), "wb") as file,
    ):  # without it files are gone through
        file.write(b"%d" % last_row)


def take_note(folder: str, last_row: int) -> bool:
    """Take the note away, for good; whether there was one for a log whose last row has that number."""
    path = os.path.join(folder, TIDY_NAME)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS), "rb") as file:
            noted = file.read(_NUMBER_OCTETS)
        os.unlink(path)
        descriptor = os.open(folder, os.O_RDONLY | _FLAGS)
        try:
            os.fsync(descriptor)  # or it might be back after a power cut
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return noted == b"%d" % last_row
