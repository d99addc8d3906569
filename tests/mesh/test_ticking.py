"""Ticks: every node at its interval, a slice at a time, until it leaves."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from timing import each_time, short_turns, until

from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.mesh.node import Node
from dafka.mesh.ticking import Ticking


class Ticked(Node):
    def __init__(self, counts: Counter[Node], interval: float = 0.02) -> None:
        self.tick_interval = interval
        self.counts = counts

    def tick(self, now: float) -> None:
        self.counts[self] += 1


def call(tick: Callable[[float], Any], now: float) -> None:
    tick(now)


@pytest.fixture
def counts() -> Counter[Node]:
    return Counter()


@pytest.fixture
def rounds() -> list[None]:
    return []


@pytest.fixture
def ticking(rounds: list[None]) -> Iterator[Ticking]:
    one = Ticking(get_hub(), call, lambda: rounds.append(None))
    yield one
    get_hub().run(one.close)


def test_every_node_is_ticked_at_its_interval(ticking, counts):
    often, rarely = Ticked(counts, 0.02), Ticked(counts, 100.0)
    get_hub().run(ticking.add, often)
    get_hub().run(ticking.add, rarely)
    assert sorted(ticking.intervals) == [0.02, 100.0]
    until(lambda: counts[often] >= 5)
    assert counts[rarely] == 0


def test_many_nodes_are_ticked_a_slice_at_a_time(ticking, counts, rounds, monkeypatch):
    monkeypatch.setattr(limits, "TICKED_AT_ONCE", 3)
    nodes = [Ticked(counts) for _ in range(10)]
    get_hub().run(lambda: [ticking.add(node) for node in nodes])  # or the first has had some before the last
    until(lambda: all(counts[node] >= 3 for node in nodes))
    assert len(rounds) >= 2
    ticks = get_hub().run(lambda: [counts[node] for node in nodes])  # between two slices
    assert max(ticks) - min(ticks) <= 2


def test_a_node_that_has_left_is_ticked_no_longer(ticking, counts):
    staying, leaving = Ticked(counts), Ticked(counts)
    for node in (staying, leaving):
        get_hub().run(ticking.add, node)
    until(lambda: counts[leaving])
    get_hub().run(ticking.remove, leaving)
    ticks = counts[leaving]
    seen = counts[staying]
    until(lambda: counts[staying] >= seen + 3)
    assert counts[leaving] == ticks


def test_an_interval_ends_with_its_last_node_and_begins_anew(ticking, counts):
    node = Ticked(counts)
    get_hub().run(ticking.add, node)
    get_hub().run(ticking.remove, node)
    until(lambda: ticking.intervals == [])
    get_hub().run(ticking.add, node)
    until(lambda: counts[node] >= 2)


def test_after_closing_nobody_is_ticked(ticking, counts):
    node, other = Ticked(counts), Ticked(counts)
    get_hub().run(ticking.add, node)
    until(lambda: counts[node])
    get_hub().run(ticking.close)
    ticks = counts[node]
    again = Ticking(get_hub(), call, lambda: None)
    get_hub().run(again.add, other)
    until(lambda: counts[other] >= 3)
    get_hub().run(again.close)
    assert (counts[node], ticking.intervals) == (ticks, [])


def test_a_node_that_sleeps_is_not_ticked_until_it_is_time(ticking, counts):
    awake, asleep = Ticked(counts), Ticked(counts)
    asleep.sleeps_until = float("inf")
    for node in (awake, asleep):
        get_hub().run(ticking.add, node)
    until(lambda: counts[awake] >= 5)
    assert counts[asleep] == 0
    asleep.sleeps_until = 0.0
    until(lambda: counts[asleep])


class Listened(Ticked):
    sleeps_until = float("inf")

    def __init__(self, counts: Counter[Node], topic: bytes) -> None:
        super().__init__(counts)
        self.listened_topic = topic

    def roused(self, now: float) -> None:
        self.sleeps_until = 0.0


def test_those_who_sleep_are_roused_when_somebody_listens_to_their_topic(ticking, counts):
    here, there = Listened(counts, b"here"), Listened(counts, b"there")
    for node in (here, there):
        get_hub().run(ticking.add, node)
    get_hub().run(ticking.rouse, b"here")
    until(lambda: counts[here])
    assert counts[there] == 0
    get_hub().run(ticking.rouse, b"")
    until(lambda: counts[there])


def test_with_very_many_subscribed_topics_each_node_is_roused(ticking, counts, monkeypatch):
    monkeypatch.setattr(limits, "LISTENED_TOPICS", 2)
    node = Listened(counts, b"last")
    get_hub().run(ticking.add, node)

    def rouse_all() -> None:  # at once: in a round of its own each of them would be none too many
        for topic in (b"one", b"two", b"other"):
            ticking.rouse(topic)

    get_hub().run(rouse_all)
    until(lambda: counts[node])


class Busy(Ticked):
    """A node with so many partitions that a tick takes two milliseconds."""

    def tick(self, now: float) -> None:
        super().tick(now)
        ends = time.thread_time() + 0.002
        while time.thread_time() < ends:
            pass


@each_time
def test_nodes_whose_ticks_take_long_make_no_long_turn():
    counts: Counter[Node] = Counter()
    ticking = Ticking(get_hub(), call, lambda: None)
    nodes = [Busy(counts) for _ in range(60)]
    try:
        with short_turns():
            for node in nodes:
                get_hub().run(ticking.add, node)
            until(lambda: min(counts[node] for node in nodes) >= 2)
    finally:
        get_hub().run(ticking.close)
