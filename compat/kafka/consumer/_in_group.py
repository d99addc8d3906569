"""The base of members of groups, whether a member or the broker assigns the partitions.

Each has two halves: a :class:`Member` in the program's thread, which ``poll`` calls, and its
:class:`GroupSession` in the hub, which goes on while the program computes. Nothing in the hub keeps the
consumer alive: one that is dropped without ``close`` is collected, and then leaves its group.
"""

from __future__ import annotations

import logging
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import CommitFailedError, KafkaTimeoutError
from kafka.structs import TopicPartition

from compat.kafka._calls import GRACE, Calls
from compat.kafka._client import Client
from compat.kafka.consumer._listener import Notices
from compat.kafka.consumer._membership import Membership
from compat.kafka.consumer._topics import Topics
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import BrokerInterface

log = logging.getLogger(__name__)

WAIT_SLICE = 1.0  # seconds that one wait takes at most; in between the program is seen to be alive


class GroupSession(ABC):
    """One consumer's membership as the hub knows it."""

    LEAVING: ClassVar[str]  # the request with which it leaves

    def __init__(
        self, client: Client, calls: Calls, config: Mapping[str, Any], wake_caller: Callable[[], None]
    ) -> None:
        """``wake_caller``, a method that is called in the hub, ends a fetch of the program's thread."""
        self._client = client
        self._calls = calls
        self._wake_caller = weakref.WeakMethod(wake_caller)
        self._group = config["group_id"]
        self._client_id = config["client_id"] or ""
        self._poll_interval = config["max_poll_interval_ms"] / 1000
        self._backoff: float = config["retry_backoff_ms"] / 1000
        self.instance_id = config["group_instance_id"]
        self.last_poll = monotonic()

    @property
    def _broker(self) -> BrokerInterface:
        return self._client.broker

    def leave(self, timeout_ms: float | None) -> None:
        """Leave the group and forget the membership. Not so a static member: it only ends its heartbeats.

        A broker that does not answer in time is not waited for: it will miss the heartbeats.
        """
        try:
            self._calls.within(timeout_ms, self.LEAVING, self._leave)
        except (BrokerStoppedError, KafkaTimeoutError) as error:
            log.debug("group %s was not left: %r", self._group, error)

    def abandon(self) -> None:
        """Leave without waiting: the consumer was dropped without closing it. For any thread."""
        try:
            self._client.hub.post(self._client.hub.spawn, self._leave_if_possible)
        except Exception:
            log.debug("group %s was not left", self._group, exc_info=True)

    @abstractmethod
    def _leave(self) -> None:
        """Leave the group; in the hub."""

    def _leave_if_possible(self) -> None:
        with suppress(BrokerStoppedError):
            self._leave()

    def _wake_program(self) -> None:
        wake_caller = self._wake_caller()
        if wake_caller is not None:
            wake_caller()


class Session(Protocol):
    """A member's view of its session."""

    @property
    def lost(self) -> bool:
        """Whether other members may have this consumer's partitions."""

    def leave(self, timeout_ms: float | None) -> None:
        """Leave the group, within that time."""

    def abandon(self) -> None:
        """Leave without waiting; for any thread."""


S = TypeVar("S", bound=Session)


class Member(Membership, Generic[S]):
    """One consumer in its group. All methods belong to the program's thread but :meth:`interrupt`."""

    def __init__(
        self, calls: Calls, subscription: SubscriptionState, config: Mapping[str, Any], session: S
    ) -> None:
        self._subscription = subscription
        self._group_id = config["group_id"]
        self._instance_id = config["group_instance_id"]
        self._topics = Topics(calls, subscription, config["allow_auto_create_topics"])
        self.session = session
        self.wait_slice = min(WAIT_SLICE, config["max_poll_interval_ms"] / 3000)
        self._interrupted = False
        self._heard: set[TopicPartition] = set()  # the listener knows that these are this member's
        dropped = weakref.finalize(self, session.abandon)
        dropped.atexit = False

    def changed(self) -> None:
        """The subscription has changed, or metadata is known to be old: look at it next time."""
        self._topics.changed()

    def close(self, timeout_ms: float | None) -> None:
        """Give the partitions back, so that the listener is told, and leave the group."""
        notices = Notices(self._subscription.rebalance_listener)
        try:
            owned = self._subscription.assigned_partitions()
            if self._subscription.partitions_auto_assigned() and owned:
                self._give_up(notices, "lost" if self.session.lost else "revoked", owned)
                self._drop_assignment()
        finally:
            self.leave(timeout_ms)
        notices.report()

    def _before_revoking(self, deadline: float, before_revoking: Callable[[float | None], None]) -> None:
        """Have positions committed before others get the partitions, even if ``poll`` has no time left."""
        left = max(deadline - monotonic(), GRACE)
        before_revoking(None if left == float("inf") else left * 1000)

    def _give_up(self, notices: Notices, how: str, partitions: set[TopicPartition]) -> None:
        """Return no more records of these partitions, and tell the listener why: "lost" or "revoked".

        It does not hear of partitions that Ctrl-C kept from it when they were assigned.
        """
        self._subscription.mark_pending_revocation(partitions)
        heard = partitions & self._heard
        if heard or not partitions:
            notices.tell(how, heard)

    def _lose(self, notices: Notices, owned: set[TopicPartition]) -> None:
        """Others may have these partitions already: nothing of them is committed."""
        log.info("Group %s lost membership; forcibly revoking %s", self._group_id, owned)
        self._give_up(notices, "lost", owned)
        self._drop_assignment()

    def _drop_assignment(self) -> None:
        self._heard = set()
        self._subscription.assign_from_subscribed([])

    def _not_a_member(self) -> CommitFailedError:
        return CommitFailedError(
            "Offset commit cannot be completed since the consumer is not part of an active group for auto "
            "partition assignment; it is likely that the consumer was kicked out of the group."
        )

    def partitions_for_topic(self, topic: str) -> Iterable[int] | None:
        """The partitions in the last metadata; None if the topic was not in it."""
        return self._topics.partitions_for_topic(topic)
