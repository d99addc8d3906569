"""Events of a clear are gone through in pieces, whether somebody hears them or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from timing import until

from dafka.hub.hub import get_hub
from dafka.hub.turns import in_later_turn
from dafka.overlay.node.stores import events
from dafka.overlay.node.stores.events import Flow, pass_over
from dafka.overlay.stores.outputs import Changed, Cleared


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often something was put off to a later turn."""
    counted = [0]

    def count(go_on: Callable[[None], object]) -> None:
        counted[0] += 1
        in_later_turn(go_on)

    monkeypatch.setattr(events, "in_later_turn", count)
    return lambda: counted[0]


def made(count: int, seen: list[int], pauses) -> Iterator[int]:
    for number in range(count):
        seen.append(pauses())
        yield number


def most_in_a_turn(seen: list[int]) -> int:
    return max(seen.count(pause) for pause in set(seen))


@pytest.mark.parametrize("count", [0, 1, 1000, 10_500])
def test_events_that_nobody_hears_are_gone_through_in_many_turns(pauses, count):
    seen = list[int]()
    get_hub().run(pass_over, made(count, seen, pauses))
    until(lambda: len(seen) == count)
    if count:
        assert most_in_a_turn(seen) <= 1000


def test_an_event_behind_a_clear_is_delivered_behind_those_of_the_clear(pauses):
    seen, delivered = list[int](), list[object]()
    flow = Flow(delivered.extend)

    def add() -> None:
        flow.add(Cleared(made(1000, seen, pauses)))
        flow.add(Changed("behind"))

    get_hub().run(add)
    until(lambda: len(delivered) == 1001)
    assert delivered == [*range(1000), "behind"]
    assert most_in_a_turn(seen) <= 200
