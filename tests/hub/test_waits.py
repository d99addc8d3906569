"""Times to wait and intervals as callers give them."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from math import inf, nan

import pytest

from dafka.hub.waits import LONGEST, bounded_wait, interval_of, wait_of


@pytest.mark.parametrize(
    ("given", "wait"),
    [
        (None, None),
        (inf, None),
        (10**400, None),
        (0, 0.0),
        (2, 2.0),
        (0.5, 0.5),
        (-1, -1.0),
        (-inf, -inf),
        (Fraction(1, 4), 0.25),
    ],
)
def test_infinity_and_none_are_for_ever_and_all_other_numbers_are_seconds(given, wait):
    assert wait_of(given) == wait


@pytest.mark.parametrize("check", [wait_of, bounded_wait, lambda value: interval_of(value, "timeout")])
@pytest.mark.parametrize("given", [nan, -nan, float("nan")])
def test_nan_is_no_time(check, given):
    with pytest.raises(ValueError, match=r"timeout is a number of seconds.*, not nan"):
        check(given)


@pytest.mark.parametrize("check", [wait_of, bounded_wait, lambda value: interval_of(value, "timeout")])
@pytest.mark.parametrize("given", ["1", b"1", True, timedelta(seconds=1), [], 1j])
def test_a_time_is_a_number(check, given):
    said = f"timeout is a number of seconds.*, not {type(given).__name__}: {re.escape(repr(given))}"
    with pytest.raises(TypeError, match=said):
        check(given)


def test_infinity_is_thirty_years_and_none_refused_if_a_number_is_needed():
    assert bounded_wait(inf) == bounded_wait(1e300) == LONGEST
    assert bounded_wait(3) == 3.0
    with pytest.raises(TypeError, match=r"timeout_ms is a number of milliseconds, not NoneType"):
        bounded_wait(None, "timeout_ms", "milliseconds")


def test_an_interval_is_in_its_bounds():
    assert interval_of(0, "retry") == 0.0
    assert interval_of(5, "pause", least=5, most=5) == 5.0
    for given in (-0.1, inf, -inf, LONGEST + 1):
        with pytest.raises(
            ValueError, match=r"retry is a number of seconds of 0 or more, at most 1e\+09, not"
        ):
            interval_of(given, "retry")
    with pytest.raises(ValueError, match=r"pause is a number of seconds above 0, at most 10, not 0"):
        interval_of(0, "pause", above=True, most=10)
