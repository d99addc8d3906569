"""Releasing the records of members whose sessions end, a few share partitions at a time.

As in Kafka it is those of the session's partitions: what a member holds of one that it has forgotten is
locked until the lock expires.
"""

from __future__ import annotations

from collections.abc import Collection

from gevent import Greenlet, getcurrent

from dafka.broker.interface.share import SharePlace
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

    def begin(self, key: SessionKey, places: Collection[SharePlace]) -> None:
        """Begin to give back what a member has acquired of these partitions."""
        self._going_on[key] = self._hub.spawn(self._release, key, places, self._going_on.get(key))

    def wait(self, key: SessionKey) -> None:
        """Wait until all that was begun is done: it would take for the member's what that acquires anew."""
        while key in self._going_on:
            self._going_on[key].join()

    def release(self, key: SessionKey, places: Collection[SharePlace]) -> None:
        """Give back what a member has acquired of these partitions, and wait for it."""
        self.begin(key, places)
        self.wait(key)

    def _release(self, key: SessionKey, places: Collection[SharePlace], before: Greenlet | None) -> None:
        if before is not None:
            before.join()
        group, member = key
        try:
            pace = Pace()
            for delivery in pace.over(self._deliveries.of_group(group), every=1):
                while delivery.place in places and delivery.release(member):
                    pace.rest()
        finally:
            if self._going_on.get(key) is getcurrent():
                del self._going_on[key]
