"""The space that a log takes on the disk, and how it is given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, EVERYTHING, chunk_rows, numbered

from dafka.log import Log, LogClosedError, LogPartition
from dafka.log.limits import CHECKPOINT_BYTES, FREE_BYTES

LARGE = 10_000  # keeps chunks from being merged


def filled(log: Log, topic: bytes = b"hello", chunks: int = 4, size: int = LARGE) -> LogPartition:
    """Chunks of five raw messages."""
    partition = log.partition(topic, ADDRESS)
    for first in range(0, 5 * chunks, 5):
        log.write([(partition, numbered(first, 5, size))])
    return partition


def sequences(log: Log, partition: LogPartition) -> tuple[int, int]:
    first, contents = log.read(partition, 0, count=EVERYTHING, max_bytes=EVERYTHING)
    assert [content.rstrip(b"\0") for content in contents] == numbered(first, len(contents))
    return first, first + len(contents)


def test_trimmed_values_are_deleted_from_the_disk_in_small_rounds(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log, chunks=60, size=20_000)
        log.space.checkpoint()
        before = log.space.disk_bytes
        log.trim(partition, before_sequence=280)
        assert log.space.garbage_bytes > 5_000_000
        rows = len(chunk_rows(folder))
        log.write([], collect_bytes=1_000_000)
        assert rows - 11 <= len(chunk_rows(folder)) < rows
    with Log(folder) as log:  # the rest of the work is found again
        assert log.space.garbage_bytes > 4_000_000
        log.space.tidy()
        assert log.space.garbage_bytes == 0
        assert log.space.disk_bytes < before / 2
        assert sequences(log, log.partition(b"hello", ADDRESS)) == (280, 300)


def test_garbage_without_values_counts_as_something_to_delete(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log, chunks=1)
        log.drop(partition)
        while log.space.garbage_bytes > 1:
            log.write([], collect_bytes=1)
        assert log.space.garbage_bytes == 1  # the row that says that the partition was deleted
        log.write([], collect_bytes=1)
        assert log.space.garbage_bytes == 0


def test_free_space_is_given_back_step_by_step_down_to_a_reserve(folder: Path) -> None:
    with Log(folder) as log:
        log.drop(filled(log, chunks=80))
        log.write([], collect_bytes=100_000_000)
        log.space.checkpoint()
        spare = log.space.spare_bytes
        assert spare > 2_000_000
        log.space.vacuum(1_000_000)
        assert spare - 1_100_000 < log.space.spare_bytes < spare - 900_000
        while log.space.spare_bytes:
            log.space.vacuum()
        assert log._storage.free_bytes()[0] >= FREE_BYTES - 4096
        size = log.space.disk_bytes
        log.space.vacuum()
        assert log.space.disk_bytes == size


def test_a_checkpoint_is_due_when_enough_was_written_and_truncating_gives_the_wal_back(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log, chunks=1)
        log.space.checkpoint(truncate=True)
        assert (log.space.wal_bytes, log.space.checkpoint_due) == (0, False)
        while not log.space.checkpoint_due:
            round_ = log.begin([(partition, numbered(partition.next_sequence, 100, LARGE))])
            round_.commit()
            round_.finish()
        assert log.space.wal_bytes > CHECKPOINT_BYTES
        assert log.space.checkpoint()
        assert (log.space.wal_bytes, log.space.checkpoint_due) == (0, False)
        assert log.space.wal_file_bytes > 0  # it is used again
        log.space.checkpoint(truncate=True)
        assert log.space.wal_file_bytes == 0


def test_the_space_of_a_closed_log_is_not_known(folder: Path) -> None:
    log = Log(folder)
    log.close()
    for ask in (lambda: log.space.disk_bytes, lambda: log.space.spare_bytes, log.space.checkpoint):
        with pytest.raises(LogClosedError):
            ask()
