"""Topics and partitions, as a consumer knows them.

They come and go, so metadata is looked at when the subscription has changed, when a fetch has found a
partition gone, and at an interval, which is short as long as a subscribed topic does not exist. A pattern
becomes a subscription here.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Any

from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import RetriableError, TopicAuthorizationFailedError

from compat.kafka._calls import Calls, NotYetError
from dafka.broker.remote.trouble import Trouble

log = logging.getLogger(__name__)

METADATA_INTERVAL = 1.0  # seconds between looks at the metadata
MISSING_TOPIC_INTERVAL = 0.05  # the same, while a subscribed topic does not exist


class Topics:
    """Topics and partitions; also what kafka-python's assignors are given as their ``cluster``."""

    def __init__(self, calls: Calls, subscription: SubscriptionState, create: bool) -> None:
        self._calls = calls
        self._subscription = subscription
        self._create = create
        self._partitions: dict[str, set[int]] = {}
        self._look_at = 0.0
        self._no_metadata = Trouble(log)
        self.others: set[str] = set()  # topics to know about because other members subscribe to them

    def changed(self) -> None:
        """Look next time, whatever the interval."""
        self._look_at = 0.0

    def look(self, deadline: float) -> bool:
        """Look at the metadata if it is time to; whether it was, and the broker has answered in time.

        Raises:
            TopicAuthorizationFailedError: subscribed topics that the client may not even see.
        """
        if monotonic() < self._look_at:
            return False
        subscription = self._subscription
        pattern = subscription.subscribed_pattern
        names = None if pattern is not None else sorted(subscription.subscription or ())
        others = tuple(sorted(self.others))
        key = "metadata", None if names is None else tuple(names), others
        try:
            found, refused = self._calls.resume(key, deadline - monotonic(), self._look, names, others)
        except NotYetError:
            return False
        except RetriableError as error:
            self._no_metadata.again("no metadata: %s", error)
            self._look_at = monotonic() + MISSING_TOPIC_INTERVAL
            return False
        self._no_metadata.over()
        self._look_at = monotonic() + METADATA_INTERVAL
        if refused:
            raise TopicAuthorizationFailedError(refused)
        self._partitions = found
        if pattern is not None:
            matching = {topic for topic in self._partitions if pattern.match(topic)}
            if matching != subscription.subscription:
                subscription.change_subscription(sorted(matching))
        if any(topic not in self._partitions for topic in subscription.subscription or ()):
            self._look_at = monotonic() + MISSING_TOPIC_INTERVAL
        return True

    def _look(self, names: list[str] | None, others: tuple[str, ...]) -> tuple[dict[str, set[int]], set[str]]:
        """The partitions of topics, and the topics that were refused."""
        broker = self._calls.broker
        metadata = broker.metadata(names, names is not None and self._create)
        refused = {
            name for name, topic in metadata.topics.items() if topic.error is TopicAuthorizationFailedError
        }
        found = partitions_of(metadata)
        if names is not None and others:
            found = {**partitions_of(broker.metadata(others)), **found}
        return found, refused

    def snapshot(self) -> dict[str, frozenset[int]]:
        """The partitions of the topics that this consumer and the others subscribe to."""
        topics = self.others | (self._subscription.subscription or set())
        return {topic: frozenset(self._partitions.get(topic, ())) for topic in topics}

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """The names of the topics known here."""
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The numbers of a topic's partitions; None if it is not known here."""
        return self._partitions.get(topic)


def partitions_of(metadata: Any) -> dict[str, set[int]]:
    """``{topic: numbers of its partitions}`` for the topics without an error."""
    return {
        name: {partition.number for partition in topic.partitions}
        for name, topic in metadata.topics.items()
        if topic.error is None
    }
