"""Subscribers: the messages on some topics, and the statuses of an endpoint."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from gevent import monkey

from dafka.hub.hub import Hub
from dafka.hub.waits import wait_of
from dafka.overlay.errors import TooManyPrefixes
from dafka.overlay.filters import Filter, reduced
from dafka.overlay.node import limits
from dafka.overlay.node.inbox import Feed
from dafka.overlay.node.types import EndpointId, Message
from dafka.overlay.peering.statuses import Error, Status
from dafka.overlay.values.containers import octets_of
from dafka.overlay.wire.primitives import ID_OCTETS
from dafka.overlay.wire.zeek import ValueReader

_allocate_lock = monkey.get_original("_thread", "allocate_lock")
_new = tuple.__new__


class _Run:
    """How many of the payloads that wait, one behind the other, came on a topic from a sender.

    So a payload that waits is one object, of which the collection of garbage need not know.
    """

    __slots__ = ("count", "sender", "topic")

    def __init__(self, topic: bytes, sender: bytes) -> None:
        self.topic = topic
        self.sender = sender
        self.count = 0


class Subscriber(Feed[bytes, Message]):
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
        super().__init__(hub, capacity, overflow, len)
        self.own = own
        """Whether it gets what its own endpoint publishes, too."""
        self.malformed = 0
        """Messages that held no value: they were left out."""
        # Nobody gets an older message than what a queue that drops would have.
        self._ahead = limits.TAKEN_MESSAGES if overflow == "wait" else 1
        self._runs: deque[_Run] = deque()
        self._hand: deque[Message] = deque()
        self._taking = _allocate_lock()
        self._topic = (b"", "")
        self._sender = EndpointId(bytes(ID_OCTETS))
        self._reader = ValueReader()
        self._topics = {octets_of(prefix) for prefix in prefixes}
        self.filter: Filter = reduced(self._topics)
        self._changed = changed

    def put_run(self, topic: bytes, payloads: Sequence[bytes], sender: bytes) -> None:
        """Hub side. Payloads on one topic, from one sender."""
        with self._lock:
            if self._closed is not None:
                return
            before, dropped = len(self._items), self.dropped
            self._put(payloads)
            gone = self.dropped - dropped if self.overflow == "drop_oldest" else 0
            count = len(self._items) - before + gone
            if count:
                runs = self._runs
                if not runs or runs[-1].topic != topic or runs[-1].sender != sender:
                    runs.append(_Run(topic, sender))
                runs[-1].count += count
                self._count_off(gone)
            if self._signal is not None:
                self._signal.set(self._is_ready or self._closed is not None)
        self._wake()

    def take_raw(self) -> tuple[bytes, bytes]:
        """Hub side, where nobody else takes: topic and payload of the next message, without waiting."""
        topic = self._runs[0].topic if self._runs else b""
        payload = self._take(0.0)
        self._count_off(1)
        return topic, payload

    def _count_off(self, count: int) -> None:
        """So many are gone, the oldest ones."""
        runs = self._runs
        while runs and runs[0].count <= count:
            count -= runs.popleft().count
        if count:
            runs[0].count -= count

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
                messages += self._take_some(sys.maxsize, sys.maxsize)
        if not messages:
            messages = self._take_some(sys.maxsize, sys.maxsize)
            if not messages and self._closed is not None and not self._items:
                raise self._closed
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
        timeout = wait_of(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._taking:
                if self._hand:
                    return self._hand.popleft()
                messages = self._take_some(self._ahead, limits.TAKEN_OCTETS)
                if messages:
                    self._hand.extend(messages[1:])
                    return messages[0]
            self._await_some(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _take_some(self, most: int, octets: int) -> list[Message]:
        """The first of what waits, without waiting: at most so many, the last one beyond ``octets``."""
        taken: list[tuple[bytes, bytes, list[bytes]]] = []
        with self._lock:
            items, runs = self._items, self._runs
            while items and most > 0 and octets > 0:
                run = runs[0]
                payloads = [items.popleft() for _ in range(min(run.count, most))]
                size = sum(map(len, payloads)) + limits.ITEM_OCTETS * len(payloads)
                if size > octets:
                    size = self._put_back(payloads, octets)
                taken.append((run.topic, run.sender, payloads))
                self._octets -= size
                octets -= size
                most -= len(payloads)
                self._count_off(len(payloads))
            if self._on_room is not None and self._has_room:
                self._tell_room()
        return [message for run in taken for message in self._read(*run)]

    def _put_back(self, payloads: list[bytes], octets: int) -> int:
        """Take no more of them than the one that goes beyond so many octets; how many octets that is."""
        size = 0
        for index, payload in enumerate(payloads, start=1):
            size += len(payload) + limits.ITEM_OCTETS
            if size >= octets:
                self._items.extendleft(reversed(payloads[index:]))
                del payloads[index:]
                break
        return size

    def _read(self, topic: bytes, sender: bytes, payloads: list[bytes]) -> list[Message]:
        octets, text = self._topic
        if topic != octets:
            text = text_of(topic)
            self._topic = topic, text
        last = self._sender
        if sender != last:
            last = self._sender = EndpointId(sender)
        values = self._reader.read(payloads)
        self.malformed += len(payloads) - len(values)
        return [_new(Message, (text, value, last)) for value in values]

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
        """Get nothing more; waiting messages are dropped."""
        if self._topics or not self.is_closed:
            self._topics.clear()
            super().close()
            self._hand.clear()
            self._runs.clear()

    def _left(self) -> None:
        self._change()

    def _change(self) -> None:
        self.filter = reduced(self._topics)
        self._changed(self)


class StatusSubscriber(Feed[Status | Error, Status | Error]):
    """The events of peers, as values of the ``kinds`` :class:`Status` and :class:`Error`."""

    def __init__(
        self, hub: Hub, kinds: tuple[type, ...], capacity: int, closed: Callable[[StatusSubscriber], None]
    ) -> None:
        super().__init__(hub, capacity, "drop_oldest")
        self.kinds = kinds
        self._on_close = closed

    def tell(self, news: Status | Error) -> None:
        """Hub side."""
        if isinstance(news, self.kinds):
            self.put([news])

    def get(self, timeout: float | None = None) -> Status | Error:
        return self._take(timeout)

    def poll(self) -> list[Status | Error]:
        return self._take_all()

    def _left(self) -> None:
        self._on_close(self)


def text_of(octets: bytes) -> str:
    """A topic as text."""
    return octets.decode("utf-8", "surrogateescape")
