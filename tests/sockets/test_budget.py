"""Which peers of a socket may be read when they hold much."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import pytest
from sockets.serving import in_hub

from dafka.sockets import limits
from dafka.sockets.budget import Budget


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECEIVED_OCTETS", 1000)
    monkeypatch.setattr(limits, "RECEIVED_FAIR_OCTETS", 100)


def hub_side(test: Callable[[], None]) -> Callable[[], None]:
    """Run a test in the hub, where budgets are used."""

    def run() -> None:
        in_hub(test)

    run.__name__ = test.__name__
    return run


def reading(budget: Budget, peer: str) -> gevent.Greenlet:
    green = gevent.spawn(budget.next_read, peer)
    gevent.sleep(0)
    return green


def settled(*greens: gevent.Greenlet) -> list[bool]:
    for _ in range(5):
        gevent.sleep(0)
    return [green.ready() for green in greens]


@hub_side
def test_below_the_limit_everybody_reads():
    budget = Budget()
    budget.charge("a", 900)
    assert budget.next_read("a") == budget.next_read("b") == limits.READ_LEAST_OCTETS
    assert not budget.waiting
    assert budget.is_crowded


@hub_side
def test_reads_are_smaller_where_little_is_left():
    budget = Budget()
    limits.RECEIVED_OCTETS = 64 * limits.READ_OCTETS + 64
    assert budget.next_read("a") == limits.READ_OCTETS
    budget.charge("a", 32 * limits.READ_OCTETS)
    assert budget.next_read("a") == limits.READ_OCTETS // 2 + 1
    assert not budget.is_crowded


@hub_side
def test_at_the_limit_small_shares_read_and_one_large_message_goes_on():
    budget = Budget()
    budget.charge("first", 500)
    budget.charge("second", 400)
    budget.charge("third", 300)
    budget.charge("small", 99)
    assert budget.next_read("small") == budget.next_read("new") == limits.READ_LEAST_OCTETS
    second = reading(budget, "second")
    third = reading(budget, "third")
    assert settled(second, third) == [True, False]  # of those that wait, the one that began first
    assert budget.waiting == 1
    budget.charge("second", 2000)
    assert budget.next_read("second") == limits.READ_OCTETS
    assert settled(third) == [False]
    budget.charge("second", 0, anew=True)  # complete: there is room
    assert settled(third) == [True]


@hub_side
def test_the_next_goes_on_when_the_one_that_went_on_is_complete():
    budget = Budget()
    for peer in ("a", "b", "c"):
        budget.charge(peer, 600)
    greens = [reading(budget, peer) for peer in ("b", "c", "a")]
    assert settled(*greens) == [True, False, False]
    budget.charge("b", 600, anew=True)  # of the next message
    assert settled(*greens) == [True, False, True]  # now the oldest that waits
    budget.charge("a", 0)
    assert budget.used == 1200
    assert settled(*greens) == [True, True, True]


@hub_side
def test_one_that_leaves_makes_room():
    budget = Budget()
    budget.charge("a", 600)
    budget.charge("b", 600)
    first, other = reading(budget, "a"), reading(budget, "b")
    assert settled(first, other) == [True, False]
    other.kill()
    assert not budget.waiting
    other = reading(budget, "b")
    assert settled(other) == [False]
    budget.charge("a", 0)
    assert settled(other) == [True]
    budget.charge("b", 0)
    assert budget.used == 0


@hub_side
def test_long_held_charges_are_told_the_oldest_first():
    budget = Budget()
    budget.charge("a", 10)
    budget.charge("b", 10)
    budget.charge("a", 20)  # still the same message
    later = 1e12
    assert budget.held_since(later) == ["a", "b"]
    budget.charge("a", 5, anew=True)
    assert budget.held_since(later) == ["b", "a"]
    assert budget.held_since(0.0) == []
