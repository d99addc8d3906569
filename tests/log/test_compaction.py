"""The newest record of each key stays, at its offset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from log.messages import ADDRESS, EVERYTHING, chunk_rows, database, with_largest_timestamp

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
from dafka.log.verify import verify
from dafka.protocol.batch import (
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    TRANSACTIONAL_BIT,
    BatchError,
    check_batch,
    read_header,
    with_offset,
)
from dafka.protocol.batch_control import commits, encode_marker
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

DAY = 24 * 60 * 60 * 1000
Pair = tuple[bytes | None, bytes | None]


def write(
    log: Log, *batches: list[Pair], compression: str | None = None, padding: int = 9000
) -> LogPartition:
    """One chunk for each batch; a large header keeps them from being merged."""
    partition = log.partition(b"table", ADDRESS)
    for pairs in batches:
        base = partition.next_offset
        records = [(base + n, *pair, (("h", bytes(padding)),)) for n, pair in enumerate(pairs)]
        content = encode_batch(records, base_offset=base, compression=compression)
        log.write([(partition, [content])])
    return partition


def run(log: Log, partition: LogPartition, **options: Any) -> None:
    for _ in compact(log, partition, **options):
        pass


def kept(log: Log, partition: LogPartition) -> list[tuple[int, bytes | None, bytes | None]]:
    rows = []
    for _, _, content in log.read_offsets(partition, 0, max_bytes=EVERYTHING):
        check_batch(content)
        columns = decode_batch(content)
        assert columns.timestamps == columns.offsets
        rows += list(zip(columns.offsets, columns.keys, columns.values, strict=True))
    return rows


TAIL: list[Pair] = [(b"tail", b"t")]


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


def test_a_batch_without_records_left_stays_as_an_empty_one(folder: Path) -> None:
    with Log(folder) as log:
        partition = write(log, [(b"a", b"1"), (b"a", b"2")], [(b"a", b"3")], TAIL)
        run(log, partition)
        empty = read_header(log.read(partition, 0, count=1, max_bytes=1)[1][0])
        assert (empty.base_offset, empty.next_offset, empty.count) == (0, 2, 0)
        assert log.offset_for_timestamp(partition, 0) == (2, 2)
        assert log.offset_to_sequence(partition, 1) == 0


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_batch_whose_records_have_no_timestamps_keeps_the_time_in_its_header(
    folder: Path, compression: str | None
) -> None:
    """The broker puts the time of arrival there, and retention goes by it."""
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        for base, names in ((0, b"ab"), (2, b"ac"), (4, b"d")):
            records = [(-1, bytes([name]), bytes(9000), ()) for name in names]
            batch = encode_batch(records, base_offset=base, compression=compression)
            log.write([(partition, [with_largest_timestamp(batch, 1000 + base)])])
        run(log, partition)
        headers = [
            read_header(content) for _, _, content in log.read_offsets(partition, 0, max_bytes=EVERYTHING)
        ]
        assert [(header.count, header.max_timestamp) for header in headers] == [
            (1, 1000),
            (2, 1002),
            (1, 1004),
        ]
        assert list(partition.index.times)[-1] == 1004
        assert -1 not in partition.index.times


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


def test_records_without_a_key_stay_and_long_keys_are_told_apart(folder: Path) -> None:
    long = bytes(1000)
    with Log(folder) as log:
        pairs: list[Pair] = [(None, b"1"), (None, b"1"), (long, b"1"), (long + b"x", b"1"), (b"", b"1")]
        partition = write(log, pairs, pairs, TAIL)
        run(log, partition)
        assert [row[0] for row in kept(log, partition)] == [0, 1, 5, 6, 7, 8, 9, 10]


def test_batches_that_cannot_be_read_stay_and_keep_the_tombstones(folder: Path) -> None:
    unknown = bytearray(encode_batch([(0, b"a", b"1", ())]))
    unknown[22] = 7  # a codec that does not exist
    unknown[17:21] = crc32c(bytes(unknown[21:])).to_bytes(4, "big")
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        log.write([(partition, [bytes(unknown)])])
        write(log, [(b"a", b"2"), (b"a", None)], TAIL)
        run(log, partition, now_ms=0, delete_retention_ms=0)
        run(log, partition, now_ms=1, delete_retention_ms=0)
        contents = log.read(partition, 0, count=9, max_bytes=EVERYTHING)[1]
        assert contents[0] == bytes(unknown)
        assert decode_batch(contents[1]).values == [None]


def test_a_batch_whose_timestamps_no_header_holds_stays(folder: Path) -> None:
    """A client may write what it likes: the records' times are told from the first one's."""
    good = encode_batch([(0, b"a", b"1", ()), (5, b"b", b"1", ())])
    beyond = bytearray(good)
    beyond[27:35] = (2**63 - 1).to_bytes(8, "big")  # the base timestamp
    beyond[17:21] = crc32c(bytes(beyond[21:])).to_bytes(4, "big")
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        log.write([(partition, [bytes(beyond)])])
        write(log, [(b"a", b"2"), (b"c", b"1")], [(b"c", b"2")], TAIL)
        run(log, partition)
        contents = log.read(partition, 0, count=9, max_bytes=EVERYTHING)[1]
        assert contents[0] == bytes(beyond)
        assert [decode_batch(content).values for content in contents[1:]] == [[b"2"], [b"2"], [b"t"]]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_batch_whose_header_and_body_disagree_stays_and_takes_nothing_with_it(
    folder: Path, count: int
) -> None:
    """Native producers write what they like, and so did clients before their topic was compacted."""
    good = encode_batch([(0, b"a", b"1", ()), (1, b"b", None, ())])
    head = HEADER.pack(*read_header(good)._replace(count=count, last_offset_delta=2))
    wrong = bytearray(head + good[HEADER_OCTETS:])
    wrong[CRC_START:CRC_END] = crc32c(bytes(wrong[CRC_END:])).to_bytes(4, "big")
    with Log(folder) as log:
        partition = write(log, [(b"a", b"0"), (b"b", b"0")])
        log.write([(partition, [with_offset(bytes(wrong), 2)])])
        write(log, [(b"b", b"2"), (b"c", None)], TAIL)
        for now in (1000, 2000):
            run(log, partition, now_ms=now, delete_retention_ms=0)
        contents = log.read(partition, 0, count=9, max_bytes=EVERYTHING)[1]
        assert contents[1] == with_offset(bytes(wrong), 2)
        assert decode_batch(contents[0]).values == [b"0"]  # of a: nobody can tell what overtakes it
        tombstone = [] if count == 0 else [None]  # a batch that says it is empty hides nothing
        assert decode_batch(contents[2]).values == [b"2", *tombstone]


def test_control_batches_and_producers_numbers_stay(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        control = bytearray(encode_batch([(0, b"a", b"1", ())], base_offset=0))
        control[22] |= 0x30
        control[17:21] = crc32c(bytes(control[21:])).to_bytes(4, "big")
        numbered = encode_batch(
            [(1, b"a", b"1", ()), (2, b"b", b"2", ())],
            base_offset=1, producer_id=7, producer_epoch=2, base_sequence=5,
        )  # fmt: skip
        log.write([(partition, [bytes(control), numbered])])
        write(log, [(b"a", b"2")], TAIL)
        run(log, partition)
        first, second, *_ = log.read(partition, 0, count=9, max_bytes=EVERYTHING)[1]
        assert first == bytes(control)
        header = read_header(second)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 5)
        assert (header.base_offset, header.next_offset, header.count) == (1, 3, 1)


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


def test_what_can_be_read_again_overtakes_what_it_is_newer_than(
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


def test_of_very_many_batches_without_records_the_first_one_stays(
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


def test_the_records_of_aborted_transactions_overtake_nothing_and_are_left_out(folder: Path) -> None:
    def transactional(base: int, pairs: list[Pair], producer_id: int) -> bytes:
        records = [(base + n, *pair, (("h", bytes(9000)),)) for n, pair in enumerate(pairs)]
        content = bytearray(
            encode_batch(records, base_offset=base, producer_id=producer_id, producer_epoch=0)
        )
        content[22] |= TRANSACTIONAL_BIT
        content[17:21] = crc32c(bytes(content[21:])).to_bytes(4, "big")
        return bytes(content)

    with Log(folder) as log:
        partition = write(log, [(b"a", b"committed"), (b"b", b"committed")])
        for producer_id, pairs in (
            (7, [(b"a", b"aborted"), (b"c", b"aborted")]),
            (8, [(b"b", b"committed later")]),
        ):
            log.write([(partition, [transactional(partition.next_offset, pairs, producer_id)])])
        write(log, TAIL)
        asked = []

        def aborted(start: int, end: int) -> list[tuple[int, int, int]]:
            asked.append((start, end))
            return [(7, 2, 5), (8, 0, 1)]  # 8 had another transaction before

        run(log, partition, aborted=aborted)
        assert kept(log, partition) == [
            (0, b"a", b"committed"),
            (4, b"b", b"committed later"),
            (5, b"tail", b"t"),
        ]
        assert (2, 4) in asked
        assert len(log.read(partition, 0, count=9, max_bytes=EVERYTHING)[1]) == 4


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
def test_what_merging_brings_into_a_value_behind_the_end_overtakes_nothing(
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
