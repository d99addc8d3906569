"""One at a time, in the order of asking."""

from __future__ import annotations

import gevent

from dafka.broker.turns import KeyedTurns, Turns
from dafka.mesh.hub import get_hub


def test_turns_are_taken_in_the_order_of_asking_also_when_one_is_given_up():
    def take_turns() -> list[int]:
        turns, order = Turns(), []

        def take(number: int) -> None:
            with turns.turn():
                gevent.sleep(0.01)
                order.append(number)

        greens = [gevent.spawn(take, number) for number in range(6)]
        gevent.sleep(0.005)
        greens[2].kill()
        gevent.joinall(greens)
        with turns.turn():
            order.append(99)
        return order

    assert get_hub().run(take_turns) == [0, 1, 3, 4, 5, 99]


def test_each_key_has_turns_of_its_own_while_somebody_is_busy_with_it():
    def take_turns() -> list[object]:
        turns, order = KeyedTurns(), []

        def take(key: str, number: int) -> None:
            with turns.turn(key):
                gevent.sleep(0.02 if key == "slow" else 0)
                order.append((key, number))

        greens = [gevent.spawn(take, key, number) for key in ("slow", "fast") for number in range(3)]
        gevent.joinall(greens, raise_error=True)
        assert len(turns) == 0
        return order

    keys = [[(key, number) for number in range(3)] for key in ("fast", "slow")]
    assert get_hub().run(take_turns) == [*keys[0], *keys[1]]
