"""Running time: the waits of a green thread are not in it, and others' work is not either."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import gevent
import pytest
from greenlet import gettrace

from dafka.hub.hub import get_hub
from dafka.hub.running_time import is_measured, running_time
from dafka.hub.worker import Worker


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    """They take long in a process of tests, and are in the time of the code that runs then."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def work(seconds: float) -> float:
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        pass
    return seconds


def in_hub(function):
    return get_hub().run(function)


def test_waits_and_the_work_of_others_do_not_count():
    def measure():
        others = [gevent.spawn(work, 0.1) for _ in range(3)]
        with running_time() as spent:
            work(0.01)
            gevent.joinall(others)
            gevent.sleep(0.05)
            work(0.01)
        return spent.seconds

    assert 0.02 <= in_hub(measure) < 0.25  # a collection of garbage may fall into it


def test_two_at_once_get_what_each_has_run():
    def measure(seconds):
        with running_time() as spent:
            for _ in range(5):
                work(seconds)
                gevent.sleep(0)
        return spent.seconds

    def both():
        return [one.get() for one in [gevent.spawn(measure, 0.002), gevent.spawn(measure, 0.04)]]

    short, long = in_hub(both)
    assert 0.01 <= short < 0.15 < 0.2 <= long


def test_work_in_the_worker_counts_and_nothing_is_measured_afterwards():
    worker = Worker()

    def measure():
        with running_time() as spent:
            assert is_measured() is spent
            assert worker.run(work, 0.03) == 0.03
            with pytest.raises(ZeroDivisionError):
                worker.run(lambda: work(0.01) / 0)
        assert is_measured() is None and gettrace() is None
        assert worker.run(gettrace) is None
        assert worker.run(is_measured) is None
        return spent.seconds

    assert 0.04 <= in_hub(measure) < 0.2


def test_a_block_within_a_block_counts_for_the_outer_one():
    def measure():
        with running_time() as outer, running_time() as inner:
            work(0.01)
        return outer.seconds, inner.seconds

    outer, inner = in_hub(measure)
    assert outer >= 0.01 and inner == 0.0
