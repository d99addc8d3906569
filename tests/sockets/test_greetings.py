"""Connections whose handshake is under way: how many there are, for how long, and which of them has to go."""

from __future__ import annotations

from types import SimpleNamespace

import gevent
import pytest
from timing import until

from dafka.sockets.greetings import Greetings

Ended = list[tuple[str, str]]


@pytest.fixture
def limits() -> SimpleNamespace:
    return SimpleNamespace(HANDSHAKES=2, HANDSHAKE_LEAST_SECONDS=0.0, HANDSHAKE_SECONDS=60.0)


def greetings_of(limits: SimpleNamespace) -> tuple[Greetings[str], Ended]:
    ended: Ended = []
    return Greetings(limits, lambda name, cause, detail: ended.append((name, cause))), ended


def test_there_is_room_up_to_the_bound(limits):
    greetings, ended = greetings_of(limits)
    for name in ("a", "b"):
        greetings.make_room()
        greetings.add(name)
    assert list(greetings) == ["a", "b"] and not ended


def test_one_more_ends_the_oldest(limits):
    greetings, ended = greetings_of(limits)
    for name in ("a", "b", "c"):
        greetings.make_room()
        greetings.add(name)
    assert list(greetings) == ["b", "c"] and ended == [("a", "handshakes")]


def test_nobody_is_ended_before_the_least_time_and_the_next_one_waits(limits):
    limits.HANDSHAKE_LEAST_SECONDS = 60.0
    greetings, ended = greetings_of(limits)
    greetings.add("a")
    greetings.add("b")
    waiting = gevent.spawn(greetings.make_room)
    gevent.sleep(0.02)
    assert not waiting.ready()
    greetings.remove("b")
    waiting.get(timeout=60)
    assert list(greetings) == ["a"] and not ended


def test_those_that_take_too_long_are_ended_the_others_stay(limits):
    greetings, ended = greetings_of(limits)
    greetings.add("slow")
    limits.HANDSHAKE_SECONDS = 0.01
    until(lambda: gevent.sleep(0.005) or greetings.end_late() or ended)
    assert ended[0] == ("slow", "handshake-slow")
    limits.HANDSHAKE_SECONDS = 60.0
    greetings.add("quick")
    greetings.remove("slow")
    ended.clear()
    greetings.end_late()
    assert list(greetings) == ["quick"] and not ended
