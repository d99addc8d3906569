"""Releasing the records of members that left, a few share partitions at a time."""

from __future__ import annotations

from gevent import Greenlet, getcurrent

from dafka.broker.share.delivery import Deliveries
from dafka.broker.share.sessions import SessionKey
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace


class Releasing:
    """Gives records of members that have left back, in one broker. Hub side; methods that wait do so as green
    threads."""

    def __init__(self, hub: Hub, deliveries: Deliveries) -> None:
        self._hub = hub
        self._deliveries = deliveries
        self._going_on: dict[SessionKey, Greenlet] = {}

    def begin(self, key: SessionKey) -> None:
        """Begin to give back what a member has acquired."""
        self._going_on[key] = self._hub.spawn(self._release, key, self._going_on.get(key))

    def wait(self, key: SessionKey) -> None:
        """Wait until all that was begun is done: it would take for the member's what that acquires anew."""
        while key in self._going_on:
            self._going_on[key].join()

    def release(self, key: SessionKey) -> None:
        """Give back what a member has acquired, and wait for it."""
        self.begin(key)
        self.wait(key)

    def _release(self, key: SessionKey, before: Greenlet | None) -> None:
        if before is not None:
            before.join()
        group, member = key
        try:
            pace = Pace()
            for delivery in pace.over(self._deliveries.of_group(group), every=1):
                while delivery.release(member):
                    pace.rest()
        finally:
            if self._going_on.get(key) is getcurrent():
                del self._going_on[key]
