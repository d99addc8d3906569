"""Connections that have something: in a short turn they go on at once, in a long one later."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import gevent.socket
import pytest

from dafka.hub import limits
from dafka.hub.hub import get_hub
from dafka.hub.readable import Readable
from dafka.hub.turns import in_later_turn, next_turn


class Gauge:
    """A turn that has lasted as long as a test says."""

    elapsed = 0.0

    @property
    def began(self) -> float:
        return time.monotonic() - self.elapsed


class Ends:
    """Both ends of a connection, of which one waits in the hub."""

    def __init__(self, turns: Any) -> None:
        ours, self.theirs = socket.socketpair()
        self.ours = gevent.socket.socket(fileno=ours.detach())
        self.readable = Readable(self.ours, turns)
        self.outcome: list[object] = []
        self.green = gevent.spawn(self._wait)
        gevent.sleep(0.01)

    def _wait(self) -> None:
        try:
            self.readable.wait()
            self.outcome.append(self.ours.recv(100))
        except OSError:
            self.outcome.append(OSError)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def gauge() -> Gauge:
    return Gauge()


@pytest.fixture
def ends(gauge: Gauge) -> Iterator[Ends]:
    made = get_hub().run(Ends, gauge)
    yield made
    get_hub().run(made.close)


def in_hub(test: Callable[[], None]) -> None:
    get_hub().run(test)


def test_a_connection_goes_on_in_the_turn_in_which_something_has_come(ends):
    def check() -> None:
        ends.theirs.send(b"x")
        next_turn()
        next_turn()
        assert ends.outcome == [b"x"]

    in_hub(check)


def test_a_connection_goes_on_later_if_the_turn_is_long(ends, gauge):
    def check() -> None:
        gauge.elapsed = 1.0
        told: list[object] = []
        ready = ends.readable._ready

        def noted() -> None:
            ready()
            told.append(list(ends.outcome))

        for _ in range(3):
            in_later_turn(lambda _: time.sleep(limits.PACE_SECONDS))  # others have theirs first
        ends.ours._read_event.callback = noted
        ends.theirs.send(b"x")
        for _ in range(6):
            next_turn()
        assert told == [[]]  # told once, and not gone on then
        assert ends.outcome == [b"x"]

    in_hub(check)


@pytest.mark.parametrize("elapsed", [0.0, 1.0])
def test_a_connection_that_is_closed_while_it_waits_goes_on_with_an_error(ends, gauge, elapsed: float):
    def check() -> None:
        gauge.elapsed = elapsed
        ends.ours.close()
        for _ in range(3):
            next_turn()
        assert ends.outcome == [OSError]

    in_hub(check)


def test_a_connection_that_is_closed_before_its_later_turn_goes_on_with_an_error(ends, gauge):
    def check() -> None:
        gauge.elapsed = 1.0
        ends.theirs.send(b"x")
        ends.readable._ready()
        ends.ours.close()
        for _ in range(3):
            next_turn()
        assert ends.outcome == [OSError]
        with pytest.raises(OSError, match="Bad file descriptor"):
            ends.readable.wait()

    in_hub(check)


def test_a_green_thread_that_is_killed_before_its_later_turn_stays_so(ends, gauge):
    def check() -> None:
        gauge.elapsed = 1.0
        ends.theirs.send(b"x")
        ends.readable._ready()
        ends.green.kill()
        for _ in range(3):
            next_turn()
        assert ends.outcome == []
        assert ends.green.dead

    in_hub(check)


def test_a_green_thread_waits_again_after_one_whose_time_is_over(gauge):
    def check() -> None:
        ours, theirs = gevent.socket.socketpair()
        readable = Readable(ours, gauge)
        with gevent.Timeout(0.01, False):
            readable.wait()
        gauge.elapsed = 1.0
        gevent.spawn_later(0.01, theirs.send, b"x")
        began = time.monotonic()
        readable.wait()
        assert ours.recv(10) == b"x"
        with gevent.Timeout(0.01, False):
            readable.wait()  # nothing is left of the first one
            raise AssertionError("it has not waited")
        assert time.monotonic() - began < 50
        ours.close()
        theirs.close()

    in_hub(check)


def test_connections_that_have_something_in_one_moment_do_not_make_one_long_turn():
    def check() -> None:
        turns = get_hub().turns
        made = [Ends(turns) for _ in range(100)]
        gone_on: list[float] = []

        def busy(one: Ends) -> None:
            one.readable.wait()
            gone_on.append(turns.elapsed)
            ends = time.monotonic() + 0.001
            while time.monotonic() < ends:
                pass

        greens = [gevent.spawn(busy, one) for one in made if not one.green.kill()]
        gevent.sleep(0.01)
        for one in made:
            one.theirs.send(b"x")
        gevent.joinall(greens)
        assert len(gone_on) == 100
        # Those of the later turns share them by themselves; none begins in a turn of many others.
        assert sorted(gone_on)[50] < 2 * limits.PACE_SECONDS
        for one in made:
            one.close()

    in_hub(check)
