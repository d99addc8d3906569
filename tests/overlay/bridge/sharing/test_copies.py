from __future__ import annotations

import pytest

from dafka.overlay.bridge.sharing.copies import copies
from dafka.protocol.batch import BatchError, check_batch, with_offset, with_producer
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import BatchRecord, encode_batch


def records(count: int, size: int = 10) -> list[BatchRecord]:
    return [(1000 + index, b"k%d" % index, b"v" * size, [("h", b"x")]) for index in range(count)]


def test_a_batch_goes_as_it_is_but_for_its_producer() -> None:
    plain = encode_batch(records(5), base_offset=10, compression="gzip")
    produced = with_producer(plain, 7, 1, 3)
    found, end = copies([produced], 10, ())
    assert found == [plain]
    assert end == 15
    check_batch(found[0])


def test_records_before_the_position_are_left_out() -> None:
    found, end = copies([encode_batch(records(5), base_offset=10)], 12, ())
    assert [decode_batch(one).keys for one in found] == [[b"k2", b"k3", b"k4"]]
    assert end == 15


def test_times_that_the_broker_has_set_stay_as_they_are() -> None:
    found, _ = copies([encode_batch(records(3), timestamp_type=1)], 0, ())
    assert check_batch(found[0]).timestamp_type == 0
    assert decode_batch(found[0]).timestamps == [1002] * 3


def test_a_batch_that_is_too_large_is_cut_and_loses_nothing() -> None:
    found, _ = copies([encode_batch(records(100, 100))], 0, (), largest=2000)
    assert max(map(len, found)) <= 2000
    assert [key for one in found for key in decode_batch(one).keys] == [
        b"k%d" % index for index in range(100)
    ]


def test_one_record_is_never_cut() -> None:
    found, _ = copies([encode_batch(records(1, 5000))], 0, (), largest=100)
    assert len(found) == 1


def test_markers_and_aborted_transactions_are_left_out_and_passed() -> None:
    aborted = with_producer(encode_batch(records(2), base_offset=0), 1, 0, 0, transactional=True)
    committed = with_producer(encode_batch(records(3), base_offset=3), 2, 0, 0, transactional=True)
    batches = [
        aborted,
        with_offset(encode_marker(0, 1, 0, commit=False), 2),
        committed,
        with_offset(encode_marker(0, 2, 0, commit=True), 6),
    ]
    found, end = copies(batches, 0, [(1, 0)])
    assert [decode_batch(one).keys for one in found] == [[b"k0", b"k1", b"k2"]]
    assert not check_batch(found[0]).is_transactional
    assert end == 7


def test_a_damaged_batch_is_an_error() -> None:
    batch = bytearray(encode_batch(records(3), base_offset=5))
    batch[-1] ^= 1
    with pytest.raises(BatchError):
        copies([bytes(batch)], 6, ())
