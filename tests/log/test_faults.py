"""A disk that fails or is full: a named error, nothing lost that was acknowledged, nothing half-written."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import diskcache
import forking
import pytest
from log import killed_writer
from log.messages import ADDRESS, EVERYTHING, numbered

from dafka.log import Log, LogReadError, LogWriteError
from dafka.log.verify import verify

Fault = Callable[[str], str]


class Disk:
    """What the next statements meet: ``fault(statement)`` is 'before', 'after' or '' for each."""

    def __init__(self) -> None:
        self.fault: Fault = lambda statement: ""


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Connections whose statements fail as they do when the file's write or sync returns EIO."""
    disk = Disk()

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            fault = disk.fault(statement)
            if fault == "before":
                raise sqlite3.OperationalError("disk I/O error")
            cursor = super().execute(statement, *arguments)
            if fault == "after":  # the bytes are in the file, the sync failed
                raise sqlite3.OperationalError("disk I/O error")
            return cursor

        def executescript(self, script: str) -> sqlite3.Cursor:
            if disk.fault(script):
                raise sqlite3.OperationalError("disk I/O error")
            return super().executescript(script)

    connect = sqlite3.connect
    monkeypatch.setattr(
        diskcache.core.sqlite3,
        "connect",
        lambda *args, **options: connect(*args, factory=Connection, **options),
    )
    yield disk
    disk.fault = lambda statement: ""


def failing(word: str, when: str, nth: int = 1) -> Fault:
    """Fail at the ``nth`` statement that begins with ``word``, once."""
    left = nth

    def fault(statement: str) -> str:
        nonlocal left
        if not statement.lstrip().startswith(word):
            return ""
        left -= 1
        return when if left == 0 else ""

    return fault


FAULTS = [
    ("BEGIN", "before", 1),
    ("INSERT", "before", 1),
    ("INSERT", "before", 2),
    ("INSERT", "before", 3),  # the row of the table
    ("COMMIT", "before", 1),
    ("COMMIT", "after", 1),
]


@pytest.mark.parametrize(("word", "when", "nth"), FAULTS)
def test_a_round_that_meets_an_error_of_the_disk_fails_as_a_whole(
    folder: Path, disk: Disk, word: str, when: str, nth: int
) -> None:
    with Log(folder) as log:
        partition, other = log.partition(b"hello", ADDRESS), log.partition(b"other", ADDRESS)
        log.write([(partition, numbered(0, 5)), (other, numbered(0, 5))], {("t", "k"): 1})
        disk.fault = failing(word, when, nth)
        with pytest.raises(LogWriteError, match="disk I/O error"):
            log.write([(partition, numbered(5, 5)), (other, numbered(5, 5))], {("t", "k"): 2})
        disk.fault = lambda statement: ""
        assert log.read(partition, 0, count=99, max_bytes=EVERYTHING) == (0, numbered(0, 5))
        if when == "after":
            # It is on disk although it was reported as failed: writing on would store sequences twice.
            with pytest.raises(LogWriteError, match="open it again"):
                log.write([(partition, numbered(5, 5))])
        else:
            log.write([(partition, numbered(5, 5)), (other, numbered(5, 5))], {("t", "k"): 2})
    with Log(folder) as log:
        for topic in (b"hello", b"other"):
            found = log.partition(topic, ADDRESS)
            assert log.read(found, 0, count=99, max_bytes=EVERYTHING) == (0, numbered(0, 10))
        assert log.table("t").get("k") == 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["trim", "drop"])
def test_trimming_and_deleting_that_fail_change_nothing_here(
    folder: Path, disk: Disk, what: str, when: str
) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(0, 5))])
        disk.fault = failing("COMMIT", when)
        with pytest.raises(LogWriteError):
            log.trim(partition, before_sequence=3) if what == "trim" else log.drop(partition)
        disk.fault = lambda statement: ""
        assert log.read(partition, 0, count=99, max_bytes=EVERYTHING) == (0, numbered(0, 5))
    with Log(folder) as log:
        found = log.find(b"hello", ADDRESS)
        assert (found is None) == (what == "drop" and when == "after")
        if found is not None:
            assert found.first_sequence == (3 if (what, when) == ("trim", "after") else 0)


@pytest.mark.parametrize("when", ["before", "after"])
def test_deleting_values_that_fails_deletes_none_or_has_the_log_opened_again(
    folder: Path, disk: Disk, when: str
) -> None:
    with Log(folder) as log:
        log.write([], {("t", "a"): 1, ("t", "b"): 2})
        disk.fault = failing("COMMIT", when)
        with pytest.raises(LogWriteError, match="disk I/O error"):
            log.write([], {("t", "none"): None, ("t", "a"): None})
        disk.fault = lambda statement: ""
        if when == "after":
            with pytest.raises(LogWriteError, match="open it again"):
                log.write([], {("t", "b"): 3})
        else:
            log.write([], {("t", "b"): 3})
            assert log.table("t").get("a") == 1
    with Log(folder) as log:
        assert dict(log.table("t").items()) == ({"b": 2} if when == "after" else {"a": 1, "b": 3})


@pytest.mark.parametrize("word", ["PRAGMA wal_checkpoint", "PRAGMA incremental_vacuum"])
def test_tidying_up_that_fails_is_a_named_error_and_the_log_goes_on(
    folder: Path, disk: Disk, word: str
) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for first in range(0, 250, 5):
            log.write([(partition, numbered(first, 5, 20_000))])
        log.trim(partition, before_sequence=245)
        disk.fault = failing(word, "before")
        with pytest.raises(LogWriteError, match="disk I/O error"):
            log.space.tidy()
        disk.fault = lambda statement: ""
        log.space.tidy()
        assert log.read(partition, 0, count=1, max_bytes=1)[0] == 245


def test_an_error_of_the_disk_while_reading_is_not_damage(folder: Path, disk: Disk) -> None:
    with Log(folder, tail_bytes=0) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(0, 5))])
        disk.fault = failing("SELECT", "before")
        with pytest.raises(LogReadError, match="disk I/O error"):
            log.read(partition, 0, count=1, max_bytes=1)
        assert log.read(partition, 0, count=1, max_bytes=1) == (0, numbered(0, 1))


FILLING = """
import resource, signal, sys
from dafka.log import Log, LogWriteError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Log(sys.argv[1])
partition = log.partition(b"hello", b"A" * 32)
log.write([(partition, [b"0" * 1000])])
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
failed = 0
while failed < 3:
    first = partition.next_sequence
    try:
        contents = [b"%d" % n * 200 for n in range(first, first + 20)]
        log.write([(partition, contents)], {("t", "next"): first + 20})
    except LogWriteError as error:
        failed += 1
        assert str(error)
        assert partition.next_sequence == first
        assert log.read(partition, first - 1, count=5, max_bytes=2**40)[1] == [b"%d" % (first - 1) * 200]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.write([(partition, [b"room again"])])
print(partition.next_sequence)
log.close()
"""


def test_a_full_disk_refuses_rounds_and_acknowledged_records_stay(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = forking.run(
        [sys.executable, "-c", FILLING, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    acknowledged = int(ended.stdout)
    with Log(folder) as log:
        partition = log.partition(b"hello", b"A" * 32)
        assert partition.next_sequence == acknowledged
        first, contents = log.read(partition, 1, count=EVERYTHING, max_bytes=EVERYTHING)
        assert contents[:-1] == [b"%d" % sequence * 200 for sequence in range(1, acknowledged - 1)]
        assert (first, contents[-1]) == (1, b"room again")
        assert log.table("t").get("next") == acknowledged - 1
    assert not [damage for seen in verify(folder) for damage in seen.damages]


def small_disk(folder: Path, capacity: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Let the system say that the folder has a disk of its own, of so many bytes; returns what is free."""

    def free() -> int:
        return max(0, capacity - sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))

    monkeypatch.setattr(
        os, "statvfs", lambda path: SimpleNamespace(f_bavail=free(), f_blocks=capacity, f_frsize=1)
    )
    return free


@pytest.mark.parametrize("size", [500, 15_000, 20_000, 24_000, 200_000])
def test_the_last_space_on_a_disk_is_kept_for_deleting(
    folder: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Or nothing could be deleted when the disk is full: that takes space before it gives any back."""
    capacity, share = 8_000_000, 8_000_000 // 16
    free = small_disk(folder, capacity, monkeypatch)
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        contents = numbered(0, 20, size // 20)
        with pytest.raises(LogWriteError, match="No space left"):
            for _ in range(100_000):
                log.write([(partition, contents)])
        full = partition.bytes
        assert full > 0.2 * capacity
        assert free() > share
        log.write([], {("t", "k"): 1})
        log.trim(partition, before_sequence=partition.next_sequence // 2)
        while log.space.garbage_bytes:
            log.write([], collect_bytes=1_000_000)
            assert free() > share / 2
        log.space.checkpoint()
        while partition.bytes < 0.9 * full:
            log.write([(partition, contents)])


def test_large_values_leave_the_last_space_too_where_the_database_has_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get files of their own: neither the free pages of the database nor a long WAL gives them any."""
    capacity, share = 12_000_000, 12_000_000 // 16
    free = small_disk(folder, capacity, monkeypatch)
    with Log(folder) as log:
        small, large = log.partition(b"small", ADDRESS), log.partition(b"large", ADDRESS)
        for _ in range(20):
            log.write([(small, numbered(0, 20, 5000))])
        log.trim(small, before_sequence=small.next_sequence)
        while log.space.garbage_bytes:
            log.write([], collect_bytes=1_000_000)
        log.space.checkpoint()
        assert (folder / "cache.db-wal").stat().st_size > 1_000_000
        with pytest.raises(LogWriteError, match="No space left"):
            for _ in range(100):
                log.write([(large, [bytes(200_000)])])
        assert large.bytes > 0.4 * capacity
        assert free() > share


def test_writers_that_are_killed_on_a_full_disk_leave_a_good_log(folder: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    ended = subprocess.run(
        [sys.executable, killed_writer.__file__, str(folder), "1", "process"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=limit,
        capture_output=True,
        check=False,
    )
    assert b"LogWriteError" in ended.stderr
    assert not [damage for seen in verify(folder) for damage in seen.damages]
