"""Which records of a partition belong to which leader epoch."""

from __future__ import annotations

import pytest

from dafka.broker.topics.epoch_history import FIRST, EpochHistory

HISTORY = EpochHistory(((2, 0), (5, 30), (7, 50)))


@pytest.mark.parametrize(
    ("asked", "end"),
    [
        (7, (7, 90)),  # goes on
        (6, (5, 50)),
        (5, (5, 50)),
        (4, (2, 30)),
        (2, (2, 30)),
        (1, (1, 0)),  # ended before the first record, as in Kafka
        (8, (-1, -1)),
        (-1, (-1, 0)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, end: tuple[int, int]) -> None:
    assert HISTORY.end_of(asked, 90) == end


def test_a_record_has_the_epoch_that_had_begun_last() -> None:
    assert [HISTORY.at(offset) for offset in (0, 29, 30, 49, 50, 1000)] == [2, 2, 5, 5, 7, 7]


def test_a_new_epoch_begins_where_the_log_ends() -> None:
    assert FIRST.begun(1, 300) == EpochHistory(((0, 0), (1, 300)))
    assert HISTORY.begun(9, 90) == EpochHistory(((2, 0), (5, 30), (7, 50), (9, 90)))


def test_epochs_that_have_lost_all_their_records_are_left_out() -> None:
    assert HISTORY.begun(9, 50) == EpochHistory(((2, 0), (5, 30), (9, 50)))
    assert HISTORY.begun(9, 10) == EpochHistory(((2, 0), (9, 10)))
    assert HISTORY.begun(9, 0) == EpochHistory(((9, 0),))
    assert HISTORY.begun(9, 90, begin=50) == EpochHistory(((7, 50), (9, 90)))
    assert HISTORY.begun(9, 90, begin=49) == EpochHistory(((5, 30), (7, 50), (9, 90)))


def test_a_row_says_it_all() -> None:
    assert EpochHistory.of(HISTORY.row()) == HISTORY
