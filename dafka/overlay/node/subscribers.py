"""All subscribers of an endpoint, and which of them get a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dafka.overlay.filters import Filter
from dafka.overlay.node import limits
from dafka.overlay.node.prefixes import Prefixes
from dafka.overlay.node.subscriber import Subscriber


class Subscribers:
    """Hub side. ``on_room(subscriber)`` is called when one that was full has room again."""

    def __init__(self, on_room: Callable[[Subscriber], None]) -> None:
        self._on_room = on_room
        self._all: dict[Subscriber, None] = {}
        self._prefixes = Prefixes()
        self._by_topic: dict[bytes, list[Subscriber]] = {}

    @property
    def filter(self) -> Filter:
        """The prefixes that all of them want, and those that are forwarded."""
        return self._prefixes.filter

    def add(self, subscriber: Subscriber) -> None:
        """Raises :class:`~dafka.overlay.errors.TooManyPrefixes`."""
        self._prefixes.replace(subscriber, subscriber.filter)
        self._all[subscriber] = None
        self._by_topic.clear()

    def change(self, subscriber: Subscriber) -> None:
        """Its prefixes are others now; one without any that is closed is forgotten. Raises as :meth:`add`."""
        self._prefixes.replace(subscriber, subscriber.filter)
        self._by_topic.clear()
        if subscriber.is_closed and not subscriber.filter:
            self._all.pop(subscriber, None)

    def forward(self, prefixes: Filter) -> None:
        """Want these, too, without a subscriber. Raises as :meth:`add`."""
        self._prefixes.replace(self, prefixes)

    def has(self, topic: bytes) -> bool:
        return bool(self._for(topic))

    def full(self, topic: bytes) -> list[Subscriber]:
        """The subscribers that have no room for messages on a topic, and that senders have to wait for."""
        return [one for one in self._for(topic) if one.watch(partial(self._on_room, one))]

    def full_own(self, topic: bytes) -> bool:
        """Whether that is so for what this endpoint publishes."""
        return any(one.watch(partial(self._on_room, one)) for one in self._for(topic) if one.own)

    def deliver(self, topic: bytes, payloads: Sequence[bytes], sender: bytes) -> None:
        """Messages on one topic, of one sender."""
        receivers = self._for(topic)
        if receivers:
            self._put(receivers, topic, payloads, sender)

    def deliver_own(self, topic: bytes, payloads: Sequence[bytes], me: bytes) -> None:
        """Messages that this endpoint publishes: for those subscribers that want them."""
        receivers = [one for one in self._for(topic) if one.own]
        if receivers:
            self._put(receivers, topic, payloads, me)

    def shut(self, error: Exception) -> None:
        for subscriber in self._all:
            subscriber.shut(error)

    def _for(self, topic: bytes) -> list[Subscriber]:
        found = self._by_topic.get(topic)
        if found is None:
            if len(self._by_topic) >= limits.TOPICS:
                self._by_topic.clear()
            found = [one for one in self._all if topic.startswith(one.filter)]
            self._by_topic[topic] = found
        return found

    def _put(
        self, receivers: list[Subscriber], topic: bytes, payloads: Sequence[bytes], sender: bytes
    ) -> None:
        for receiver in receivers:
            receiver.put_run(topic, payloads, sender)
