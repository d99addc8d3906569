"""Allowances: Kafka's two ways to count, beside what they are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.broker.quotas.allowance import Rate, Tokens, Windows

WINDOWS = Windows()
LIMITS = st.floats(1e-3, 1e9)
USES = st.lists(st.tuples(st.floats(0, 30), st.floats(0, 5)), min_size=1, max_size=50)
"""Amounts in seconds of the limit, and the time that passes beyond what is to be waited."""


@given(limit=LIMITS, uses=USES, begins=st.floats(0, 1e6))
def test_a_user_that_waits_as_told_stays_below_twice_the_rate(limit, uses, begins):
    """Twice, because a large use is waited for as long as it takes beyond ten windows, and then forgotten."""
    rate, now, used = Rate(), begins, 0.0
    for amount, pause in uses:
        assert used <= limit * (2 * (now - begins + WINDOWS.number) + 30) * (1 + 1e-6)
        used += amount * limit
        now += rate.use(amount * limit, limit, WINDOWS, now) + pause


@given(limit=LIMITS, uses=USES)
def test_a_refused_amount_is_not_used(limit, uses):
    rate, now = Rate(), 0.0
    for amount, pause in uses:
        before = rate._used(WINDOWS, now)
        used, seconds = rate.use_if_within(amount * limit, limit, WINDOWS, now)
        if not used:
            assert seconds > 0
            assert rate._used(WINDOWS, now) == pytest.approx(before, rel=1e-6, abs=limit * 1e-6)
            assert before > 0
        now += pause


def test_the_wait_is_what_brings_the_rate_down_to_the_limit():
    """1500 in ten seconds are 150 a second: in 15 seconds they are 100."""
    assert Rate().use(1500, 100, WINDOWS, 1.0) == pytest.approx(5.0)
    rate = Rate()
    assert [round(rate.use(1500, 100, WINDOWS, 1.0)) for _ in range(3)] == [5, 20, 35]


def test_windows_are_forgotten_when_all_of_them_have_passed():
    rate = Rate()
    rate.use(3000, 100, WINDOWS, 0.0)
    assert rate.owed(100, WINDOWS, 0.5) > 0
    assert rate.owed(100, WINDOWS, 10.9) > 0 and not rate.is_empty(100, WINDOWS, 10.9)
    assert rate.owed(100, WINDOWS, 11.0) == 0 and rate.is_empty(100, WINDOWS, 11.0)
    assert rate.use(1000, 100, WINDOWS, 11.0) == 0


def test_a_rate_is_over_ten_windows_at_least_and_the_one_under_way():
    rate = Rate()
    for second in range(20):  # 90 a second for ever are within 100
        assert rate.use(90, 100, WINDOWS, float(second)) == 0
    assert rate.use(500, 100, WINDOWS, 20.0) > 0


def test_other_windows_count_when_they_are_given():
    short = Windows(3, 0.5)
    assert short.before == 1.0
    assert Rate().use(150, 100, short, 0.0) == pytest.approx(0.5)
    rate = Rate()
    rate.use(1000, 100, short, 0.0)
    assert rate.owed(100, short, 1.5) == 0


def test_an_amount_above_the_limit_may_be_used_when_nothing_else_is():
    rate = Rate()
    uses = [rate.use_if_within(5000, 100, WINDOWS, now) for now in (0.0, 5.0, 11.0)]
    assert [one.used for one in uses] == [True, False, True]
    assert rate.owed(100, WINDOWS, 11.0) > 0


def test_a_limit_that_is_raised_counts_at_once():
    rate = Rate()
    assert rate.use(3000, 100, WINDOWS, 0.0) == pytest.approx(20.0)
    assert rate.use(0, 300, WINDOWS, 0.0) == 0.0


def test_a_rate_has_a_bounded_number_of_windows():
    rate = Rate()
    for second in range(100):
        rate.use(1, 100, WINDOWS, float(second))
    assert len(rate._windows) == WINDOWS.number + 1


def test_tokens_may_be_overdrawn_once_and_come_back_with_the_rate():
    tokens = Tokens()
    assert tokens.is_empty(5, WINDOWS, 100.0)
    assert tokens.use_if_within(60, 5, WINDOWS, 100.0) == (True, 0.0)  # of 55 at first
    assert tokens.use_if_within(1, 5, WINDOWS, 100.0) == (False, 1.0)
    assert tokens.use_if_within(1, 5, WINDOWS, 101.0) == (True, 0.0)
    assert tokens.use(4, 5, WINDOWS, 101.0) == pytest.approx(1.0)
    assert tokens.owed(5, WINDOWS, 101.5) == pytest.approx(0.5)
    assert not tokens.is_empty(5, WINDOWS, 101.5) and tokens.is_empty(5, WINDOWS, 200.0)
