"""Subscribers: the messages on some topics, and the statuses of an endpoint."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable

from gevent import monkey

from dafka.hub.hub import Hub
from dafka.overlay.errors import TooManyPrefixes
from dafka.overlay.filters import Filter, reduced
from dafka.overlay.node import limits
from dafka.overlay.node.inbox import Feed
from dafka.overlay.node.types import EndpointId, Message
from dafka.overlay.peering.statuses import Error, Status
from dafka.overlay.values.containers import octets_of
from dafka.overlay.wire.primitives import ID_OCTETS
from dafka.overlay.wire.zeek import decode_fast
from dafka.protocol.errors import MalformedMessage

_allocate_lock = monkey.get_original("_thread", "allocate_lock")
_new = tuple.__new__

Raw = tuple[bytes, bytes, bytes]  # topic, payload, sender


class Subscriber(Feed[Raw, Message]):
    """The messages whose topics begin with one of some prefixes. Any thread may use it.

    ``changed`` is called when the prefixes have changed, and at the end.
    """

    def __init__(
        self,
        hub: Hub,
        prefixes: Iterable[str | bytes],
        capacity: int,
        overflow: str,
        own: bool,
        changed: Callable[[Subscriber], None],
    ) -> None:
        super().__init__(hub, capacity, overflow)
        self.own = own
        """Whether it gets what its own endpoint publishes, too."""
        self.malformed = 0
        """Messages that held no value: they were left out."""
        # Nobody gets an older message than what a queue that drops would have.
        self._ahead = limits.TAKEN_MESSAGES if overflow == "wait" else 1
        self._hand: deque[Message] = deque()
        self._taking = _allocate_lock()
        self._topic = (b"", "")
        self._sender = EndpointId(bytes(ID_OCTETS))
        self._topics = {octets_of(prefix) for prefix in prefixes}
        self.filter: Filter = reduced(self._topics)
        self._changed = changed

    def get(self, timeout: float | None = None) -> Message:
        """The next message; waits for it. Raises :class:`Empty` after ``timeout`` seconds, :class:`Closed`.

        With ``overflow="disconnect"``: :class:`~dafka.overlay.node.errors.SlowSubscriber`, behind the last
        message that found room.
        """
        try:
            message = self._hand.popleft()
        except IndexError:
            message = self._next(timeout)
        if self._signal is not None:
            self._show()
        return message

    def poll(self) -> list[Message]:
        """All messages that are there, without waiting."""
        with self._taking:
            messages = list(self._hand)
            self._hand.clear()
            if messages:
                messages += self._read(self._take_some(sys.maxsize, sys.maxsize))
        messages = messages or self._read(self._take_all())
        if self._signal is not None:
            self._show()
        return messages

    @property
    def available(self) -> int:
        return len(self._items) + len(self._hand)

    @property
    def _is_ready(self) -> bool:
        return bool(self._items or self._hand)

    def _next(self, timeout: float | None) -> Message:
        """The first of the next messages; the others are in the hand then."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._taking:
                if self._hand:
                    return self._hand.popleft()
                messages = self._read(self._take_some(self._ahead, limits.TAKEN_OCTETS))
                if messages:
                    self._hand.extend(messages[1:])
                    return messages[0]
            self._await_some(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _read(self, raws: list[Raw]) -> list[Message]:
        messages = []
        # Most come from the same endpoint as the one before, and on the same topic.
        (octets, text), last = self._topic, self._sender
        for topic, payload, sender in raws:
            try:
                value = decode_fast(payload)
            except MalformedMessage:
                self.malformed += 1
                continue
            if topic != octets:
                octets, text = self._topic = topic, text_of(topic)
            if sender != last:
                last = self._sender = EndpointId(sender)
            messages.append(_new(Message, (text, value, last)))
        return messages

    def _show(self) -> None:
        with self._lock:
            if self._signal is not None:
                self._signal.set(self._is_ready or self._closed is not None)

    @property
    def topics(self) -> list[str]:
        """The prefixes, as they were given."""
        return sorted(map(text_of, self._topics))

    def add_topic(self, prefix: str | bytes) -> None:
        """Get these messages, too. Raises :class:`~dafka.overlay.errors.TooManyPrefixes`."""
        octets = octets_of(prefix)
        if octets in self._topics:
            return
        before = self.filter
        self._topics.add(octets)
        try:
            self._change()
        except TooManyPrefixes:
            self._topics.discard(octets)
            self.filter = before
            raise

    def remove_topic(self, prefix: str | bytes) -> bool:
        """Get these messages no longer, unless another prefix covers them. Whether it was there."""
        octets = octets_of(prefix)
        if octets not in self._topics:
            return False
        self._topics.discard(octets)
        self._change()
        return True

    def close(self) -> None:
        """Get nothing more; what waits is let go of."""
        if self._topics or not self.is_closed:
            self._topics.clear()
            super().close()
            self._hand.clear()

    def _left(self) -> None:
        self._change()

    def _change(self) -> None:
        self.filter = reduced(self._topics)
        self._changed(self)


class StatusSubscriber(Feed[Status | Error, Status | Error]):
    """What happens to peers, as values of the ``kinds`` :class:`Status` and :class:`Error`."""

    def __init__(
        self, hub: Hub, kinds: tuple[type, ...], capacity: int, closed: Callable[[StatusSubscriber], None]
    ) -> None:
        super().__init__(hub, capacity, "drop_oldest")
        self.kinds = kinds
        self._on_close = closed

    def tell(self, news: Status | Error) -> None:
        """Hub side."""
        if isinstance(news, self.kinds):
            self.put([(limits.ITEM_OCTETS, news)])

    def get(self, timeout: float | None = None) -> Status | Error:
        return self._take(timeout)

    def poll(self) -> list[Status | Error]:
        return self._take_all()

    def _left(self) -> None:
        self._on_close(self)


def text_of(octets: bytes) -> str:
    """A topic as text."""
    return octets.decode("utf-8", "surrogateescape")
