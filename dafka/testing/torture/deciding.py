"""Decisions about each call of a broker with faults, shared by all of its clients. Hub side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from gevent.event import Event

from dafka.broker.interface.broker import Error, TopicPartition
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.testing.torture.history import NO_OFFSETS, NOTHING, History
from dafka.testing.torture.plan import Fault, Faults, partition_point

BEFORE = frozenset({"lost_request", "refused", "disconnect", "restart"})  # the request is not carried out
BEHIND = frozenset({"lost_answer", "cut_answer", "half_open"})  # it is, and the client is not told
WHOLE = BEFORE | BEHIND | {"slow_answer"}  # faults of a request as a whole

T = TypeVar("T")

Ranges = Mapping[TopicPartition, tuple[int, int]]


class CutError(ConnectionAbortedError):
    """Ends the connection of a client over TCP; the listener closes it, as after any OSError."""


class Link(Protocol):
    """The faults of a client's connection over TCP."""

    def cut_next(self) -> None:
        """Send the half of the next answer, and end the connection."""

    def slow_next(self, seconds: float) -> None:
        """Send the next answer in pieces, in that time."""

    def silence(self) -> None:
        """Send nothing from now on, and stay open."""

    def cut(self) -> None:
        """End the connection."""


class Chaos:
    """The decisions about the calls, and their history: shared by all clients of a broker."""

    def __init__(self, faults: Faults, history: History) -> None:
        self.faults = faults
        self.history = history
        self.calm = False  # no faults from now on
        self.links: set[Link] = set()
        self.refusals = 0  # connections that are still to be closed at once
        self.broker: Any = None  # the one that runs now
        self.restart: Callable[[], object] = lambda: None  # restarts it; waits as a green thread
        self.started = Event()  # not set while it restarts
        self.started.set()
        self._calls: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    def decide(self, point: str) -> tuple[int, Fault | None]:
        """Count a call at a point; its number, and the fault that it meets."""
        self._calls[point] = call = self._calls[point] + 1
        kind = None if self.calm else self.faults.kind(point, call)
        return call, None if kind is None else Fault(point, call, kind)

    def name(self, client_id: str) -> str:
        """A name for a client, by the order of their arrival: client ids of kafka-python are counted in the
        whole process, and would be others in each test."""
        stem = re.sub(r"-\d+$", "", client_id) or "client"
        self._names[stem] += 1
        return f"{stem}-{self._names[stem]}"

    @property
    def restarting(self) -> bool:
        """Whether the broker restarts at the moment."""
        return not self.started.is_set()

    def restarted(self, broker: object) -> bool:
        """Whether the broker is not this one any more, or will not be."""
        return self.restarting or self.broker is not broker

    def begin_restart(self) -> None:
        """Restart the broker, unless that is under way."""
        if not self.restarting:
            self.started.clear()
            self.broker.hub.spawn(self._restart)

    def _restart(self) -> None:
        try:
            with suppress(BrokerStoppedError):  # the test has stopped it
                self.restart()
        finally:
            self.started.set()

    def repeated(self, call: Callable[[], T]) -> T:
        """Make a call that does no harm if it is made twice, again if a restart has interrupted it."""
        while True:
            self.started.wait()
            broker = self.broker
            try:
                return call()
            except BrokerStoppedError:
                if not self.restarted(broker):
                    raise

    def cut_all(self) -> None:
        """End all connections."""
        for link in list(self.links):
            link.cut()


class Calls:
    """One request for several partitions: a call at the point of each."""

    def __init__(self, chaos: Chaos, client: str, operation: str, keys: Sequence[TopicPartition]) -> None:
        self._chaos = chaos
        self._client = client
        self._operation = operation
        self.keys = keys
        self.ranges: Ranges = NO_OFFSETS
        self._numbers: dict[TopicPartition, int] = {}
        self.met: dict[TopicPartition, Fault] = {}
        for key in keys:
            number, fault = chaos.decide(partition_point(operation, *key))
            self._numbers[key] = number
            if fault is not None:
                self.met[key] = fault

    def drop(self, impossible: Callable[[str], bool]) -> None:
        """Forget the faults that make no sense here."""
        self.met = {key: one for key, one in self.met.items() if not impossible(one.kind)}

    def whole(self) -> Fault | None:
        """The fault that meets the request as a whole, and then is the only one."""
        for key, fault in self.met.items():
            if fault.kind in WHOLE:
                self.met = {key: fault}
                return fault
        return None

    def note(self, errors: Mapping[TopicPartition, Error | None] | None = None) -> None:
        """Note what was done. ``errors`` is what the client was told; None: by the fault of the whole."""
        history = self._chaos.history
        for fault in self.met.values():
            history.happens(fault)
        whole = next((one.kind for one in self.met.values() if one.kind in WHOLE), "")
        for key in self.keys:
            unsaid = NOTHING if whole in BEFORE | BEHIND else "ok"
            told = unsaid if errors is None else told_of(errors[key])
            history.add(
                self._client,
                partition_point(self._operation, *key),
                self._numbers[key],
                told,
                key in self.ranges,
                {key: self.ranges[key]} if key in self.ranges else NO_OFFSETS,
                self.met.get(key),
            )


def told_of(error: Error | None) -> str:
    """The answer to a client, in the words of the history."""
    return "ok" if error is None else error.__name__
