"""Checkpoints: how far a bridge is in each partition, kept by the broker as the offsets of a group.

So a bridge has no files of its own, can go on from another machine, and Kafka's own tools show its lag.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from dafka.broker.interface.broker import BrokerInterface, CommittedOffset, TopicPartition
from dafka.hub.turns import in_pieces
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.limits import REFRESH_SECONDS

log = bounded_logger(__name__)


class Checkpoints:
    """The positions of ``group``. Hub side."""

    def __init__(self, broker: BrokerInterface, group: str) -> None:
        self.group = group
        self.positions: dict[TopicPartition, int] = {}
        """The offsets of the next records."""
        self._broker = broker
        self._changed: dict[TopicPartition, None] = {}
        self._refreshed = time.monotonic()

    def load(self) -> None:
        """Read the last commit. Raises KafkaError."""
        for key, committed in self._broker.fetch_offsets(self.group, None).items():
            self.positions[key] = committed.offset
            self._changed[key] = None  # committed again, it does not expire

    def set(self, key: TopicPartition, offset: int) -> None:
        """A partition is done up to this offset."""
        self.positions[key] = offset
        self._changed[key] = None

    def note(self) -> None:
        """Commit what has changed; now and then everything. The next commit repeats one that failed."""
        if time.monotonic() > self._refreshed + REFRESH_SECONDS:
            self._refreshed = time.monotonic()
            self._changed |= dict.fromkeys(self.positions)
        changed, self._changed = self._changed, {}
        for some in in_pieces(changed, 500):
            wanted = {key: CommittedOffset(self.positions[key]) for key in some if key in self.positions}
            try:
                answers = self._broker.commit_offsets(self.group, wanted) if wanted else {}
            except KafkaError as error:
                log.error("checkpoint of %s: %s", self.group, error)
                self._changed |= dict.fromkeys(some)
                continue
            self._check(answers.items())

    def _check(self, answers: Iterable[tuple[TopicPartition, type[KafkaError] | None]]) -> None:
        for key, error in answers:
            if error is UnknownTopicOrPartitionError:  # it was deleted
                self.positions.pop(key, None)
            elif error is not None:
                log.error("checkpoint of %s, %s-%d: %s", self.group, *key, error.__name__)
                self._changed[key] = None
