"""Green threads that wait for a condition hear of every change."""

from __future__ import annotations

import gevent
import gevent.event
import pytest

from dafka.hub.changes import Changes


class Shelf:
    """Places that green threads wait for; a thread that takes one frees another one."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.free: set[str] = set()
        self.taken: list[str] = []

    def take(self, place: str, then: str = "") -> None:
        while place not in self.free:
            self.changes.wait()
        self.taken.append(place)
        if then:
            self.give(then)

    def give(self, place: str) -> None:
        self.free.add(place)
        self.changes.tell()


def test_a_change_by_a_woken_waiter_is_heard_by_one_woken_before_it() -> None:
    # With clear() and wait() on one event "first" never hears of its place: it waits again already
    # when "second", woken by the same change, gives it free.
    shelf = Shelf()
    waiting = [
        gevent.spawn(shelf.take, "first"),
        gevent.spawn(shelf.take, "second", then="first"),
        gevent.spawn(shelf.take, "third"),  # clears the event, where it is one
    ]
    gevent.idle()
    shelf.give("second")
    gevent.joinall(waiting[:2], timeout=60)
    assert shelf.taken == ["second", "first"]
    gevent.killall(waiting)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_places_given_on_from_one_to_the_next_reach_everybody_in_any_order(count: int) -> None:
    for backwards in (False, True):
        shelf = Shelf()
        numbers = range(count)
        waiting = [
            gevent.spawn(shelf.take, str(number), then=str(number + 1))
            for number in (reversed(numbers) if backwards else numbers)
        ]
        gevent.idle()
        shelf.give("0")
        gevent.joinall(waiting, timeout=60)
        assert shelf.taken == [str(number) for number in numbers]


def test_a_wait_ends_without_a_change_when_its_time_is_over() -> None:
    assert Changes().wait(0.001) is False


def test_a_change_before_a_wait_is_not_kept() -> None:
    changes = Changes()
    changes.tell()
    assert changes.wait(0.001) is False


def test_one_that_is_killed_while_it_waits_takes_nothing_from_the_others() -> None:
    shelf = Shelf()
    killed, waits = gevent.spawn(shelf.take, "one"), gevent.spawn(shelf.take, "one")
    gevent.idle()
    killed.kill()
    shelf.give("one")
    waits.join(timeout=60)
    assert shelf.taken == ["one"]
