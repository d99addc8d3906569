"""Events of a store: its changes, as values for subscribers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from dafka.hub.hub import Hub
from dafka.hub.turns import in_later_turn
from dafka.overlay.node.inbox import Feed
from dafka.overlay.stores.outputs import Changed, Cleared
from dafka.overlay.values import Count, Timespan, Value

_AT_ONCE = 200  # events of a clear, in one turn
_PASSED_AT_ONCE = 1000  # that nobody hears


class StoreEvent(NamedTuple):
    """``kind``: insert, update, erase or expire. ``old`` is the value before an update.

    ``endpoint`` and ``number`` name the store object that has changed it, or are None.
    """

    kind: str
    store: str
    key: Value
    value: Value = None
    old: Value = None
    expiry: Timespan | None = None
    endpoint: str | None = None
    number: int | None = None


class StoreEvents(Feed[Value, StoreEvent]):
    """The events of one store from now on. Any thread may use it.

    One that falls ``capacity`` events behind is closed: ``get`` raises SlowSubscriber then.
    """

    def __init__(self, hub: Hub, capacity: int, closed: Callable[[StoreEvents], None]) -> None:
        super().__init__(hub, capacity, "disconnect")
        self._on_close = closed

    def get(self, timeout: float | None = None) -> StoreEvent:
        return event_of(self._take(timeout))

    def poll(self) -> list[StoreEvent]:
        return [event_of(value) for value in self._take_all()]

    def _left(self) -> None:
        self._on_close(self)


class Flow:
    """The events of a store on their way to ``deliver``, in order, a clear's in several turns. Hub side."""

    def __init__(self, deliver: Callable[[list[Value]], None]) -> None:
        self._deliver = deliver
        self._left: deque[Iterator[Value]] = deque()

    def add(self, output: Changed | Cleared) -> None:
        if isinstance(output, Cleared):
            self._left.append(output.events)
            if len(self._left) == 1:
                self._go_on(None)
        elif self._left:
            self._left.append(iter((output.event,)))
        else:
            self._deliver([output.event])

    def _go_on(self, _: object) -> None:
        room = _AT_ONCE
        while self._left and room:
            events = list(islice(self._left[0], room))
            if len(events) < room:
                self._left.popleft()
            room -= len(events)
            if events:
                self._deliver(events)
        if self._left:
            in_later_turn(self._go_on)


def pass_over(events: Iterator[Value]) -> None:
    """Go through the events of a clear that nobody hears, in later turns: its entries end with them, and a
    million at once would take longer than a turn may. Hub side."""

    def go_on(_: object) -> None:
        if len(list(islice(events, _PASSED_AT_ONCE))) == _PASSED_AT_ONCE:
            in_later_turn(go_on)

    go_on(None)


def event_of(value: Value) -> StoreEvent:
    """An event as the topic of store events has it."""
    match value:
        case ("insert", str() as store, key, new, expiry, *by):
            return StoreEvent("insert", store, key, new, None, _timespan(expiry), *_by(by))
        case ("update", str() as store, key, old, new, expiry, *by):
            return StoreEvent("update", store, key, new, old, _timespan(expiry), *_by(by))
        case (str() as kind, str() as store, key, *by):
            return StoreEvent(kind, store, key, None, None, None, *_by(by))
    raise ValueError(f"no event of a store: {value!r:.100}")


def _timespan(value: Value) -> Timespan | None:
    return value if isinstance(value, Timespan) else None


def _by(values: list[Value]) -> tuple[str | None, int | None]:
    match values:
        case [str() as endpoint, Count() as number]:
            return endpoint, int(number)
    return None, None
