"""Looking after the files of values: those lost when a log is opened, and those that no row names.

A file can be *lost* in a power cut only if it was written in the seconds before, so only the values that were
stored last are looked at: rows are numbered in the order in which they were stored.

A file that no row names is left by a round that never ended, or belongs to a row that is deleted. It takes
space and does no other harm. To find it, all rows and all files are gone through (:class:`Sweep`): seconds
where there are a million. A log of few rows does so when it is opened, one of many in small steps later,
between rounds. The file is removed when a checkpoint has brought the deletion to the disk. Before that a
power cut could bring the row back, whose records compaction may have put into rows that go with the same WAL.
A log of many rows that is closed in order has no such files, and says so in a note (:func:`leave_note`) that
counts once: it is taken away before anything is written.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Generator
from contextlib import suppress

from dafka.log.database import Database
from dafka.log.limits import LOST_SECONDS, NOTED_ROWS
from dafka.log.values import ValueDisk, is_value_name, number_of

TIDY_NAME = "dafka.tidy"

_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_NUMBER_OCTETS = 20
_BUCKETS = 1024  # of names: a million files have a thousand in each, which are sorted at once
_SORTED_AT_ONCE = 8
_REMEMBERED = 2**64 - 1


def lost_values(database: Database, files: ValueDisk, pause: Callable[[], object]) -> frozenset[bytes]:
    """The keys of rows of the last seconds whose files are not as they were written."""
    young = database.young_files(LOST_SECONDS, pause)
    return frozenset(key for name, size, key in young if is_value_name(name) and files.size_of(name) != size)


class Sweep:
    """Finds the files that no row names, of those that were there when the log was opened.

    Rounds may go on between its steps. A file has a name that no other ever has, and its row keeps its number
    until it is deleted. So a file of that time that no row names when the rows are gone through is named by
    none later. Files that were made since are left alone.

    Of a name 8 octets are remembered; two that have them in common count as named.
    """

    def __init__(self, database: Database, files: ValueDisk) -> None:
        self._named: list[array[int]] = []
        self._steps = self._run(database, files)

    def step(self) -> list[str] | None:
        """One step, in any thread: the files it has found; None if there are no more steps. Raises
        sqlite3.Error and OSError: then there are none either."""
        return next(self._steps, None)

    def close(self) -> None:
        """Leave it at that."""
        self._steps.close()

    def _run(self, database: Database, files: ValueDisk) -> Generator[list[str]]:
        if not files.has_old():
            return
        named = self._named = [array("Q") for _ in range(_BUCKETS)]
        for names in database.file_names():
            for name in filter(is_value_name, names):
                number = number_of(name)
                named[number % _BUCKETS].append(number // _BUCKETS & _REMEMBERED)
            yield []
        for place, bucket in enumerate(named):
            named[place] = array("Q", sorted(bucket))
            if not place % _SORTED_AT_ONCE:
                yield []
        for names in files.names():
            yield [name for name in names if not files.is_new(name) and not self._is_named(name)]

    def _is_named(self, name: str) -> bool:
        number = number_of(name)
        bucket, remembered = self._named[number % _BUCKETS], number // _BUCKETS & _REMEMBERED
        place = bisect_left(bucket, remembered)
        return place < len(bucket) and bucket[place] == remembered


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
