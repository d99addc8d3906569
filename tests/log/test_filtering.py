"""What compaction leaves of one stored value."""

from __future__ import annotations

from pathlib import Path

import pytest
from crc32c import crc32c
from log.compacting import TAIL, Pair, kept, run, write
from log.messages import ADDRESS, EVERYTHING, with_largest_timestamp

from dafka.log import (
    Log,
)
from dafka.protocol.batch import (
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    TRANSACTIONAL_BIT,
    read_header,
    with_offset,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch


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
