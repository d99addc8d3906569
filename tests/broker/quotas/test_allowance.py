"""An allowance: whoever waits as told stays within it, and nobody waits for longer than that needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.broker.quotas.allowance import BURST_SECONDS, Allowance

LIMITS = st.floats(1e-3, 1e9)
USES = st.lists(st.tuples(st.floats(0, 30), st.floats(0, 5)), min_size=1, max_size=50)
"""Amounts in seconds of the limit, and the time that passes beyond what is to be waited."""


@given(limit=LIMITS, uses=USES, begins=st.floats(0, 1e6))
def test_who_waits_as_told_uses_no_more_than_is_allowed_and_a_burst(limit, uses, begins):
    allowance, now, used = Allowance(), begins, 0.0
    for amount, pause in uses:
        # What was used until now, before this use, is bounded by the time that has passed.
        assert used <= limit * (now - begins + BURST_SECONDS) * (1 + 1e-6)
        used += amount * limit
        now += allowance.use(amount * limit, limit, now) + pause


@given(limit=LIMITS, uses=USES)
def test_nobody_waits_for_longer_than_that_needs(limit, uses):
    """The wait is over as soon as all of it has flowed out but for a burst, by a sum that is not kept."""
    allowance, now, inside = Allowance(), 0.0, 0.0
    for amount, pause in uses:
        inside += amount
        seconds = allowance.use(amount * limit, limit, now)
        assert seconds == pytest.approx(max(inside - BURST_SECONDS, 0.0), abs=1e-6)
        passed = seconds + pause
        now += passed
        inside = max(inside - passed, 0.0)


def test_several_that_share_it_and_do_not_wait_for_each_other_wait_the_longer():
    allowance = Allowance()
    assert [allowance.use(1500, 100, now=1.0) for _ in range(3)] == [5.0, 20.0, 35.0]


def test_a_limit_that_is_raised_counts_at_once():
    allowance = Allowance()
    assert allowance.use(3000, 100, now=0.0) == 20.0
    assert allowance.use(0, 300, now=0.0) == 0.0


def test_what_is_forgiven_is_not_waited_for():
    allowance = Allowance()
    allowance.use(1e9, 100, now=0.0)
    allowance.forgive(100, 3.0)
    assert allowance.use(0, 100, now=0.0) == 3.0
