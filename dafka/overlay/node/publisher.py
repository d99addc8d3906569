"""Publishing: values of a program become octets here, in its own thread; and one topic of an endpoint."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

from dafka.overlay.node import limits
from dafka.overlay.node.errors import Closed
from dafka.overlay.node.pending import Pending
from dafka.overlay.node.signal import Signal
from dafka.overlay.values import Value, encode
from dafka.overlay.values.containers import octets_of
from dafka.overlay.values.encoder import encode_behind
from dafka.overlay.wire.zeek import Batch, Event, IdentifierUpdate, LogCreate, LogWrite, ZeekMessage, to_value

P = TypeVar("P", bound="Publisher")

_EVENT_DEPTH = 2  # in how many vectors an event's arguments are
_ZEEK = (Event, LogCreate, LogWrite, IdentifierUpdate, Batch)


class Publisher:
    """Publishes on one topic. Any thread may use it. Messages wait in one queue for all of an endpoint."""

    def __init__(self, pending: Pending, topic: str | bytes) -> None:
        self.topic = topic_octets(topic)
        self._pending = pending
        self._signal: Signal | None = None
        self._is_closed = False

    def publish(self, value: Value | ZeekMessage, timeout: float | None = None) -> None:
        """:meth:`~dafka.overlay.node.endpoint.Endpoint.publish` on this topic."""
        self._check()
        self._pending.put(self.topic, payload_of(value), timeout)

    @property
    def waiting(self) -> int:
        """Messages that the endpoint has still to send."""
        return self._pending.count

    @property
    def capacity(self) -> int:
        """How many may wait; the next one is published when there is room."""
        return limits.PENDING_MESSAGES

    def fileno(self) -> int:
        """A descriptor that is readable while :meth:`publish` does not wait; for select and asyncio."""
        self._check()
        if self._signal is None:
            self._signal = self._pending.watch(self.topic)
        return self._signal.fileno()

    def close(self) -> None:
        """Publish nothing more. Messages that were published are still sent."""
        self._is_closed = True
        signal, self._signal = self._signal, None
        if signal is not None:
            self._pending.unwatch(signal)

    def __enter__(self: P) -> P:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check(self) -> None:
        if self._is_closed:
            raise Closed("the publisher was closed")


@lru_cache(maxsize=4096)
def topic_octets(topic: str | bytes) -> bytes:
    """Raises ValueError for a topic that is too long."""
    octets = octets_of(topic)
    if len(octets) > 0xFFFF:
        raise ValueError(f"a topic of {len(octets)} octets, at most 65535")
    return octets


def payload_of(value: Value | ZeekMessage) -> bytes:
    """The octets of a value, or of the value that a message of Zeek is."""
    if type(value) is Event:
        name, arguments, metadata = value
        if metadata is None and type(name) is str:
            return encode_behind(_event_head(name), arguments, _EVENT_DEPTH)
    return encode(to_value(value) if isinstance(value, _ZEEK) else value)


@lru_cache(maxsize=1024)
def _event_head(name: str) -> bytes:
    """The beginning of all events of a name: up to their arguments, here none, which take two octets."""
    return encode(to_value(Event(name)))[:-2]
