from __future__ import annotations

import math
import time

import pytest

from compat.broker import Timespan, Timestamp, now

MOST = 2**63 - 1


def test_a_timespan_is_made_of_nanoseconds_or_of_seconds():
    assert Timespan(5).count() == 5
    assert Timespan(5.0).count() == 5 * 10**9
    assert Timespan(-0.1).count() == -(10**8)
    assert Timespan().count() == 0


def test_fractions_of_a_nanosecond_are_cut_off():
    assert Timespan(1.9e-9).count() == 1
    assert Timespan(-1.9e-9).count() == -1


def test_sums_and_products():
    assert Timespan(5) + Timespan(3) == Timespan(8)
    assert Timespan(5) - Timespan(8) == Timespan(-3)
    assert Timespan(5) * 3 == 3 * Timespan(5) == Timespan(15)


@pytest.mark.parametrize(("left", "right"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (MOST, 3), (-MOST - 1, 7)])
def test_division_rounds_towards_zero(left: int, right: int):
    quotient, rest = divmod(abs(left), abs(right))
    quotient *= 1 if (left < 0) == (right < 0) else -1
    rest *= 1 if left >= 0 else -1
    assert Timespan(left) / Timespan(right) == quotient
    assert Timespan(left) / right == Timespan(quotient)
    assert Timespan(left) % Timespan(right) == Timespan(left) % right == Timespan(rest)


def test_a_division_by_nothing_is_refused():
    with pytest.raises(ZeroDivisionError):
        Timespan(5) / Timespan(0)
    with pytest.raises(ZeroDivisionError):
        Timespan(5) % 0


@pytest.mark.parametrize("other", [1.5, "5", None])
def test_other_operands_are_refused(other: object):
    for operate in ("__add__", "__sub__", "__mul__", "__truediv__", "__mod__"):
        assert getattr(Timespan(5), operate)(other) is NotImplemented


@pytest.mark.parametrize(
    "made", [lambda: Timespan(MOST + 1), lambda: Timespan(1e30), lambda: Timespan(MOST) * 2]
)
def test_more_than_64_bits_are_refused(made):
    with pytest.raises(OverflowError, match="64 bits"):
        made()


@pytest.mark.parametrize("wrong", ["5", None, Timestamp()])
def test_a_timespan_of_anything_else_is_refused(wrong: object):
    with pytest.raises(TypeError, match="a Timespan is made of"):
        Timespan(wrong)


def test_order_equality_and_hash():
    assert Timespan(-1) < Timespan(0) <= Timespan(0) < Timespan(1)
    assert Timespan(1) > Timespan(0) >= Timespan(0)
    assert Timespan(1) != Timespan(2)
    assert Timespan(1) != 1
    assert len({Timespan(1), Timespan(1), Timestamp(Timespan(1))}) == 2
    with pytest.raises(TypeError):
        assert Timespan(1) < Timestamp()


def test_a_timestamp_is_made_of_a_timespan_or_of_seconds():
    assert Timestamp(Timespan(7)).time_since_epoch() == Timespan(7)
    assert Timestamp(2.5).time_since_epoch() == Timespan(2_500_000_000)
    assert Timestamp(2).time_since_epoch() == Timespan(2.0)
    assert Timestamp().time_since_epoch() == Timespan(0)
    with pytest.raises(TypeError, match="a Timestamp is made of"):
        Timestamp("today")


def test_text():
    assert repr(Timespan(-1500)) == "-1500ns"
    assert repr(Timestamp(Timespan(1500))) == "1500"


def test_now_is_the_time_of_day():
    before = time.time_ns()
    there = now().time_since_epoch().count()
    assert before <= there <= time.time_ns()


def test_times_that_are_none_are_named():
    for made in (Timespan, Timestamp):
        with pytest.raises(ValueError, match="a time is a number of seconds, not nan"):
            made(math.nan)
        for endless in (math.inf, -math.inf):
            with pytest.raises(OverflowError, match=r"a time has 64 bits, too few for -?inf"):
                made(endless)
