"""Records kept ahead of a gap: one run of a partition, within bounds, handed out when the gap is filled."""

from __future__ import annotations

import pytest

from dafka.roles.ahead import Ahead
from dafka.roles.follower import Follower
from dafka.roles.limits import Limits

LIMITS = Limits(
    ahead_distance=50, ahead_records=20, ahead_bytes=100, all_ahead_records=30, all_ahead_bytes=150
)


def follower(start: int = 0) -> Follower:
    return Follower(b"topic", b"A" * 32, start, 10, 1)


def records(first: int, end: int) -> list[bytes]:
    return [b"%02d" % sequence for sequence in range(first, end)]


def taken(ahead: Ahead, one: Follower) -> list[bytes]:
    """All that can be taken, as if there were room for it."""
    everything = []
    while contents := ahead.take(one):
        everything += contents
        one.next += len(contents)
    return everything


def test_kept_records_come_when_the_gap_is_filled():
    ahead, one = Ahead(LIMITS), follower()
    ahead.keep(one, 3, records(3, 5))
    ahead.keep(one, 5, records(5, 6))
    assert ahead.take(one) == []
    one.next = 3
    assert taken(ahead, one) == records(3, 6)
    assert (ahead.records, ahead.bytes, one.ahead_bytes) == (0, 0, 0)


def test_records_that_have_come_meanwhile_are_not_handed_out_again():
    ahead, one = Ahead(LIMITS), follower()
    ahead.keep(one, 3, records(3, 5))
    ahead.keep(one, 5, records(5, 9))
    one.next = 6
    assert taken(ahead, one) == records(6, 9)
    assert (ahead.records, ahead.bytes) == (0, 0)


def test_records_that_overlap_are_kept_once():
    ahead, one = Ahead(LIMITS), follower()
    ahead.keep(one, 3, records(3, 7))
    ahead.keep(one, 5, records(5, 9))
    ahead.keep(one, 4, records(4, 6))
    assert ahead.records == 6
    one.next = 3
    assert taken(ahead, one) == records(3, 9)


@pytest.mark.parametrize("first", [1, 8])
def test_a_second_run_is_not_kept(first):
    ahead, one = Ahead(LIMITS), follower()
    ahead.keep(one, 4, records(4, 6))
    ahead.keep(one, first, records(first, first + 2))
    assert (one.ahead_first, one.ahead_next) == (4, 6)


def test_records_far_ahead_are_not_kept():
    ahead, one = Ahead(LIMITS), follower(10)
    ahead.keep(one, 61, records(61, 62))
    assert ahead.records == 0
    ahead.keep(one, 60, records(60, 61))
    assert ahead.records == 1


def test_one_partition_has_so_many_records_and_bytes():
    ahead, one = Ahead(LIMITS), follower()
    ahead.keep(one, 1, records(1, 21))
    ahead.keep(one, 21, records(21, 22))
    assert ahead.records == 20
    ahead, one = Ahead(LIMITS), follower()
    ahead.keep(one, 1, [b"x" * 100])
    ahead.keep(one, 2, [b"x"])
    assert ahead.bytes == 100


def test_all_partitions_have_so_many_together():
    ahead = Ahead(LIMITS)
    for _ in range(3):
        ahead.keep(follower(), 1, records(1, 16))
    assert ahead.records == 30
    ahead = Ahead(LIMITS)
    for _ in range(3):
        ahead.keep(follower(), 1, [b"x" * 60])
    assert ahead.bytes == 120


def test_records_without_room_are_kept_as_before():
    ahead, one = Ahead(LIMITS), follower()
    ahead.keep(one, 2, records(2, 6))
    ahead.keep(one, 6, records(6, 8))
    one.next = 2
    contents = ahead.take(one)
    one.next = 3  # there was room for one
    ahead.put_back(one, contents[1:])
    assert (ahead.records, one.ahead_first, one.ahead_next) == (5, 3, 8)
    ahead.keep(one, 8, records(8, 9))
    assert taken(ahead, one) == records(3, 9)
    assert (ahead.records, ahead.bytes) == (0, 0)


def test_giving_up_a_partition_frees_its_room():
    ahead, one, other = Ahead(LIMITS), follower(), follower()
    ahead.keep(one, 1, records(1, 21))
    ahead.keep(other, 1, records(1, 11))
    ahead.give_up(one)
    assert ahead.records == 10
    one.next = 1
    assert ahead.take(one) == []
    ahead.keep(one, 5, records(5, 7))
    assert (one.ahead_first, one.ahead_next) == (5, 7)
