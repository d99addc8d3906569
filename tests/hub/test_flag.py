"""A flag: its waiters are woken, or go on when the time is over."""

from __future__ import annotations

import time
from itertools import pairwise

import gevent
import pytest

from dafka.hub import limits
from dafka.hub.flag import Flag


def begun(function, *arguments):
    """A green thread that has begun to wait."""
    green = gevent.spawn(function, *arguments)
    gevent.sleep(0)
    return green


def test_all_waiters_are_woken_and_later_ones_do_not_wait_until_it_is_cleared():
    flag = Flag()
    waiting = [begun(flag.wait, 100) for _ in range(3)]
    flag.set()
    flag.set()
    assert [green.get(timeout=100) for green in waiting] == [True] * 3
    assert flag.wait(100)
    flag.clear()
    assert not flag.wait(0)
    another = begun(flag.wait, 100)
    assert not another.dead
    flag.set()
    assert another.get(timeout=100)


def test_a_wait_ends_with_its_time_and_leaves_nothing_behind():
    flag = Flag()
    began = time.monotonic()
    waiting = [gevent.spawn(flag.wait, 0.02) for _ in range(3)]
    assert [green.get(timeout=100) for green in waiting] == [False] * 3
    assert time.monotonic() - began >= 0.015
    assert flag._waiting == []


def test_a_green_thread_that_is_killed_while_it_waits_is_forgotten():
    flag = Flag()
    dying, living = begun(flag.wait, 100), begun(flag.wait, 100)
    dying.kill()
    flag.set()
    assert living.get(timeout=100)
    assert flag._waiting == []


def test_a_flag_cleared_before_its_waiter_runs_has_woken_it_all_the_same():
    flag = Flag()
    waiting = begun(flag.wait, 100)
    flag.set()
    flag.clear()
    assert waiting.get(timeout=100)


def test_time_and_flag_in_the_same_moment_wake_once():
    for _ in range(50):
        flag = Flag()
        waiting = [gevent.spawn(flag.wait, 0.001) for _ in range(5)]
        setting = gevent.spawn_later(0.001, flag.set)
        gevent.joinall([*waiting, setting], timeout=100)
        assert all(type(green.value) is bool for green in waiting)


def test_very_many_whose_time_ends_at_once_are_woken_in_turns_of_milliseconds(monkeypatch):
    monkeypatch.setattr("dafka.hub.flag.limits.PACE_SECONDS", 0.0)  # one in each turn
    flag = Flag()
    turns = []
    waiting = [gevent.spawn(flag.wait, 0.02) for _ in range(50)]
    counting = gevent.get_hub().loop.check()
    counting.start(lambda: turns.append(sum(green.dead for green in waiting)))
    gevent.joinall(waiting, timeout=100)
    counting.close()
    assert [green.value for green in waiting] == [False] * 50
    assert max(after - before for before, after in pairwise([0, *turns])) <= 3


def test_very_many_that_are_woken_at_once_go_on_in_turns_of_milliseconds(monkeypatch):
    monkeypatch.setattr("dafka.hub.flag.limits.PACE_SECONDS", 0.0)  # one in each turn
    flags = [Flag() for _ in range(10)]
    turns, order = [], []

    def wait(number: int) -> None:
        assert flags[number % 10].wait(100)
        order.append(number)

    waiting = [begun(wait, number) for number in range(50)]
    counting = gevent.get_hub().loop.check()
    counting.start(lambda: turns.append(len(order)))
    for flag in flags:
        flag.set()
    gevent.joinall(waiting, timeout=100, raise_error=True)
    counting.close()
    assert order == sorted(range(50), key=lambda number: number % 10)
    assert max(after - before for before, after in pairwise(turns)) == 1


def test_a_wait_that_is_woken_later_has_been_woken_though_its_time_ends_before(monkeypatch):
    monkeypatch.setattr("dafka.hub.flag.limits.PACE_SECONDS", 0.0)
    flags = [Flag() for _ in range(50)]
    waiting = [gevent.spawn(flag.wait, 0.0) for flag in flags]
    gevent.sleep(0)  # all begin in one turn, before the time of any ends
    for flag in flags:
        flag.set()
    time.sleep(2 * limits.TICK_SECONDS)
    gevent.joinall(waiting, timeout=100, raise_error=True)
    assert [green.value for green in waiting] == [True] * 50


def test_a_shorter_wait_than_those_before_ends_before_them():
    flag = Flag()
    order = []
    waiting = [
        gevent.spawn(lambda seconds=seconds: (flag.wait(seconds), order.append(seconds)))
        for seconds in (0.12, 0.06, 0.001, 0.09)
    ]
    gevent.joinall(waiting, timeout=100)
    assert order == [0.001, 0.06, 0.09, 0.12]


def test_a_wait_may_be_for_ever_and_one_of_nan_seconds_is_refused():
    flag = Flag()
    green = begun(flag.wait, float("inf"))
    flag.set()
    assert green.get(timeout=100)
    flag.clear()
    with pytest.raises(ValueError, match="NaN"):
        flag.wait(float("nan"))
