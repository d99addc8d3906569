"""The newest record of each key stays, at its offset."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from counting import steps
from log.compacting import DAY, TAIL, Pair, kept, run, write
from log.messages import ADDRESS, EVERYTHING, chunk_rows, database

from dafka.log import (
    Log,
    LogPartition,
    LogReadError,
    Trim,
    compact,
    dirty_bytes,
    dirty_since,
    tombstones_due,
)
from dafka.log.chunk import Chunk, ChunkKey
from dafka.log.newest import NewestOffsets
from dafka.log.verify import verify
from dafka.protocol.batch import (
    BatchError,
    check_batch,
    read_header,
    with_offset,
)
from dafka.protocol.batch_control import commits, encode_marker
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch


def test_twice_as_many_keys_are_twice_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.log.compaction.NewestOffsets", partial(NewestOffsets, names=100))
    work = []
    for number in range(4):
        batches = [
            [(b"key %d" % (begin + place), b"1") for place in range(250)]
            for begin in range(0, 1000 << number, 250)
        ]
        with Log(folder / str(number)) as log:
            work.append(steps(run, log, write(log, *batches, TAIL)))
    assert all(more < 2.1 * less for less, more in pairwise(work)), work


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("max_keys", [1, 2, 100])
def test_the_newest_record_of_each_key_stays_with_its_offset(
    folder: Path, compression: str | None, max_keys: int
) -> None:
    with Log(folder) as log:
        partition = write(
            log,
            [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")],
            [(b"a", b"2"), (b"a", b"3")],
            [(b"c", b"2"), (b"a", b"4")],
            TAIL,
            compression=compression,
        )
        before = partition.first_sequence, partition.next_sequence, partition.next_offset
        run(log, partition, max_keys=max_keys)
        expected = [(1, b"b", b"1"), (5, b"c", b"2"), (6, b"a", b"4"), (7, b"tail", b"t")]
        assert kept(log, partition) == expected
        assert (partition.first_sequence, partition.next_sequence, partition.next_offset) == before
        assert len(log.read(partition, 0, count=9, max_bytes=EVERYTHING)[1]) == 4
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        assert kept(log, partition) == expected
        assert dirty_bytes(log, partition)[0] == 0
        write(log, [(b"b", b"5")], TAIL)
        assert dirty_bytes(log, partition)[0] > 0
        run(log, partition)
        assert [row[0] for row in kept(log, partition)] == [5, 6, 8, 9] or [
            row[0] for row in kept(log, partition)
        ] == [5, 6, 7, 8, 9]


def test_tombstones_go_when_they_have_been_compacted_for_long_enough(folder: Path) -> None:
    with Log(folder) as log:
        partition = write(log, [(b"a", b"1"), (b"b", b"1")], [(b"a", None)], TAIL)
        run(log, partition, now_ms=0)
        assert kept(log, partition) == [(1, b"b", b"1"), (2, b"a", None), (3, b"tail", b"t")]
        run(log, partition, now_ms=DAY - 1)
        assert (2, b"a", None) in kept(log, partition)
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        run(log, partition, now_ms=DAY)
        assert kept(log, partition) == [(1, b"b", b"1"), (3, b"tail", b"t")]


def test_it_can_be_stopped_anywhere_and_goes_on_after_reopening(folder: Path) -> None:
    batches: list[list[Pair]] = [[(b"%d" % (n % 7), b"%d" % n), (b"x", b"%d" % n)] for n in range(40)]
    with Log(folder) as log:
        write(log, *batches, TAIL, padding=30_000)
    step = 0
    while step is not None:
        with Log(folder) as log:
            partition = log.partition(b"table", ADDRESS)
            steps = compact(log, partition, max_keys=4)
            for _ in range(step):
                if next(steps, None) is None:
                    break
            else:
                step += 7
                continue
            assert [row[0] for row in kept(log, partition)] == [*range(66, 79, 2), 79, 80]
            break


def test_appends_retention_and_deletion_may_come_between_any_two_steps(folder: Path) -> None:
    with Log(folder) as log:
        partition = write(log, *[[(b"a", b"%d" % n)] for n in range(200)], padding=0)
        for number, _ in enumerate(compact(log, partition, max_keys=2)):
            write(log, [(b"b", b"%d" % number)], padding=0)
            log.write([], trims=[Trim(partition, before_sequence=3 * number)], collect_bytes=100)
        run(log, partition)
        newest = kept(log, partition)
        assert [row[1] for row in newest].count(b"a") == 1
        for number, _ in enumerate(compact(log, write(log, TAIL), max_keys=1)):
            if number == 1:
                log.drop(partition)
        assert partition.dropped


def test_a_damaged_value_stays_and_the_others_are_compacted(folder: Path) -> None:
    with Log(folder) as log:
        write(log, *[[(b"a", b"%d" % n)] for n in range(4)], TAIL)
    row = chunk_rows(folder)[1]
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (row[2][:-1] + b"?", row[0]))
    with Log(folder, on_damage="skip") as log:
        partition = log.partition(b"table", ADDRESS)
        run(log, partition)
        assert len(chunk_rows(folder)) < 5
        assert partition.next_sequence == 5
        offsets = [row[0] for row in log.read_offsets(partition, 2, max_bytes=EVERYTHING)]
        assert offsets == [2, 3, 4]


def test_records_that_become_readable_again_replace_older_ones_of_their_keys(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a tombstone in it would go some day, and the older record of its key would be there again."""
    with Log(folder) as log:
        partition = write(log, [(b"a", b"1")])
        write(log, [(b"a", None)], compression="gzip")
        write(log, TAIL)

        def without_codec(content: bytes) -> Any:
            if read_header(content).compression:
                raise BatchError("codec", "it is not installed")
            return decode_batch(content)

        with monkeypatch.context() as patch:
            patch.setattr("dafka.log.filtering.decode_batch", without_codec)
            run(log, partition, now_ms=1000)
        assert [row[:2] for row in kept(log, partition)] == [(0, b"a"), (1, b"a"), (2, b"tail")]
        write(log, [(b"b", b"1")])
        run(log, partition, now_ms=2000)
        assert [row[0] for row in kept(log, partition)] == [1, 2, 3]
        run(log, partition, now_ms=2049, delete_retention_ms=50)
        assert [row[0] for row in kept(log, partition)] == [1, 2, 3]
        run(log, partition, now_ms=2050, delete_retention_ms=50)
        assert [row[0] for row in kept(log, partition)] == [2, 3]


def test_a_disk_that_fails_ends_it_and_the_next_run_begins_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(folder) as log:
        partition = write(log, [(b"a", b"1")], [(b"a", None)], TAIL)
        load = log.load

        def failing(partition: LogPartition, key: ChunkKey) -> Chunk:
            if key.first == 1:
                raise LogReadError(log.path, "too many open files")
            return load(partition, key)

        with monkeypatch.context() as patch:
            patch.setattr(log, "load", failing)
            with pytest.raises(LogReadError, match="open files"):
                run(log, partition, now_ms=1000)
        run(log, partition, now_ms=2000)
        assert [row[0] for row in kept(log, partition)] == [1, 2]
        run(log, partition, now_ms=2050, delete_retention_ms=50)
        assert [row[0] for row in kept(log, partition)] == [2]


def messages(log: Log, partition: LogPartition) -> list[tuple[int, int]]:
    """(sequence, records) of all messages that are there."""
    found = []
    sequence = 0
    while True:
        first, contents = log.read(partition, sequence, count=9999, max_bytes=EVERYTHING)
        if not contents:
            return found
        found += [(n, check_batch(content).count) for n, content in enumerate(contents, first)]
        sequence = first + len(contents)


def test_the_first_of_very_many_batches_without_records_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(partition: LogPartition) -> list[int]:
        firsts = [partition.first_sequence, partition.first_offset]
        return [*firsts, partition.next_sequence, partition.next_offset]

    monkeypatch.setattr("dafka.log.compaction.COMPACTION_GAP", 3)
    keys = b"a", b"a", b"b", b"a", b"a", b"a", b"c", b"a", b"a", b"a", b"a", b"a", b"d"
    with Log(folder) as log:
        partition = write(log, *[[(key, b"1")] for key in keys], padding=0)
        write(log, TAIL)
        before = [row for row in kept(log, partition) if row[0] in (2, 6, 11, 12, 13)]
        was = place(partition)
        run(log, partition)
    for _ in range(2):
        with Log(folder) as log:
            partition = log.partition(b"table", ADDRESS)
            left = [sequence for sequence, _ in messages(log, partition)]
            assert left == [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13]
            assert kept(log, partition) == before
            assert place(partition) == was
            assert log.read_offsets(partition, 9, max_bytes=1)[0][0] == 11
            assert log.offset_to_sequence(partition, 9) == 11
            assert log.offset_for_timestamp(partition, 8) == (11, 11)
            run(log, partition)
    *_, seen = verify(folder)
    assert seen.damages == []


@pytest.mark.parametrize("trimmed", [0, 2, 4])
def test_the_first_message_of_a_partition_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, trimmed: int
) -> None:
    monkeypatch.setattr("dafka.log.compaction.COMPACTION_GAP", 3)
    with Log(folder) as log:
        partition = write(log, *[[(b"a", b"1")]] * 9, padding=0)
        write(log, [(b"a", b"2")])
        write(log, TAIL)
        log.trim(partition, before_sequence=trimmed)
        run(log, partition)
        assert messages(log, partition) == [(trimmed, 0), (9, 1), (10, 1)]
        assert (partition.first_sequence, partition.first_offset) == (trimmed, trimmed)


def test_markers_of_commits_go_where_there_are_many_and_those_of_aborts_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dafka.log.compaction.COMPACTION_GAP", 3)
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        for base in range(0, 30, 2):
            content = encode_batch(
                [(base, b"a", b"1", ())], base_offset=base, producer_id=7, producer_epoch=0
            )
            marker = with_offset(encode_marker(base, 7, 0, commit=base != 18), base + 1)
            log.write([(partition, [content, marker])])
        write(log, [(b"a", bytes(9000))])
        write(log, TAIL)
        run(log, partition)
        left = [sequence for sequence, _ in messages(log, partition)]
        assert left == [0, 19, 20, 30, 31]
        assert not commits(log.read(partition, 19, count=1, max_bytes=1)[1][0])


def test_raw_messages_are_left_alone(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"raw", ADDRESS)
        log.write([(partition, [b"a", b"b"])])
        assert list(compact(log, partition)) == []
        assert dirty_bytes(log, partition) == (0, 0)


def test_a_gap_before_the_tail_is_clean(folder: Path) -> None:
    with Log(folder) as log:
        partition = write(log, [(b"a", b"1"), (b"a", b"2")])
        last = encode_batch([(9, b"t", b"t", ())], base_offset=9)
        log.write([(partition, [last], 7)])
        run(log, partition)
        run(log, partition)
        assert [row[0] for row in kept(log, partition)] == [1, 9]


def test_values_that_are_too_young_or_not_decided_are_left_alone(folder: Path) -> None:
    with Log(folder) as log:
        partition = write(log, *[[(b"a", b"%d" % number)] for number in range(5)])  # timestamps 0 to 4
        young = dirty_bytes(log, partition, min_lag_ms=10, now_ms=12)
        assert young == dirty_bytes(log, partition, end_offset=2)
        assert 0 < young[0] < dirty_bytes(log, partition)[0]
        assert dirty_since(log, partition, min_lag_ms=10, now_ms=9) is None
        assert dirty_since(log, partition, end_offset=2) == 0
        run(log, partition, min_lag_ms=10, now_ms=12)
        assert [offset for offset, _, _ in kept(log, partition)] == [1, 2, 3, 4]
        assert dirty_since(log, partition) == 2
        run(log, partition, end_offset=3)
        assert [offset for offset, _, _ in kept(log, partition)] == [2, 3, 4]
        run(log, partition)
        assert [offset for offset, _, _ in kept(log, partition)] == [3, 4]


@pytest.mark.parametrize("options", [{"end_offset": 10}, {"min_lag_ms": 100, "now_ms": 110}])
@pytest.mark.parametrize("after", range(1, 21))
def test_records_that_are_merged_into_a_value_behind_the_end_replace_none(
    folder: Path, options: dict[str, int], after: int
) -> None:
    """It is too young, or its transaction may be aborted later."""
    with Log(folder) as log:
        partition = write(log, *[[(b"a", b"%d" % n)] for n in range(13)], padding=0)
        steps = compact(log, partition, **options)
        for _ in range(after):
            next(steps)
        before = len(partition.index)
        write(log, *[[(b"a", b"%d" % n)] for n in range(13, 20)], padding=0)
        assert len(partition.index) < before
        for _ in steps:
            pass
        assert [offset for offset, _, _ in kept(log, partition)] == list(range(9, 20))
        assert dirty_bytes(log, partition, **options)[0] == 0
        write(log, TAIL)
        run(log, partition)
        assert [offset for offset, _, _ in kept(log, partition)] == [19, 20]


def test_tombstones_in_a_value_of_two_runs_go_when_each_has_stayed_for_long_enough(folder: Path) -> None:
    with Log(folder) as log:
        write(log, *[[(b"%d" % n, None)] for n in range(10)], TAIL, padding=0)
        run(log, log.partition(b"table", ADDRESS), now_ms=1000)
        partition = write(log, *[[(b"%d" % n, None)] for n in range(10, 20)], TAIL, padding=0)
        run(log, partition, now_ms=2000)
        assert partition.index[0].next > 12
        run(log, partition, now_ms=2049, delete_retention_ms=1000)
        assert [offset for offset, _, _ in kept(log, partition)] == list(range(10, 22))
        assert not tombstones_due(log, partition, 1000, 2999)
        assert tombstones_due(log, partition, 1000, 3000)
        run(log, partition, now_ms=3000, delete_retention_ms=1000)
        assert [key for _, key, _ in kept(log, partition)] == [b"tail", b"tail"]
        assert not tombstones_due(log, partition, 1000, 10**15)


def test_it_is_known_when_tombstones_may_go(folder: Path) -> None:
    with Log(folder) as log:
        partition = write(log, [(b"a", b"1")], [(b"a", None)], TAIL)
        assert not tombstones_due(log, partition, 0, 10**15)
        run(log, partition, now_ms=1000)
        assert not tombstones_due(log, partition, 50, 1049)
        assert tombstones_due(log, partition, 50, 1050)
        run(log, partition, now_ms=1050, delete_retention_ms=50)
        assert not tombstones_due(log, partition, 50, 10**15)
        assert [key for _, key, _ in kept(log, partition)] == [b"tail"]
