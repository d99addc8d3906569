"""A consumer without a group: every partition of its subscribed topics is its own.

Members of groups are in :mod:`~compat.kafka.consumer._group_member`, behind the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafka.consumer.subscription_state import SubscriptionState
from kafka.structs import ConsumerGroupMetadata, TopicPartition

from compat.kafka._calls import Calls
from compat.kafka.consumer._membership import Identity, Membership
from compat.kafka.consumer._topics import Topics


class Standalone(Membership):
    """A consumer without a group."""

    wait_slice = float("inf")  # no coordinator has to see that its program is alive
    generation = -1

    def __init__(self, calls: Calls, subscription: SubscriptionState, config: dict[str, Any]) -> None:
        self._subscription = subscription
        self._topics = Topics(calls, subscription, config["allow_auto_create_topics"])

    def changed(self) -> None:
        """The subscription has changed, or metadata is known to be old: look at it next time."""
        self._topics.changed()

    def poll(self, deadline: float, before_revoking: Callable[[float | None], None]) -> bool:
        """Look at the metadata if it is time to, and take over what has changed."""
        subscription = self._subscription
        if subscription.partitions_auto_assigned() and self._topics.look(deadline):
            wanted = {
                TopicPartition(topic, number)
                for topic in subscription.subscription or ()
                for number in self._topics.partitions_for_topic(topic) or ()
            }
            if wanted != subscription.assigned_partitions():
                subscription.assign_from_subscribed(sorted(wanted))
        return True

    def interrupt(self) -> None:
        """Do nothing: :meth:`poll` waits for no other members."""

    def leave(self, timeout_ms: float | None) -> None:
        """Note that the subscription has ended."""
        self._topics.changed()

    def close(self, timeout_ms: float | None) -> None:
        """End the assignment; there is no group to leave."""
        if self._subscription.partitions_auto_assigned():
            self._subscription.assign_from_subscribed([])

    def identity(self) -> Identity:
        """The generation, member id and instance id of a consumer without a membership, as with Kafka."""
        return -1, "", None

    def commit_refused(self, error: type[Exception], generation: int, member_id: str) -> None:
        """Do nothing: there is no membership to lose."""

    def metadata(self) -> ConsumerGroupMetadata:
        """kafka-python's metadata of a consumer without a group."""
        return ConsumerGroupMetadata(group_id=None)

    def partitions_for_topic(self, topic: str) -> Iterable[int] | None:
        """The partitions in the last metadata; None if the topic was not in it."""
        return self._topics.partitions_for_topic(topic)
