"""Locks and queues of green threads: one at a time, in the order of asking."""

from __future__ import annotations

import gevent
import gevent.event

from dafka.hub.hub import get_hub
from dafka.hub.lines import FifoLock, KeyedFifoLocks, Lines


def test_a_lock_is_held_in_the_order_of_asking_also_when_a_waiting_green_thread_ends():
    def take_turns() -> list[int]:
        lock, order = FifoLock(), []

        def take(number: int) -> None:
            with lock:
                gevent.sleep(0.01)
                order.append(number)

        greens = [gevent.spawn(take, number) for number in range(6)]
        gevent.sleep(0.005)
        greens[2].kill()
        gevent.joinall(greens)
        with lock:
            order.append(99)
        return order

    assert get_hub().run(take_turns) == [0, 1, 3, 4, 5, 99]


def test_each_key_that_is_in_use_has_a_lock_of_its_own():
    def take_turns() -> list[object]:
        locks, order = KeyedFifoLocks(), []
        fast_are_done = gevent.event.Event()

        def take(key: str, number: int) -> None:
            with locks.held(key):
                if key == "slow":
                    assert fast_are_done.wait(60)
                else:
                    gevent.sleep(0)
                order.append((key, number))
                if len(order) == 3:
                    fast_are_done.set()

        greens = [gevent.spawn(take, key, number) for key in ("slow", "fast") for number in range(3)]
        gevent.joinall(greens, raise_error=True)
        assert len(locks) == 0
        return order

    keys = [[(key, number) for number in range(3)] for key in ("fast", "slow")]
    assert get_hub().run(take_turns) == [*keys[0], *keys[1]]


def test_queues_keep_their_order_for_green_threads_that_join_several_and_when_one_ends():
    def take_turns() -> list[object]:
        lines: Lines[str] = Lines()
        order: list[object] = []

        def take(number: int, *things: str) -> None:
            joined = [(thing, lines.join(thing)) for thing in things]
            try:
                while joined:
                    thing, place = joined[0]
                    place.wait()
                    gevent.sleep(0.002)
                    order.append((thing, number))
                    lines.leave(*joined.pop(0))
            finally:
                for thing, place in joined:
                    lines.leave(thing, place)

        asked = [(0, "a", "b"), (1, "b", "a"), (2, "a"), (3, "b", "a"), (4, "c")]
        greens = [gevent.spawn(take, *one) for one in asked]
        gevent.sleep(0.001)
        greens[2].kill()
        gevent.joinall(greens, raise_error=True)
        assert not any(thing in lines for thing in "abc")
        return order

    order = get_hub().run(take_turns)
    found = {thing: [number for one, number in order if one == thing] for thing in "abc"}
    assert found == {"a": [0, 1, 3], "b": [0, 1, 3], "c": [4]}
