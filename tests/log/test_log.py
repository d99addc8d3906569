"""The promises of a log to its writers and readers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from log.messages import ADDRESS, EVERYTHING, batch, numbered

from dafka.log import AppendError, Log, LogClosedError, LogPartition


def everything(log: Log, partition: LogPartition) -> list[bytes]:
    return log.read(partition, 0, count=EVERYTHING, max_bytes=EVERYTHING)[1]


# Partitions


def test_a_new_partition_holds_nothing_and_has_no_kind(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert (partition.topic, partition.address, partition.kind) == (b"hello", ADDRESS, None)
        assert (partition.first_sequence, partition.next_sequence) == (0, 0)
        assert (partition.first_offset, partition.next_offset) == (0, 0)
        assert log.read(partition, 0, count=1, max_bytes=1) == (0, [])
        assert log.read_offsets(partition, 0, max_bytes=1) == []
        assert log.offset_for_timestamp(partition, 0) is None


def test_a_partition_is_known_from_its_first_append_on(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert log.find(b"hello", ADDRESS) is None
        assert log.partitions() == []
        log.write([(partition, [b"1"])])
        assert log.find(b"hello", ADDRESS) is partition
        assert log.partition(b"hello", ADDRESS) is partition
        assert log.partitions() == [partition]


def test_the_same_names_give_the_same_partition_before_the_first_append_too(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert log.partition(b"hello", ADDRESS) is partition


@pytest.mark.parametrize(("topic", "address"), [(b"", b""), (b"t" * 255, b"a" * 255), (b"\0\xff", b"\0")])
def test_names_are_any_bytes_up_to_255(folder: Path, topic: bytes, address: bytes) -> None:
    with Log(folder) as log:
        log.write([(log.partition(topic, address), [b"1"])])
    with Log(folder) as log:
        partition = log.find(topic, address)
        assert partition is not None
        assert everything(log, partition) == [b"1"]


def test_a_name_over_255_bytes_is_refused(folder: Path) -> None:
    with Log(folder) as log, pytest.raises(ValueError, match="255"):
        log.partition(b"t" * 256, ADDRESS)


def test_topics_and_addresses_that_share_their_joined_bytes_stay_apart(folder: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"ab", b"c"), [b"1"]), (log.partition(b"a", b"bc"), [b"2"])])
    with Log(folder) as log:
        one, two = log.find(b"ab", b"c"), log.find(b"a", b"bc")
        assert one is not None and two is not None
        assert (everything(log, one), everything(log, two)) == ([b"1"], [b"2"])


def test_thousands_of_partitions_are_there_after_reopening(folder: Path) -> None:
    names = [(b"topic %d" % (n % 7), b"%032d" % n) for n in range(3000)]
    with Log(folder) as log:
        for _ in range(2):
            log.write([(log.partition(*name), [name[1]]) for name in names])
    with Log(folder) as log:
        assert {(p.topic, p.address) for p in log.partitions()} == set(names)
        assert len({p.number for p in log.partitions()}) == 3000
        for partition in log.partitions():
            assert everything(log, partition) == [partition.address] * 2


# Raw messages


def test_raw_messages_come_back_with_their_sequences_for_offsets(folder: Path) -> None:
    with Log(folder, clock=lambda: 1234.567) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [b"", b"\0\xff", b"three"])])
        assert partition.kind == "raw"
        assert (partition.next_sequence, partition.next_offset) == (3, 3)
        assert log.read(partition, 1, count=5, max_bytes=100) == (1, [b"\0\xff", b"three"])
        assert log.read_offsets(partition, 1, max_bytes=100) == [
            (1, 1234567, b"\0\xff"),
            (2, 1234567, b"three"),
        ]


def test_a_message_in_a_raw_partition_stays_raw_even_if_it_looks_like_a_batch(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [b"raw", batch(70, 1, 2, 3)])])
        assert (partition.kind, partition.next_offset) == ("raw", 2)


def test_a_partition_may_occur_several_times_in_a_round(folder: Path) -> None:
    with Log(folder) as log:
        one, two = log.partition(b"hello", ADDRESS), log.partition(b"hello2", ADDRESS)
        log.write([(one, [b"1", b"2"]), (two, [b"x"]), (one, [b"3"])])
        assert everything(log, one) == [b"1", b"2", b"3"]
        assert everything(log, two) == [b"x"]


def test_an_empty_append_and_an_empty_round_leave_no_trace(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([])
        log.write([(partition, [])])
        assert log.partitions() == []


def test_later_changes_to_the_list_that_was_appended_do_not_matter(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        contents = [b"1", b"2"]
        log.write([(partition, contents)])
        contents.clear()
        assert everything(log, partition) == [b"1", b"2"]


def test_large_values_come_back(folder: Path) -> None:
    large = os.urandom(10 * 1024 * 1024)
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"small", large, b"small"])])
    assert {path.name for path in folder.iterdir()} == {"cache.db", "dafka.boot", "dafka.lock", "values"}
    with Log(folder) as log:
        partition = log.find(b"hello", ADDRESS)
        assert partition is not None
        assert everything(log, partition) == [b"small", large, b"small"]


def test_a_partition_can_begin_above_zero_and_have_a_gap(folder: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), numbered(10, 5), 10)])
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(100, 5), 100), (partition, numbered(105, 1))])
        assert (partition.first_sequence, partition.next_sequence) == (10, 106)
        assert log.read(partition, 0, count=100, max_bytes=1000) == (10, numbered(10, 5))
        assert log.read(partition, 12, count=100, max_bytes=1000) == (12, numbered(12, 3))
        assert log.read(partition, 15, count=100, max_bytes=1000) == (100, numbered(100, 6))
        assert [base for base, _, _ in log.read_offsets(partition, 13, max_bytes=1000)] == [
            13, 14, 100, 101, 102, 103, 104, 105,
        ]  # fmt: skip


def test_a_sequence_that_is_stored_already_is_refused(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(0, 5))])
        with pytest.raises(AppendError, match="sequence 4 is already stored, 5 comes next"):
            log.write([(partition, [b"again"], 4)])
        assert everything(log, partition) == numbered(0, 5)


def test_sequences_end_where_offsets_do(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [b"last but one"], 2**63 - 2)])
        with pytest.raises(AppendError, match=str(2**63 - 1)):
            log.write([(partition, [b"one too many"])])


# Record batches


def test_batches_come_back_with_their_own_offsets_and_timestamps(folder: Path) -> None:
    batches = [batch(0, 100, 90, 95), batch(3, 7), batch(10, 200, 201)]
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), batches[:2])])
        log.write([(log.partition(b"hello", ADDRESS), batches[2:])])
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert partition.kind == "batch"
        assert (partition.next_sequence, partition.first_offset, partition.next_offset) == (3, 0, 12)
        expected = [(0, 100, batches[0]), (3, 7, batches[1]), (10, 201, batches[2])]
        assert log.read_offsets(partition, 0, max_bytes=EVERYTHING) == expected
        assert log.read_offsets(partition, 2, max_bytes=EVERYTHING) == expected
        assert log.read_offsets(partition, 3, max_bytes=EVERYTHING) == expected[1:]
        assert log.read_offsets(partition, 7, max_bytes=EVERYTHING) == expected[2:]  # in a gap
        assert log.read_offsets(partition, 11, max_bytes=EVERYTHING) == expected[2:]
        assert log.read_offsets(partition, 12, max_bytes=EVERYTHING) == []
        assert log.read(partition, 1, count=9, max_bytes=EVERYTHING) == (1, batches[1:])


@pytest.mark.parametrize(
    ("contents", "position", "cause"),
    [
        ([b"raw"], 0, "not a record batch"),
        ([batch(2, 1), b"raw"], 1, "not a record batch"),
        ([batch(2, 1), batch(3, 1)[:-1] + b"?"], 1, "not a record batch"),
        ([batch(1, 1)], 0, "offsets 1 to 1 do not continue at 2"),
        ([batch(2, 1, 1), batch(3, 1)], 1, "offsets 3 to 3 do not continue at 4"),
        ([batch(2**63 - 2, 1, 1)], 0, "do not continue"),
    ],
)
def test_a_batch_partition_takes_only_batches_that_continue_it(
    folder: Path, contents: list[bytes], position: int, cause: str
) -> None:
    with Log(folder) as log:
        partition, other = log.partition(b"hello", ADDRESS), log.partition(b"other", ADDRESS)
        log.write([(partition, [batch(0, 1, 2)])])
        with pytest.raises(AppendError, match=cause) as caught:
            log.write([(other, [b"fine"]), (partition, contents)], {("table", "key"): 1})
        assert (caught.value.topic, caught.value.address) == (b"hello", ADDRESS)
        assert caught.value.position == position
        assert caught.value.path == str(folder)
        assert (partition.next_sequence, partition.next_offset, other.next_sequence) == (1, 2, 0)
        assert log.table("table").get("key") is None
        log.write([(partition, [batch(2, 3)]), (other, [b"fine"])])
        assert (partition.next_offset, other.next_sequence) == (3, 1)


# Closing


def test_a_closed_log_says_so(folder: Path) -> None:
    log = Log(folder)
    partition = log.partition(b"hello", ADDRESS)
    table = log.table("table")
    log.write([(partition, [b"1"])], {("table", "key"): 1})
    log.close()
    log.close()
    assert log.closed
    for use in (
        lambda: log.partition(b"hello", ADDRESS),
        lambda: log.find(b"hello", ADDRESS),
        lambda: log.partitions(),
        lambda: log.table("table"),
        lambda: log.write([(partition, [b"2"])]),
        lambda: log.read(partition, 0, count=1, max_bytes=1),
        lambda: log.read_offsets(partition, 0, max_bytes=1),
        lambda: log.offset_for_timestamp(partition, 0),
    ):
        with pytest.raises(LogClosedError, match="closed"):
            use()
    assert table.get("key") == 1


@pytest.mark.parametrize("durability", ["process", "power"])
def test_both_durability_settings_write_and_can_be_changed_by_reopening(
    folder: Path, durability: str
) -> None:
    other = "power" if durability == "process" else "process"
    for setting in (durability, other):
        with Log(folder, durability=setting) as log:  # type: ignore[arg-type]
            log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
            (level,) = log._storage._cache._sql("PRAGMA synchronous").fetchone()
            assert level == (2 if setting == "power" else 1)
            log._storage.close()  # a new connection, as another thread would open
            (level,) = log._storage._cache._sql("PRAGMA synchronous").fetchone()
            assert level == (2 if setting == "power" else 1)
    with Log(folder) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) == [b"1", b"1"]


def test_invalid_settings_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="'power'"):
        Log(folder, durability="always")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="-1"):
        Log(folder, tail_bytes=-1)
    assert not folder.exists()
