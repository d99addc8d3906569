"""HEADs come often while something is new, and more and more rarely while nothing is."""

from __future__ import annotations

from math import inf

from dafka.roles.heads import HeadPace


def sent(pace: HeadPace, now: float, times: int, *, quiet: bool = True) -> list[float]:
    """The times of the next HEADs."""
    found = []
    for _ in range(times):
        pace.sent(now, quiet=quiet)
        now = pace.next
        found.append(now)
    return found


def test_no_head_is_due_before_there_is_anything():
    assert HeadPace(1.0, 16.0).next == inf


def test_each_takes_twice_as_long_as_the_one_before_up_to_the_longest():
    pace = HeadPace(1.0, 10.0)
    pace.something_new(100.0)
    assert pace.next == 101.0
    assert sent(pace, 101.0, 6) == [102.0, 104.0, 108.0, 116.0, 126.0, 136.0]


def test_they_keep_the_interval_while_somebody_waits():
    pace = HeadPace(1.0, 10.0)
    pace.something_new(0.0)
    assert sent(pace, 1.0, 3, quiet=False) == [2.0, 3.0, 4.0]


def test_something_new_brings_the_next_one_forward_and_never_puts_it_off():
    pace = HeadPace(1.0, 10.0)
    pace.something_new(0.0)
    sent(pace, 1.0, 5)
    pace.something_new(20.0)
    assert pace.next == 21.0
    pace.something_new(20.5)
    assert pace.next == 21.0
    pace.at_once(20.5)
    assert pace.next == 20.5
    assert sent(pace, 20.5, 2) == [21.5, 23.5]


def test_an_interval_above_the_longest_stays_as_it_is():
    pace = HeadPace(20.0, 10.0)
    pace.something_new(0.0)
    assert sent(pace, 20.0, 2) == [40.0, 60.0]
