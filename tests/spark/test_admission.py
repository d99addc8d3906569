"""How much one micro-batch takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dafka.spark.admission import Holdback, available, limited

starts = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 1000)), min_size=1, max_size=6)


@given(starts, st.integers(1, 500))
def test_a_limit_is_kept_and_every_batch_gets_on(pairs, most):
    start = {("t", number): begin for number, (begin, _) in enumerate(pairs)}
    latest = {("t", number): begin + size for number, (begin, size) in enumerate(pairs)}
    while available(start, latest):
        ends = limited(start, latest, most)
        assert all(start[place] <= end <= latest[place] for place, end in ends.items())
        taken = available(start, ends)
        # A share below one offset is rounded up, so that small partitions get on, too.
        assert 0 < taken <= most + len(pairs)
        start = ends


def test_shares_are_in_proportion():
    start, latest = {("t", 0): 0, ("t", 1): 0}, {("t", 0): 900, ("t", 1): 100}
    assert limited(start, latest, 100) == {("t", 0): 90, ("t", 1): 10}


def test_few_offsets_are_held_back_until_there_are_more():
    holdback = Holdback(10, 60)
    assert holdback.holds(9, now=0)
    assert holdback.holds(9, now=59)
    assert not holdback.holds(10, now=59.5)
    assert holdback.holds(3, now=100)


def test_and_not_for_longer_than_allowed():
    holdback = Holdback(10, 60)
    assert holdback.holds(9, now=0)
    assert not holdback.holds(9, now=60)


def test_without_a_minimum_nothing_is_held_back():
    assert not Holdback(None, 60).holds(1, now=0)
