"""Blocks of indexes in a log's folder: written, read, deleted, found again."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from log.messages import ADDRESS, EVERYTHING, batch, chunk_rows, database, numbered

from dafka.log import (
    DamagedError,
    Log,
    LogPartition,
    LogReadError,
    LogWriteError,
    StoredBatches,
    Trim,
    compact,
)
from dafka.log.chunk import ChunkKey
from dafka.log.index import ChunkIndex
from dafka.log.limits import FILE_BYTES
from dafka.log.verify import verify

BLOCK = 4
LARGE = 9000  # octets of a message that stays alone in its value


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.log.index.BLOCK_CHUNKS", BLOCK)


def blocks(folder: Path) -> list[bytes]:
    with database(folder) as rows:
        return [key for (key,) in rows.execute("SELECT key FROM Cache WHERE substr(key, 1, 1) = X'69'")]


def fill(log: Log, count: int, topic: bytes = b"hello") -> LogPartition:
    partition = log.partition(topic, ADDRESS)
    for first in range(partition.next_sequence, partition.next_sequence + count):
        log.write([(partition, numbered(first, 1, LARGE))])
    return partition


def damages(folder: Path) -> list[tuple[str, str]]:
    return list(verify(folder))[-1].damages


def everything(log: Log, partition: LogPartition) -> list[bytes]:
    return log.read(partition, 0, count=10**6, max_bytes=EVERYTHING)[1]


def test_opening_reads_the_keys_of_chunks_that_are_in_no_block(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(folder) as log:
        fill(log, 100)
    assert len(blocks(folder)) == 23
    taken: list[int] = []
    extend = ChunkIndex.extend_packed

    def counted(self: ChunkIndex, keys: list[bytes]) -> None:
        taken.append(len(keys))
        extend(self, keys)

    monkeypatch.setattr(ChunkIndex, "extend_packed", counted)
    log = Log(folder)
    assert sum(taken) == 2 * BLOCK
    with log:
        partition = log.partition(b"hello", ADDRESS)
        assert (partition.first_sequence, partition.next_sequence) == (0, 100)
        assert log.read(partition, 50, count=2, max_bytes=EVERYTHING) == (50, numbered(50, 2, LARGE))
        assert sum(taken) == 3 * BLOCK
        assert everything(log, partition) == numbered(0, 100, LARGE)
    assert not damages(folder)


@pytest.mark.parametrize(
    "harm", ["UPDATE Cache SET value = X'00' WHERE key = ?", "UPDATE Cache SET value = 5 WHERE key = ?"]
)
def test_a_block_that_is_damaged_is_made_of_the_keys_of_its_chunks(
    folder: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Log(folder) as log:
        fill(log, 20)
    with database(folder) as rows:
        rows.execute(harm, (blocks(folder)[1],))
    with caplog.at_level(logging.WARNING), Log(folder) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) == numbered(0, 20, LARGE)
    assert "the index of sequences 4 to 7" in caplog.text
    assert [place for place, _ in damages(folder)] == [
        f"the index of sequences 4 to 7 of topic b'hello' of {ADDRESS!r}"
    ]


def test_chunks_that_are_gone_with_their_block_damaged_are_told(folder: Path) -> None:
    with Log(folder) as log:
        fill(log, 20)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = X'00' WHERE key = ?", (blocks(folder)[1],))
        rows.execute("DELETE FROM Cache WHERE key = ?", (chunk_rows(folder)[5][1],))
    with Log(folder) as log, pytest.raises(DamagedError, match="the index of sequences 4 to 7"):
        log.read(log.partition(b"hello", ADDRESS), 6, count=1, max_bytes=EVERYTHING)


def test_verify_tells_a_block_that_does_not_fit_the_chunks(folder: Path) -> None:
    with Log(folder) as log:
        fill(log, 20)
    with database(folder) as rows:
        rows.execute("DELETE FROM Cache WHERE key = ?", (chunk_rows(folder)[5][1],))
    assert [cause for _, cause in damages(folder)] == ["its values are not those that are there"]


def test_blocks_without_chunks_behind_them_or_a_name_are_damage(folder: Path) -> None:
    with Log(folder) as log:
        fill(log, 20)
    with database(folder) as rows:
        for _, key, _ in chunk_rows(folder)[12:]:
            rows.execute("DELETE FROM Cache WHERE key = ?", (key,))
    with pytest.raises(DamagedError, match="it has an index and no records"):
        Log(folder)


def test_a_deleted_partition_goes_with_its_blocks(folder: Path) -> None:
    with Log(folder) as log:
        log.drop(fill(log, 30))
        fill(log, 9, b"other")
        assert log.space.garbage_bytes > 30 * LARGE
        log.write([], collect_bytes=20 * LARGE)
    with Log(folder) as log:  # some of it is left
        assert 0 < log.space.garbage_bytes < 30 * LARGE
        log.space.tidy()
        assert log.space.garbage_bytes == 0
        assert everything(log, log.partition(b"other", ADDRESS)) == numbered(0, 9, LARGE)
    assert len(chunk_rows(folder)) == 9
    assert len(blocks(folder)) == 1


def test_a_read_while_a_round_deletes_blocks_finds_what_it_found(folder: Path) -> None:
    with Log(folder) as log:
        partition = fill(log, 40)
        log._blocks._rows.clear()
        round_ = log.begin([], trims=[Trim(partition, 21)])
        round_.commit()
        log._blocks._rows.clear()
        assert log.read(partition, 17, count=1, max_bytes=EVERYTHING) == (17, numbered(17, 1, LARGE))
        round_.finish()
        assert partition.first_sequence == 21
        assert everything(log, partition) == numbered(21, 19, LARGE)
    assert not damages(folder)


def stored(folder: Path) -> list[ChunkKey]:
    return [ChunkKey.unpack(key) for _, key, _ in chunk_rows(folder)]


@pytest.mark.parametrize("seed", range(12))
def test_after_random_operations_the_index_matches_the_folder(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    log = Log(folder)
    try:
        for _ in range(60):
            partition = log.partition(b"hello", ADDRESS)
            what = chance.random()
            if what < 0.6 or not partition.next_offset:
                padding = chance.choice((10, LARGE))
                keys = [(b"%d" % chance.randrange(9), bytes(padding)) for _ in range(chance.randint(1, 3))]
                content = _batch(partition.next_offset, keys)
                log.write([(partition, [content])])
            elif what < 0.7:
                place = chance.randint(partition.first_offset, partition.next_offset)
                log.trim(partition, before_offset=place)
            elif what < 0.8:
                for _ in compact(log, partition):
                    pass
            elif what < 0.83:
                log.drop(partition)
            elif what < 0.9:
                log.write([], collect_bytes=3 * LARGE)
            else:
                log.close()
                assert not damages(folder)
                log = Log(folder)
            partition = log.partition(b"hello", ADDRESS)
            expected = list(partition.index)
            content = [one[2] for one in log.read_offsets(partition, 0, max_bytes=EVERYTHING)]
            if chance.random() < 0.2:
                log.close()
                there = [key for key in stored(folder) if key.partition == partition.number]
                first = expected[0].first if expected else 0
                assert [key for key in there if key.first >= first] == expected
                log = Log(folder)
                partition = log.partition(b"hello", ADDRESS)
                assert list(partition.index) == expected
                assert [one[2] for one in log.read_offsets(partition, 0, max_bytes=EVERYTHING)] == content
    finally:
        log.close()
    assert not damages(folder)


def _batch(base: int, pairs: list[tuple[bytes, bytes]]) -> bytes:
    from dafka.protocol.batch_writer import encode_batch

    return encode_batch([(base + n, *pair, ()) for n, pair in enumerate(pairs)], base_offset=base)


def test_times_in_sealed_chunks_are_found(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for number in range(30):
            times = [1000 * number] * 400  # large enough to stay alone
            log.write([(partition, [batch(400 * number, *times)])])
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert partition.index.sealed_end > 20
        for number in (0, 7, 15, 29):
            found = [place for place in log.search_timestamp(partition, 1000 * number - 1) if place]
            assert found[0][0] == 400 * number


def test_a_block_that_cannot_be_read_does_not_stop_appending(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error, which somebody keeps, has kept a view of the index too: the next round was committed, and
    could not be noted, so that the one after it stored the same sequence again."""

    def fails(*_: object) -> None:
        raise LogReadError(str(folder), "disk I/O error")

    with Log(folder) as log:
        partition = fill(log, 20)
        with monkeypatch.context() as patched:
            patched.setattr(log._storage, "get", fails)
            with pytest.raises(LogReadError) as kept:
                log.read(partition, 5, count=1, max_bytes=EVERYTHING)
        fill(log, 3)
        assert kept.value.path == str(folder)
        assert everything(log, partition) == numbered(0, 23, LARGE)
    with Log(folder) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) == numbered(0, 23, LARGE)


def test_files_that_are_to_be_sent_do_not_stay_open_when_the_next_block_cannot_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for base in range(20):
            log.write([(partition, [_batch(base, [(b"", bytes(FILE_BYTES))])])])
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert partition.index[0].first == 0  # its block is in memory
        read = log._blocks._read

        def fails(row: bytes) -> None:
            raise LogReadError(str(folder), "disk I/O error")

        monkeypatch.setattr(log._blocks, "_read", fails)
        runs, behind = log.read_stored(partition, 0, end=20, max_bytes=EVERYTHING)
        assert (len(runs), behind) == (BLOCK, BLOCK)
        monkeypatch.setattr(log._blocks, "_read", read)
        for run in runs:
            assert isinstance(run, StoredBatches)
            run.close()
    assert StoredBatches.opened == 0


def test_blocks_that_are_deleted_leave_memory(folder: Path) -> None:
    with Log(folder) as log:
        partition = fill(log, 40)
        everything(log, partition)
        log.trim(partition, before_sequence=21)
        assert len(log._blocks._rows) == 2


@pytest.mark.parametrize("seed", range(4))
def test_rounds_and_reads_that_fail_lose_nothing_and_bring_nothing_back(folder: Path, seed: int) -> None:
    """A commit fails before anything is on the disk, or after all is; somebody keeps errors of reading."""
    chance = random.Random(seed)
    kept: list[LogReadError] = []
    messages: list[tuple[int, bytes]] = []
    floor = 0
    log = Log(folder)
    try:
        for _ in range(120):
            partition = log.partition(b"hello", ADDRESS)
            base = messages[-1][0] + 1 if messages else 0
            content = _batch(base, [(b"", bytes(chance.choice((10, LARGE, LARGE))))])
            trims = []
            if base and chance.random() < 0.2:
                trims = [Trim(partition, before_offset=chance.randint(floor, min(floor + 4, base)))]
            fails = chance.choice(("never",) * 4 + ("before", "after"))
            done = _write(log, [(partition, [content])], trims, fails)
            if done:
                messages.append((base, content))
                floor = trims[0].before_offset if trims else floor
            if chance.random() < 0.1:
                kept += _errors_of_reading(log, partition)
            if (done and fails == "after") or chance.random() < 0.05:
                log.close()
                assert not damages(folder)
                log = Log(folder)
                partition = log.partition(b"hello", ADDRESS)
            there = [(base, content) for base, content in messages if base >= floor]
            found = log.read_offsets(partition, 0, max_bytes=EVERYTHING)
            assert [(base, content) for base, _, content in found] == there
            assert partition.index.bytes == sum(key.size for key in partition.index)
    finally:
        log.close()
    assert kept
    assert not damages(folder)


def _write(log: Log, appends: list[tuple[LogPartition, list[bytes]]], trims: list[Trim], fails: str) -> bool:
    """Whether it is on the disk."""
    commit = log._storage.commit

    def failing(deleted: Any, stored: Any) -> None:
        if fails != "before":
            commit(deleted, stored)
        if fails != "never":
            raise LogWriteError(log.path, "disk I/O error")

    with patch.object(log._storage, "commit", failing):
        if fails == "never":
            log.write(appends, trims=trims, collect_bytes=2 * LARGE)
        else:
            with pytest.raises(LogWriteError):
                log.write(appends, trims=trims, collect_bytes=2 * LARGE)
    return fails != "before"


def _errors_of_reading(log: Log, partition: LogPartition) -> list[LogReadError]:
    errors = []
    log._blocks._rows.clear()
    with patch.object(log._storage, "get", side_effect=LogReadError(log.path, "disk I/O error")):
        for offset in range(partition.next_offset):
            try:
                log.read_offsets(partition, offset, max_bytes=1)
            except LogReadError as error:
                errors.append(error)
    return errors
