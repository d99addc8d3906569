"""Merging: small neighbours become one chunk, at a bounded price, and nothing of it shows in what is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, EVERYTHING, batch, chunk_rows, numbered

from dafka.log import AppendError, Log, LogPartition
from dafka.log.limits import MERGE_COUNT


def sizes(folder: Path) -> list[int]:
    return [len(value) for _, _, value in chunk_rows(folder)]


def everything(log: Log, partition: LogPartition) -> list[bytes]:
    return log.read(partition, 0, count=EVERYTHING, max_bytes=EVERYTHING)[1]


@pytest.mark.parametrize("size", [0, 100, 900, 3_000])
@pytest.mark.parametrize("tail_bytes", [0, 8 * 1024 * 1024])
def test_rounds_of_single_messages_leave_few_chunks(folder: Path, size: int, tail_bytes: int) -> None:
    with Log(folder, tail_bytes=tail_bytes) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(1000):
            log.write([(partition, numbered(sequence, 1, size))])
        assert len(sizes(folder)) < 80
        assert max(sizes(folder)) < 200_000
        assert everything(log, partition) == numbered(0, 1000, size)
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert everything(log, partition) == numbered(0, 1000, size)
        assert partition.bytes == sum(sizes(folder))


def test_each_message_keeps_its_timestamp(folder: Path) -> None:
    now = [0]
    with Log(folder, clock=lambda: now[0] / 1000) as log:
        for sequence in range(300):
            now[0] = sequence // 3
            log.write([(log.partition(b"hello", ADDRESS), numbered(sequence, 1))])
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        rows = log.read_offsets(partition, 17, max_bytes=EVERYTHING)
        assert [(offset, time) for offset, time, _ in rows] == [(n, n // 3) for n in range(17, 300)]
        assert log.offset_for_timestamp(partition, 50) == (150, 50)


def test_single_batches_keep_their_offsets_over_gaps(folder: Path) -> None:
    batches = [batch(3 * n, n, n + 1) for n in range(100)]
    with Log(folder) as log:
        for content in batches:
            log.write([(log.partition(b"hello", ADDRESS), [content])])
    assert len(sizes(folder)) < 20
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        rows = log.read_offsets(partition, 0, max_bytes=EVERYTHING)
        assert rows == [(3 * n, n + 1, batches[n]) for n in range(100)]
        assert log.read_offsets(partition, 152, max_bytes=1) == [(153, 52, batches[51])]


def test_a_gap_in_the_sequences_is_not_merged_over(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in [*range(10), *range(20, 60)]:
            log.write([(partition, numbered(sequence, 1), sequence)])
        assert log.read(partition, 0, count=99, max_bytes=EVERYTHING) == (0, numbered(0, 10))
        assert log.read(partition, 10, count=99, max_bytes=EVERYTHING) == (20, numbered(20, 40))


def test_large_chunks_are_never_rewritten(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(3 * MERGE_COUNT):
            log.write([(partition, numbered(sequence, 1, 16_000))])
    assert len(sizes(folder)) == 3 * MERGE_COUNT


def test_many_small_appends_to_a_partition_in_one_round_become_one_chunk(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(n, 1)) for n in range(5)])
        assert len(sizes(folder)) == 5
        log.write([(partition, numbered(n, 1)) for n in range(5, 50)])
        assert len(sizes(folder)) < MERGE_COUNT
        assert everything(log, partition) == numbered(0, 50)


def test_the_bytes_rewritten_for_each_message_are_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = [0]
    with Log(folder) as log:
        commit = log._storage.commit

        def count(deleted: list[bytes], stored: list[tuple[bytes, bytes]]) -> None:
            written[0] += sum(len(value) for _, value in stored)
            commit(deleted, stored)

        monkeypatch.setattr(log._storage, "commit", count)
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(2000):
            log.write([(partition, numbered(sequence, 1, 100))])
        assert written[0] < 4 * partition.bytes


def test_a_failed_round_leaves_the_small_chunks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(MERGE_COUNT - 1):
            log.write([(partition, numbered(sequence, 1))])
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(log._storage._cache, "put", interrupt)
            log.write([(partition, numbered(MERGE_COUNT - 1, 1))])
        assert everything(log, partition) == numbered(0, MERGE_COUNT - 1)
        assert len(sizes(folder)) == MERGE_COUNT - 1
        log.write([(partition, numbered(MERGE_COUNT - 1, 1))])
        assert everything(log, partition) == numbered(0, MERGE_COUNT)
        assert len(sizes(folder)) == 1


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_record_batches_that_the_caller_has_checked_are_not_compared_with_their_checksums_again(
    folder: Path,
) -> None:
    damaged = batch(1, 2)[:-1] + b"!"
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [batch(0, 1)])])
        with pytest.raises(AppendError, match="not a record batch"):
            log.begin([(partition, [damaged])])
        with pytest.raises(AppendError, match="not a record batch"):
            log.begin([(partition, [damaged[:-1]])], checked={partition})
        round_ = log.begin([(partition, [damaged])], checked={partition})
        round_.finish()
        assert partition.next_sequence == 1
