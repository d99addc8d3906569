"""Waiting in tests: for conditions, and for records and groups of a TestBroker."""

from __future__ import annotations

import asyncio
import math

import pytest

from dafka.testing import async_wait_until, wait_until


def test_an_error_of_the_condition_is_raised():
    with pytest.raises(KeyError):
        wait_until(lambda: {}["x"], 5)
    assert wait_until(lambda: "found", 0) == "found"


def test_nan_is_no_time_to_wait_and_infinity_is_for_ever(dafka_broker):
    with pytest.raises(ValueError, match="timeout is a number of seconds, not nan"):
        wait_until(lambda: "found", float("nan"))
    with pytest.raises(ValueError, match="timeout is a number of seconds, not nan"):
        asyncio.run(async_wait_until(lambda: "found", float("nan")))
    looks = iter([False, False, True])
    assert wait_until(lambda: next(looks), float("inf"))
    for wait in (
        lambda: dafka_broker.wait_until(int, math.nan),
        lambda: dafka_broker.wait_for_records("t", timeout=math.nan),
        lambda: dafka_broker.wait_for_lag("g", timeout=math.nan),
        lambda: dafka_broker.wait_for_members("g", timeout=math.nan),
        lambda: dafka_broker.delay_fetches(math.nan),
        lambda: dafka_broker.clock.advance(math.nan),
    ):
        with pytest.raises(ValueError, match="nan"):
            wait()
