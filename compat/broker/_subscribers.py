"""Subscribers: to the messages of topics, and to statuses."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from compat.broker._status import Error, Status
from compat.broker._topic import AnyTopic, topic_text
from compat.broker._values.conversion import to_immutable, to_python
from dafka.hub.waits import wait_of
from dafka.overlay.node import subscriber as overlay
from dafka.overlay.node.errors import Closed, Empty
from dafka.overlay.node.types import Message
from dafka.overlay.peering import statuses
from dafka.overlay.values import Value

Inner = TypeVar("Inner", overlay.Subscriber, overlay.StatusSubscriber)
S = TypeVar("S", bound="Receiver[Any]")


class Receiver(ABC, Generic[Inner]):
    """The base of both kinds of subscribers. Any thread may call it."""

    def __init__(self, internal_subscriber: Inner) -> None:
        self._subscriber: Inner | None = internal_subscriber

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *error: object) -> None:
        self.reset()

    def reset(self) -> None:
        """Get nothing more."""
        if self._subscriber is not None:
            self._subscriber.close()
            self._subscriber = None

    def get(self, *args: float) -> Any:
        """The next one, or several; it waits.

        ``get()``: the next one. ``get(0.5)``: the next one, or None after half a second; a float is seconds.
        ``get(3)``: a list of three; an int is a number. ``get(3, 0.5)``: a list of up to three, of those that
        come within half a second. Raises RuntimeError when the endpoint has been shut down.
        """
        match args:
            case ():
                return self._next(None)
            case (float() as seconds,):
                try:
                    return self._next(seconds)
                except Empty:
                    return None
            case (int() as count,) if count >= 0:
                return self._several(count, None)
            case (int() as count, float() | int() as seconds) if count >= 0:
                return self._several(count, seconds)
        raise TypeError(f"get takes a number (int), or seconds (float), or both in this order, not {args!r}")

    def available(self) -> int:
        """How many can be got without waiting."""
        return self._open.available

    def fd(self) -> int:
        """A descriptor that can be read from while something can be got: for select, poll and asyncio."""
        return self._open.fileno()

    def _several(self, count: int, seconds: float | None) -> list[Any]:
        seconds = wait_of(seconds, "get's time")
        deadline = None if seconds is None else time.monotonic() + seconds
        several: list[Any] = []
        while len(several) < count:
            try:
                several.append(self._next(None if deadline is None else max(0, deadline - time.monotonic())))
            except Empty:
                break
        return several

    def _next(self, timeout: float | None) -> Any:
        try:
            return self._shown(self._open.get(timeout))
        except Closed as error:
            raise RuntimeError("subscriber queue closed") from error

    @abstractmethod
    def _shown(self, message: Any) -> Any:
        """A message as the bindings show it."""

    @property
    def _open(self) -> Inner:
        """Raises AttributeError after :meth:`reset`, as the bindings do."""
        if self._subscriber is None:
            raise AttributeError(f"this {type(self).__name__} was reset")
        return self._subscriber


class Subscriber(Receiver[overlay.Subscriber]):
    """The messages on some topics, each a pair of the topic and an object (:meth:`Data.to_py`)."""

    _convert: Callable[[Value], Any] = staticmethod(to_python)

    def poll(self) -> list[tuple[str, Any]]:
        """All messages that are there, without waiting."""
        try:
            return [self._shown(message) for message in self._open.poll()]
        except Closed:
            return []

    def add_topic(self, topic: AnyTopic, block: bool = False) -> None:
        """Get the messages on this topic, too."""
        self._open.add_topic(topic_text(topic))

    def remove_topic(self, topic: AnyTopic, block: bool = False) -> None:
        """Get the messages on this topic no longer."""
        self._open.remove_topic(topic_text(topic))

    def _shown(self, message: Message) -> tuple[str, Any]:
        return message.topic, self._convert(message.value)


class SafeSubscriber(Subscriber):
    """A subscriber with immutable objects (:class:`ImmutableData`), which can express all data."""

    _convert = staticmethod(to_immutable)


class StatusSubscriber(Receiver[overlay.StatusSubscriber]):
    """Errors, and if it was asked for them statuses, of an endpoint's peers."""

    def poll(self) -> list[Status | Error]:
        """All that are there, without waiting."""
        try:
            return [self._shown(news) for news in self._open.poll()]
        except Closed:
            return []

    def _shown(self, news: statuses.Status | statuses.Error) -> Status | Error:
        return Error._of(news) if isinstance(news, statuses.Error) else Status._of(news)
