"""One poll of a consumer: membership, commits, positions, fetches, and taking records."""

from __future__ import annotations

import logging
from time import monotonic

from kafka.consumer.fetcher import ConsumerRecord
from kafka.consumer.subscription_state import SubscriptionState
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka._client import Client
from compat.kafka.consumer._fetches import Fetches
from compat.kafka.consumer._membership import Membership
from compat.kafka.consumer._offsets import IDLE_PAUSE, Positions

log = logging.getLogger(__name__)


class Polling:
    """Gets one consumer's records, partition by partition; in the program's thread, but for :meth:`stop`."""

    def __init__(
        self,
        client: Client,
        subscription: SubscriptionState,
        fetches: Fetches,
        member: Membership,
        positions: Positions,
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._fetches = fetches
        self._member = member
        self._positions = positions
        self._stopped = False

    def stop(self) -> None:
        """Have a poll that waits return; for any thread."""
        self._stopped = True
        self._fetches.interrupt()
        self._member.interrupt()

    def next(self, deadline: float, limit: int) -> tuple[TopicPartition, list[ConsumerRecord]] | None:
        """Up to ``limit`` records of one partition, whose position is left; None: there were none in time."""
        while True:
            taken = self.once(deadline, limit)
            if taken is not None or self._stopped or monotonic() >= deadline:
                return taken

    def more(self, limit: int) -> tuple[TopicPartition, list[ConsumerRecord]] | None:
        """Buffered records for a poll that has some; an error waits for the next poll."""
        if limit <= 0:
            return None
        try:
            return self._fetches.take(limit)
        except Exception:
            log.debug("left to the next poll", exc_info=True)
            return None

    def once(self, deadline: float, limit: int) -> tuple[TopicPartition, list[ConsumerRecord]] | None:
        """Look once at membership, commits and positions, and take records of one partition."""
        self._positions.call_back()
        if self._fetches.stale_metadata:
            self._fetches.stale_metadata = False
            self._member.changed()
        if not self._member.poll(deadline, self._positions.auto_commit_and_wait):
            return None
        if self._positions.commit_is_due():
            self._positions.auto_commit_now()
        taken = self._fetches.take(limit)
        if taken is not None:
            return taken
        self._positions.resolve(deadline)
        seconds = max(deadline - monotonic(), 0.0)
        if self._fetches.fetch(min(seconds, self._member.wait_slice)):
            return self._fetches.take(limit)
        if seconds > 0 and not self._stopped:
            self._client.pause(min(seconds, IDLE_PAUSE))
        return None


def behind(record: ConsumerRecord) -> OffsetAndMetadata:
    """The position after a record."""
    return OffsetAndMetadata(record.offset + 1, "", record.leader_epoch)
