"""Which records of a batch a migration copies, and as what."""

from __future__ import annotations

import pytest

from dafka.migrating.batches import committed, piece
from dafka.protocol.batch import read_header
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch


def batch(base_offset: int, count: int, **options: int) -> bytes:
    records = [(1000 + number, b"k", b"%d" % (base_offset + number), []) for number in range(count)]
    return encode_batch(records, base_offset=base_offset, **options)  # type: ignore[arg-type]


def test_a_whole_batch_is_copied_unchanged() -> None:
    whole = batch(5, 10)
    found = piece(whole, read_header(whole), 5, 15)
    assert found is not None and found.batch is whole and list(found.offsets) == list(range(5, 15))


@pytest.mark.parametrize(("start", "end"), [(7, 15), (5, 12), (7, 12)])
def test_only_the_wanted_part_of_a_batch_is_copied(start: int, end: int) -> None:
    whole = batch(5, 10)
    found = piece(whole, read_header(whole), start, end)
    assert found is not None and list(found.offsets) == list(range(start, end))
    assert decode_batch(found.batch).values == [b"%d" % offset for offset in range(start, end)]
    assert piece(whole, read_header(whole), 15, 20) is None


def test_append_times_of_a_broker_are_kept() -> None:
    stamped = batch(0, 3, timestamp_type=1)
    found = piece(stamped, read_header(stamped), 0, 3)
    assert found is not None and read_header(found.batch).timestamp_type == 0
    assert decode_batch(found.batch).timestamps == decode_batch(stamped).timestamps


def test_markers_and_aborted_batches_are_left_out() -> None:
    from dafka.protocol.batch import with_offset, with_producer

    def transactional(base_offset: int, producer: int) -> bytes:
        return with_producer(batch(base_offset, 2), producer, 0, 0, transactional=True)

    def marker(base_offset: int, producer: int, commit: bool) -> bytes:
        return with_offset(encode_marker(0, producer, 0, commit=commit), base_offset)

    batches = [
        transactional(0, 1),  # aborted
        batch(2, 2),
        marker(4, 1, False),
        transactional(5, 1),  # committed: the next transaction of the same producer
        transactional(7, 2),
        marker(9, 1, True),
        marker(10, 2, True),
    ]
    kept = [header.base_offset for header, one in committed(batches, [(1, 0)]) if one is not None]
    assert kept == [2, 5, 7]
