"""The changes of a round other than appends: trimming, deleting, rewriting in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, batch, everything, numbered

from dafka.log import Log, LogPartition, StaleRewriteError, Trim
from dafka.log.changes import Changes, Garbage, Rewrite
from dafka.log.chunk import RAW, ChunkKey


def key(first: int, size: int) -> ChunkKey:
    return ChunkKey(1, first, first + 1, first, first + 1, 0, size, RAW)


def filled(log: Log, count: int = 3) -> LogPartition:
    """Chunks of one record batch each, which are not merged."""
    partition = log.partition(b"table", ADDRESS)
    for base in range(count):
        log.write([(partition, [batch(base, base)])])
        partition.merge_floor = partition.next_sequence
    return partition


def old(log: Log, partition: LogPartition, *positions: int) -> list[tuple[ChunkKey, object]]:
    keys = [partition.index[position] for position in positions]
    return [(one, log.load(partition, one)) for one in keys]


# -- garbage ------------------------------------------------------------------------------------


def test_garbage_is_deleted_in_its_order_about_so_many_bytes_at_a_time() -> None:
    garbage = Garbage()
    keys = [key(first, 10) for first in range(4)]
    garbage.add(keys)
    rows = [one.pack() for one in keys]
    assert (len(garbage), garbage.bytes) == (4, 40)
    assert garbage.first(25, 100) == rows[:2]
    assert garbage.first(100, 3) == rows[:3]
    garbage.drop(2)
    assert (garbage.bytes, garbage.first(100, 100)) == (20, rows[2:])


def test_a_value_that_is_larger_than_the_bound_is_deleted_alone() -> None:
    garbage = Garbage()
    garbage.add([key(0, 1000), key(1, 1)])
    assert garbage.first(10, 100) == [key(0, 1000).pack()]


def test_rows_without_a_value_are_garbage_of_no_bytes() -> None:
    garbage = Garbage()
    garbage.add_row(b"row", 0)
    assert (len(garbage), garbage.bytes, garbage.first(0, 100)) == (1, 0, [b"row"])


# -- trimming and deleting ----------------------------------------------------------------------


def floor(partition: LogPartition, sequence: int, offset: int) -> tuple[int, int]:
    return sequence, offset


def test_the_farthest_of_several_trims_of_a_partition_counts(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log)
        changes = Changes([])
        changes.add_trims([Trim(partition, 2, 2), Trim(partition, 1, 1)], floor)
        assert changes.floors == {partition: (2, 2)}


def test_trims_that_move_nothing_change_nothing(folder: Path) -> None:
    with Log(folder) as log:
        partition, unknown = filled(log), log.partition(b"new", ADDRESS)
        changes = Changes([])
        changes.add_trims([Trim(partition, 0, 0), Trim(unknown, 5, 5)], floor)
        assert not changes


def test_a_partition_that_is_deleted_is_not_trimmed_and_deleted_once(folder: Path) -> None:
    with Log(folder) as log:
        partition, unknown = filled(log), log.partition(b"new", ADDRESS)
        changes = Changes([partition, partition, unknown])
        changes.add_trims([Trim(partition, 2, 2)], floor)
        assert (changes.drops, changes.floors) == ([partition], {})


# -- rewriting ----------------------------------------------------------------------------------


def test_a_value_takes_the_place_of_neighbours_and_none_leaves_a_gap(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log)
        place = partition.next_sequence, partition.next_offset
        contents = everything(log, partition)
        log.write(
            [], rewrites=[Rewrite(partition, old(log, partition, 0, 1, 2), [contents[0], None, contents[2]])]
        )
        assert (partition.next_sequence, partition.next_offset) == place
        assert [(one.first, one.next) for one in partition.index] == [(0, 1), (2, 3)]
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        assert log.read(partition, 0, count=9, max_bytes=9999) == (0, contents[:1])
        assert log.read(partition, 1, count=9, max_bytes=9999) == (2, contents[2:])


def test_values_that_have_changed_since_they_were_read_are_not_rewritten(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log)
        contents = everything(log, partition)
        rewrite = Rewrite(partition, old(log, partition, 0, 1), contents[:2])
        log.trim(partition, before_sequence=1)
        with pytest.raises(StaleRewriteError, match="no longer there as they were"):
            log.write([], rewrites=[rewrite])
        assert everything(log, partition) == contents[1:]


@pytest.mark.parametrize("count", [1, 3])
def test_contents_of_another_number_or_without_the_first_are_refused(folder: Path, count: int) -> None:
    with Log(folder) as log:
        partition = filled(log)
        chunks, contents = old(log, partition, 0, 1), everything(log, partition)
        for wrong in (contents[:count], [None, *contents[1:2]]):
            with pytest.raises(ValueError, match="cannot take the place of"):
                log.write([], rewrites=[Rewrite(partition, chunks, wrong)])


def test_raw_messages_are_not_rewritten(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"raw", ADDRESS)
        log.write([(partition, numbered(0, 1))])
        with pytest.raises(ValueError, match="cannot take the place of"):
            log.write([], rewrites=[Rewrite(partition, old(log, partition, 0), numbered(0, 1))])


def test_the_size_and_the_pieces_of_a_rewrite_leave_gaps_out(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log)
        rewrite = Rewrite(partition, old(log, partition, 0, 1, 2), [b"aa", None, b"b"])
        assert rewrite.size == 3
        assert list(rewrite.pieces()) == [(0, [b"aa"]), (2, [b"b"])]
