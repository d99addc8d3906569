"""Writing to the broker until it has everything, so that a bridge loses no record that it has taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import gevent
from kafka.errors import (
    InvalidConfigurationError,
    KafkaError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.broker import BrokerInterface, TopicPartition, TopicSpec
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.limits import LONGEST_RETRY
from dafka.overlay.bridge.refusals import Refusals

log = bounded_logger(__name__)

FIRST_PAUSE = 0.05


class Writing:
    """Writes batches to topics, which it makes where they are not there, with these settings. Hub side."""

    def __init__(
        self,
        broker: BrokerInterface,
        refusals: Refusals,
        settings: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        self._broker = broker
        self._refusals = refusals
        self._settings = settings
        self._partitions: dict[str, int] = {}  # of topics, as far as known

    def partitions(self, topic: str, least: int = -1) -> int:
        """How many partitions a topic has; it is made, or gets more, if there are fewer than ``least``.

        -1: as many as the broker gives a new topic. Raises KafkaError.
        """
        known = self._partitions.get(topic, 0)
        if known >= max(least, 1):
            return known
        described = self._broker.metadata([topic]).topics[topic]
        if described.error is UnknownTopicOrPartitionError:
            settings = self._settings.get(topic, {})
            outcome = self._broker.create_topics({topic: TopicSpec(least, settings)})[topic]
            if outcome.error is not None and issubclass(outcome.error, InvalidConfigurationError):
                log.error("topic %s is made without its settings: %s", topic, outcome.detail)
                outcome = self._broker.create_topics({topic: TopicSpec(least)})[topic]
            if outcome.error is not None and outcome.error is not TopicAlreadyExistsError:
                raise outcome.error(f"making topic {topic}: {outcome.detail}")
            described = self._broker.metadata([topic]).topics[topic]
        if described.error is not None:
            raise described.error(f"topic {topic}")
        found = sum(partition.writable for partition in described.partitions)
        if 0 < found < least:
            grown = self._broker.create_partitions({topic: least})[topic]
            if grown.error is not None:
                raise grown.error(f"raising topic {topic} to {least} partitions: {grown.detail}")
            found = least
        self._partitions[topic] = found
        return found

    def write(self, batches: Mapping[TopicPartition, Sequence[bytes]], partitions: Mapping[str, int]) -> None:
        """Append batches, waiting for the broker as long as it takes. ``partitions``: the least of topics.

        Records that a topic refuses for good are written in another way, or left out, see :class:`Refusals`.
        """
        left = {key: list(some) for key, some in batches.items() if some}
        pause = FIRST_PAUSE
        while left:
            try:
                for topic, least in partitions.items():
                    self.partitions(topic, least)
                answers = self._broker.produce(left)
            except KafkaError as error:
                log.error("writing to %s: %s", ", ".join(sorted({topic for topic, _ in left})), error)
                answers = {}
            amended = False
            for key, produced in answers.items():
                del left[key][: len(produced.base_offsets)]  # a remote broker has taken the first ones
                if produced.error is not None:
                    instead = self._refusals.instead(key, left[key], produced)
                    if instead is not None:
                        left[key], amended = instead, True
                        continue
                    self._partitions.pop(key[0], None)
                    log.error("writing to %s-%d: %s %s", *key, produced.error.__name__, produced.detail)
            left = {key: some for key, some in left.items() if some}
            if left and not amended:
                gevent.sleep(pause)
                pause = min(2 * pause, LONGEST_RETRY)
