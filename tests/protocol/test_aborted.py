"""What readers of committed records pass over."""

from __future__ import annotations

import pytest

from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import BatchError, read_header, with_offset, with_producer
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_writer import encode_batch


def records(offset: int, producer: int | None = None, count: int = 2) -> bytes:
    """A batch of a producer's transaction, or one outside of any."""
    batch = encode_batch([(0, None, b"v", ())] * count)
    if producer is not None:
        batch = with_producer(batch, producer, 0, 0, transactional=True)
    return with_offset(batch, offset)


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    return with_offset(encode_marker(0, producer, 0, commit=commit), offset)


def read(following: AbortedTransactions, *batches: bytes) -> list[int]:
    """The first offsets of the batches that are read."""
    headers = [(read_header(batch), batch) for batch in batches]
    return [header.base_offset for header, batch in headers if not following.skips(header, batch)]


def test_records_of_an_aborted_transaction_are_passed_over_up_to_its_marker() -> None:
    following = AbortedTransactions([(1, 0)])
    batches = [records(0, 1), records(2), records(4, 1), marker(6, 1, commit=False), records(7, 1)]
    assert read(following, *batches) == [2, 7]


def test_records_before_an_aborted_transaction_of_the_same_producer_are_read() -> None:
    following = AbortedTransactions([(1, 3)])
    batches = [records(0, 1), marker(2, 1, commit=True), records(3, 1), marker(5, 1, commit=False)]
    assert read(following, *batches) == [0]


def test_transactions_of_other_producers_in_between_are_read() -> None:
    following = AbortedTransactions([(2, 2), (1, 0)])
    batches = [records(0, 1), records(2, 2), records(4, 3), marker(6, 1, commit=False), records(7, 2)]
    assert read(following, *batches) == [4]


def test_idempotent_batches_of_a_producer_that_aborts_are_read() -> None:
    batch = with_offset(with_producer(encode_batch([(0, None, b"v", ())]), 1, 0, 0), 1)
    assert read(AbortedTransactions([(1, 0)]), records(0, 1, 1), batch) == [1]


def test_a_transaction_that_the_next_answer_names_again_is_not_begun_again() -> None:
    following = AbortedTransactions([(1, 0)])
    assert read(following, records(0, 1), marker(2, 1, commit=False)) == []
    following.learn([(1, 0), (1, 5)])
    assert read(following, records(3, 1), records(5, 1), marker(7, 1, commit=False)) == [3]


def test_a_transaction_that_the_next_answer_brings_begins_in_its_place() -> None:
    following = AbortedTransactions([(1, 4)])
    following.learn([(2, 0), (3, 2)])
    assert read(following, records(0, 2), records(2, 3), records(4, 1), records(6, 4)) == [6]


def test_markers_are_never_read() -> None:
    assert read(AbortedTransactions(), marker(0, 1, commit=True), marker(1, 2, commit=False)) == []


@pytest.mark.parametrize("aborted", [[], [(1, 0)]])
def test_a_damaged_marker_is_an_error(aborted: list[tuple[int, int]]) -> None:
    damaged = bytearray(marker(0, 1, commit=False))
    damaged[-1] ^= 1
    following = AbortedTransactions(aborted)
    with pytest.raises(BatchError):
        following.skips(read_header(damaged), bytes(damaged))
