"""Which partitions of its subscribed topics a consumer reads.

:class:`SoleMember` assigns all of them: that is what kafka-python does for a consumer without a group,
and what a group of one member comes to. The group protocol can take its place behind the same methods.

Topics and partitions come and go; metadata is looked at when the subscription has changed, when a fetch
has found a partition gone, and at an interval, which is short as long as a subscribed topic does not
exist. The rebalance listener is told of every change, when there is a group.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import KafkaError
from kafka.structs import ConsumerGroupMetadata, MemberState, TopicPartition

from compat.kafka._client import Client

log = logging.getLogger(__name__)

METADATA_INTERVAL = 1.0  # seconds between looks at the metadata; a call within the process
MISSING_TOPIC_INTERVAL = 0.05  # the same, while a subscribed topic does not exist


class SoleMember:
    """The only member of its group (or of none): every partition is its own."""

    def __init__(self, client: Client, subscription: SubscriptionState, config: dict[str, Any]) -> None:
        self._client = client
        self._subscription = subscription
        self._group_id = config["group_id"]
        self._instance_id = config["group_instance_id"]
        self._create = config["allow_auto_create_topics"]
        self._partitions: dict[str, set[int]] = {}
        self._joined: set[TopicPartition] | None = None  # what was last assigned
        self._look_at = 0.0
        self._generation = 0

    @property
    def joined(self) -> bool:
        """Whether there is an assignment from a subscription."""
        return self._joined is not None

    def changed(self) -> None:
        """The subscription has changed, or metadata is known to be old: look at it next time."""
        self._look_at = 0.0

    def due(self) -> bool:
        """Whether :meth:`poll` has anything to do."""
        return self._subscription.partitions_auto_assigned() and monotonic() >= self._look_at

    def poll(self, before_revoking: Callable[[], None]) -> None:
        """Look at the metadata if it is time to, and take over what has changed.

        Raises:
            KafkaError: a rebalance listener failed; its exception is the cause.
        """
        if not self.due():
            return
        subscription = self._subscription
        pattern = subscription.subscribed_pattern
        names = None if pattern is not None else sorted(subscription.subscription or ())
        metadata = self._client.call(self._client.broker.metadata, names, pattern is None and self._create)
        self._partitions = partitions_of(metadata)
        if pattern is not None:
            matching = {topic for topic in self._partitions if pattern.match(topic)}
            if matching != subscription.subscription:
                subscription.change_subscription(sorted(matching))
        wanted = {
            TopicPartition(topic, number)
            for topic in subscription.subscription or ()
            for number in self._partitions.get(topic, ())
        }
        missing = any(topic not in self._partitions for topic in subscription.subscription or ())
        self._look_at = monotonic() + (MISSING_TOPIC_INTERVAL if missing else METADATA_INTERVAL)
        if wanted != self._joined:
            self._rebalance(wanted, before_revoking)

    def _rebalance(self, wanted: set[TopicPartition], before_revoking: Callable[[], None]) -> None:
        subscription = self._subscription
        listener = subscription.rebalance_listener if self._group_id is not None else None
        failure = None
        if self._group_id is not None:
            before_revoking()
        if listener is not None:
            failure = _tell(listener.on_partitions_revoked, subscription.assigned_partitions())
        subscription.assign_from_subscribed(sorted(wanted))
        self._joined = wanted
        self._generation += 1
        if listener is not None:
            failure = _tell(listener.on_partitions_assigned, subscription.assigned_partitions()) or failure
        if failure is not None:
            raise KafkaError("User rebalance callback throws an error") from failure

    def leave(self) -> None:
        """Forget the assignment; no listener is told."""
        self._joined = None
        self._look_at = 0.0

    def close(self) -> None:
        """Give the partitions back: the listener is told, and the assignment is empty afterwards."""
        subscription = self._subscription
        if not subscription.partitions_auto_assigned():
            return
        revoked = subscription.assigned_partitions()
        self.leave()
        if not revoked:
            return
        failure = None
        if subscription.rebalance_listener is not None:
            failure = _tell(subscription.rebalance_listener.on_partitions_revoked, revoked)
        subscription.assign_from_subscribed([])
        if failure is not None:
            raise KafkaError("User rebalance callback throws an error") from failure

    def metadata(self) -> ConsumerGroupMetadata:
        """kafka-python's snapshot of the membership."""
        if self._group_id is None:
            return ConsumerGroupMetadata(group_id=None)
        if not self.joined:
            return ConsumerGroupMetadata(self._group_id, group_instance_id=self._instance_id)
        return ConsumerGroupMetadata(
            self._group_id, self._generation, "sole-member", self._instance_id, MemberState.STABLE
        )

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """What the last metadata said, if it was about this topic."""
        return self._partitions.get(topic)


def partitions_of(metadata: Any) -> dict[str, set[int]]:
    """``{topic: numbers of its partitions}`` for the topics without an error."""
    return {
        name: {partition.number for partition in topic.partitions}
        for name, topic in metadata.topics.items()
        if topic.error is None
    }


def _tell(method: Callable[[Any], Any], partitions: set[TopicPartition]) -> Exception | None:
    """Call a listener's method, a coroutine function or not; what it raised is logged and returned."""
    try:
        if inspect.iscoroutinefunction(method):
            asyncio.run(method(partitions))
        else:
            method(partitions)
    except Exception as error:
        log.exception("User provided rebalance listener failed: %s", method)
        return error
    return None
