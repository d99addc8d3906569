"""Signals while Spark works: the work is stopped from outside, and never in the middle of a call."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from dafka.spark.pipelines.interrupting import InterruptedWork, until_signal

SECONDS = 300


def never():
    raise AssertionError("nothing was to be stopped")


def test_results_and_exceptions_of_the_work_come_back():
    assert until_signal(lambda: 7, never) == 7
    with pytest.raises(ZeroDivisionError):
        until_signal(lambda: 1 // 0, never)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_work_and_what_it_returns_is_known(number):
    stopped = threading.Event()

    def work():
        os.kill(os.getpid(), number)
        assert stopped.wait(SECONDS)
        return "done so far"

    def stop():
        stopped.set()
        return True

    with pytest.raises(InterruptedWork) as caught:
        until_signal(work, stop)
    assert (caught.value.number, caught.value.result) == (number, "done so far")


def test_work_that_fails_when_it_is_stopped_has_no_result():
    stopped = threading.Event()

    def work():
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped.wait(SECONDS)
        raise ConnectionError("Java is gone")

    def stop():
        stopped.set()
        return True

    with pytest.raises(InterruptedWork) as caught:
        until_signal(work, stop)
    assert caught.value.result is None


def test_work_that_fails_because_the_signal_has_ended_what_it_needs_is_interrupted():
    def work():
        os.kill(os.getpid(), signal.SIGTERM)
        raise ConnectionError("Java is gone")

    with pytest.raises(InterruptedWork) as caught:
        until_signal(work, lambda: True)
    assert (caught.value.number, caught.value.result) == (signal.SIGTERM, None)


@pytest.mark.parametrize("ends", ["nothing to stop", "a second signal"])
def test_work_that_does_not_end_is_left_alone(ends):
    released = threading.Event()

    def work():
        os.kill(os.getpid(), signal.SIGTERM)
        released.wait(SECONDS)

    def stop():
        if ends == "a second signal":
            os.kill(os.getpid(), signal.SIGTERM)
        return ends == "a second signal"

    with pytest.raises(InterruptedWork) as caught:
        until_signal(work, stop, patience=SECONDS)
    assert not released.is_set()
    released.set()
    assert caught.value.result is None


def test_handlers_are_as_they_were_afterwards():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    until_signal(lambda: None, never)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
