"""A partition as it is followed: its state before anything has come, and the end of its gap."""

from __future__ import annotations

from collections import deque

from dafka.roles.follower import NEVER, Follower, State


def follower(start: int = 5) -> Follower:
    return Follower(b"hello", b"A" * 32, start, 100, 256)


def test_a_new_one_is_up_to_date_and_nothing_is_under_way():
    one = follower()
    assert (one.next, one.end, one.behind) == (5, 5, False)
    assert (one.state, one.alarm, one.untried) == (State.IDLE, NEVER, True)
    assert (one.reserved_records, one.reserved_bytes, one.failures) == (0, 0, 0)


def test_it_is_behind_when_more_is_known_of_than_was_taken():
    one = follower()
    one.end = 6
    assert one.behind
    one.next = 6
    assert not one.behind


def test_its_gap_ends_at_what_is_kept_ahead_or_at_the_end():
    one = follower()
    one.end = 20
    assert one.gap_end == 20
    one.ahead = deque([[b"x"] * 3])
    one.ahead_first, one.ahead_next = 12, 15
    assert one.gap_end == 12
