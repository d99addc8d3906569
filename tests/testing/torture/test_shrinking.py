"""Shrinking finds a smallest part of the faults that still fails."""

from __future__ import annotations

import random

import pytest

from dafka.testing import Fault
from dafka.testing.torture.shrinking import shrink


def faults(count):
    return [Fault("produce t-0", number + 1, "lost_answer") for number in range(count)]


@pytest.mark.parametrize("seed", range(30))
def test_exactly_those_that_are_needed_remain_whichever_they_are(seed):
    random_ = random.Random(seed)
    every = faults(random_.randint(1, 60))
    needed = sorted(random_.sample(every, random_.randint(1, min(5, len(every)))))
    asked = []

    def fails(some):
        asked.append(some)
        return set(needed) <= set(some)

    shrunk = shrink(every, fails)
    assert (shrunk.faults, shrunk.minimal) == (needed, True)
    assert shrunk.runs == len(asked) and len({tuple(some) for some in asked}) == len(asked)
    assert shrunk.runs <= 8 + 4 * len(needed) * len(every).bit_length()


def test_no_fault_of_what_remains_can_be_left_out_even_if_they_need_each_other_oddly():
    every = faults(12)

    def fails(some):  # an even number of those with odd numbers, and the fourth one
        return every[3] in some and sum(one.call % 2 for one in some) % 2 == 0

    found = shrink(every, fails).faults
    assert fails(found)
    assert not any(fails([other for other in found if other is not one]) for one in found)


def test_a_failure_without_faults_shrinks_to_no_faults():
    assert shrink(faults(5), lambda some: True).faults == []
    assert shrink([], lambda some: True).faults == []


def test_a_failure_that_does_not_happen_again_is_not_shrunk():
    assert shrink(faults(5), lambda some: False) is None


def test_it_ends_after_a_number_of_runs_with_what_it_has():
    every = faults(64)
    shrunk = shrink(every, lambda some: every[40] in some and every[2] in some, runs=6)
    assert (shrunk.runs, shrunk.minimal) == (6, False)
    assert {every[40], every[2]} <= set(shrunk.faults) < set(every)


def test_it_ends_after_a_time_with_what_it_has():
    now = iter(range(1000))
    shrunk = shrink(faults(64), lambda some: len(some) > 20, seconds=5, clock=lambda: next(now))
    assert not shrunk.minimal and 20 < len(shrunk.faults) < 64
