"""Room and credit: room set aside by fetches, room for live records, how much one fetch asks for."""

from __future__ import annotations

import pytest

from dafka.roles.follower import Follower
from dafka.roles.room import Room

PLENTY = 10**9


def follower(*, window: int = 10, record_bytes: int = 1, untried: bool = False) -> Follower:
    one = Follower(b"topic", b"A" * 32, 0, window, record_bytes)
    one.untried = untried
    return one


def room(records: int, size: int = PLENTY, fetches: int = 100) -> Room:
    one = Room(fetches)
    one.set(records, size)
    return one


def test_delivered_records_take_room_until_it_is_given_back():
    one = room(10, 1000)
    one.use(3, 300)
    assert (one.records, one.bytes) == (7, 700)
    one.give_back(2, 200)
    assert (one.records, one.bytes) == (9, 900)


def test_room_set_aside_by_a_fetch_is_for_its_own_partition_only():
    one, mine, other = room(100, 1000), follower(record_bytes=20), follower()
    one.reserve(mine, 10)
    assert one.for_records_of(mine) == (100, 1000)
    assert one.for_records_of(other) == (90, 800)


def test_setting_aside_anew_takes_the_place_of_what_was_set_aside():
    one, mine = room(100, 1000), follower(record_bytes=20)
    one.reserve(mine, 10)
    one.reserve(mine, 4)
    assert (one.reserved_records, one.reserved_bytes) == (4, 80)
    one.reserve(mine, 0)
    assert (one.reserved_records, one.reserved_bytes) == (0, 0)


@pytest.mark.parametrize("record_bytes", [1, 30, 5000])
def test_half_of_the_room_is_never_set_aside(record_bytes):
    one = room(100, 1000)
    fetching = []
    while len(fetching) < 1000:
        next_one = follower(record_bytes=record_bytes)
        if not one.has_credit_for(next_one):
            break
        one.reserve(next_one, one.window(next_one, fetch_bytes=PLENTY))
        fetching.append(next_one)
    records, size = one.for_records_of(follower())
    assert fetching
    assert records >= 50
    assert size >= 500


def test_the_last_place_can_be_fetched_into():
    assert room(1, 1).has_credit_for(follower(record_bytes=5000))
    assert not room(0, 1).has_credit_for(follower())
    assert not room(1, 0).has_credit_for(follower())


def test_a_record_needs_credit_for_all_of_it_while_other_fetches_are_under_way():
    one, large = room(100, 1000), follower(record_bytes=300)
    one.reserve(follower(record_bytes=100), 3)
    assert not one.has_credit_for(large)
    assert one.has_credit_for(follower(record_bytes=200))


@pytest.mark.parametrize(
    ("records", "size", "fetch_bytes", "asked"),
    [
        (1000, PLENTY, PLENTY, 10),  # the window of the partition
        (8, PLENTY, PLENTY, 4),
        (1000, 14, PLENTY, 3),  # of 2 bytes each
        (1000, PLENTY, 10, 5),
        (1000, PLENTY, 1, 1),
        (1, PLENTY, PLENTY, 1),
    ],
)
def test_a_fetch_asks_for_what_it_has_credit_for(records, size, fetch_bytes, asked):
    assert room(records, size).window(follower(record_bytes=2), fetch_bytes) == asked


def test_all_fetches_there_may_be_find_credit_for_partitions_that_may_not_exist():
    one = room(1000, 100_000, fetches=50)
    for _ in range(50):
        unknown = follower(window=500, record_bytes=10, untried=True)
        assert one.has_credit_for(unknown)
        count = one.window(unknown, fetch_bytes=PLENTY)
        assert count == 10
        one.reserve(unknown, count)
