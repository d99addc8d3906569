"""Dropping the front of partitions, whole partitions, and giving their disk space back."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, EVERYTHING, batch, chunk_rows, numbered

from dafka.log import AppendError, Log, LogPartition, Trim

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


@pytest.mark.parametrize("before", [0, 1, 4, 5, 7, 15, 19, 20, 1000])
def test_exactly_the_messages_before_the_place_are_gone_also_after_reopening(
    folder: Path, before: int
) -> None:
    first = min(before, 20)
    with Log(folder) as log:
        partition = filled(log)
        log.trim(partition, before_sequence=before)
        for place in (partition.first_sequence, partition.first_offset):
            assert place == first
        if first < 20:
            assert sequences(log, partition) == (first, 20)
        else:
            assert log.read(partition, 0, count=9, max_bytes=EVERYTHING)[1] == []
            assert log.read_offsets(partition, 0, max_bytes=EVERYTHING) == []
    with Log(folder) as log:
        found = log.find(b"hello", ADDRESS)
        assert found is not None
        assert (found.first_sequence, found.first_offset, found.next_sequence) == (first, first, 20)
        log.write([(found, numbered(20, 1))])
        assert sequences(log, found) == (first, 21)


def test_trimming_never_goes_back(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log)
        log.trim(partition, before_sequence=12)
        log.trim(partition, before_sequence=3)
        assert partition.first_sequence == 12
        log.write([], trims=[Trim(partition, 14), Trim(partition, 13)])
        assert partition.first_sequence == 14


@pytest.mark.parametrize("offset", [0, 1, 4, 5, 6])
def test_trimming_to_a_place_that_was_trimmed_before_changes_nothing(folder: Path, offset: int) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [batch(0, 1, 2, 3), batch(3, 4, 5)])])
        log.trim(partition, before_offset=5)
        log.trim(partition, before_offset=offset)
        assert (partition.first_sequence, partition.first_offset, partition.next_offset) == (2, 5, 5)


def test_trimming_within_a_gap_is_not_trimming_to_its_end(folder: Path) -> None:
    with Log(folder) as log:
        partition = filled(log)
        log.write([(partition, [b"behind a gap"], 30)])
        for before in (25, 0, 25, 24):
            log.trim(partition, before_sequence=before)
            assert (partition.first_sequence, partition.first_offset) == (30, 25)


def test_an_offset_inside_a_batch_is_exact_and_the_batch_stays_whole(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        contents = [batch(0, 1, 2, 3), batch(3, 4, 5, 6), batch(6, 7)]
        log.write([(partition, contents)])
        log.trim(partition, before_offset=4)
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert (partition.first_offset, partition.first_sequence) == (4, 1)
        assert [row[2] for row in log.read_offsets(partition, 0, max_bytes=EVERYTHING)] == contents[1:]
        assert log.offset_for_timestamp(partition, 0) == (4, 5)
        log.trim(partition, before_sequence=2)
        assert (partition.first_offset, partition.first_sequence) == (6, 2)


def test_offsets_lead_to_sequences(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [batch(0, 1, 2, 3), batch(3, 4), batch(10, 5)])])
        found = [log.offset_to_sequence(partition, offset) for offset in (0, 2, 3, 4, 10, 11, 99)]
        assert found == [0, 0, 1, 2, 2, 3, 3]
        raw = filled(log, b"raw")
        assert [log.offset_to_sequence(raw, offset) for offset in (0, 7, 20, 50)] == [0, 7, 20, 20]


def test_retention_is_computed_from_the_index(folder: Path) -> None:
    now = 1000.0
    with Log(folder, clock=lambda: now) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert partition.sequence_for_retention(older_than_ms=10**9) == 0
        for first in range(0, 20, 5):
            log.write([(partition, numbered(first, 5, LARGE))])
            now += 10
        wanted = partition.sequence_for_retention
        assert [wanted(older_than_ms=ms) for ms in (0, 1_000_000, 1_000_001, 1_010_001)] == [0, 0, 5, 10]
        assert wanted(older_than_ms=10**9) == 20
        assert wanted(older_than_ms=10**9, max_values=2) == 10
        value = partition.bytes // 4
        assert [wanted(keep_bytes=size) for size in (5 * value, 3 * value - 99, value, 1, 0)] == [
            0,
            5,
            15,
            15,
            15,
        ]
        log.trim(partition, before_sequence=7)
        assert wanted(older_than_ms=0) == 7
        assert wanted(older_than_ms=1_010_001) == 10


def test_a_dropped_partition_is_gone_and_its_name_begins_anew(folder: Path) -> None:
    with Log(folder) as log:
        dead, other = filled(log), filled(log, b"other")
        log.write([], {("t", "k"): 1}, drops=[dead])
        assert dead.dropped
        assert log.find(b"hello", ADDRESS) is None
        assert log.read(dead, 0, count=9, max_bytes=9) == (0, [])
        with pytest.raises(AppendError, match="deleted"):
            log.write([(dead, [b"a"])])
        log.drop(dead)
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [batch(0, 1)])])
        assert partition.kind == "batch"
    with Log(folder) as log:
        assert [found.topic for found in log.partitions()] == [b"other", b"hello"]
        assert log.space.garbage_bytes > 0
        log.space.tidy()
    with Log(folder) as log:
        assert log.space.garbage_bytes == 0
        assert len(chunk_rows(folder)) == 5
        assert sequences(log, log.partition(b"other", ADDRESS)) == (0, other.next_sequence)


def test_a_round_that_is_not_committed_trims_and_drops_nothing(folder: Path) -> None:
    with Log(folder) as log:
        partition, other = filled(log), filled(log, b"other")
        log.begin([], trims=[Trim(partition, 9)], drops=[other]).finish()
        assert sequences(log, partition) == (0, 20)
        assert not other.dropped
        with pytest.raises(AppendError):
            log.write([(other, [b"a"])], drops=[other])
        assert not other.dropped


def test_damaged_values_are_skipped_where_that_is_wanted(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Log(folder) as log:
        filled(log)
    from log.messages import database

    row = chunk_rows(folder)[1]
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (row[2][:-1] + b"?", row[0]))
    with Log(folder, on_damage="skip") as log:
        partition = log.partition(b"hello", ADDRESS)
        first, contents = log.read(partition, 6, count=EVERYTHING, max_bytes=EVERYTHING)
        assert (first, len(contents)) == (10, 10)
        assert log.read_offsets(partition, 5, max_bytes=1)[0][0] == 10
        assert list(log.damaged_places) == [f"sequences 5 to 9 of topic b'hello' of {ADDRESS!r}"]
    assert caplog.text.count("sequences 5 to 9") == 1
    with pytest.raises(ValueError, match="on_damage"):
        Log(folder, on_damage="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("place", [{"before_sequence": 5}, {"before_offset": 10}, {"before_offset": 14}])
def test_a_reader_at_the_end_of_the_trimmed_messages_has_lost_none_if_a_gap_follows(
    folder: Path, place: dict[str, int], reopened: bool
) -> None:
    """Compaction leaves such gaps; the offsets in them stay in range."""
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [batch(2 * n, 1, 2) for n in range(5)])])
        log.write([(partition, [batch(20, 1, 2)], 10)])
        log.trim(partition, **place)
        if reopened:
            log.close()
            log = Log(folder)
            partition = log.partition(b"hello", ADDRESS)
        assert partition.first_offset == place.get("before_offset", 10)
        assert partition.first_sequence == 10
        assert [base for base, _, _ in log.read_offsets(partition, partition.first_offset, max_bytes=1)] == [
            20
        ]
        log.close()
