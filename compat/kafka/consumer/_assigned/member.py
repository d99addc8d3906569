"""A member whose partitions the broker assigns (KIP-848): the part that runs in ``poll``, in the program's
thread.

Nothing stops the whole group. When the coordinator takes partitions away, this member commits (if commits are
automatic), tells the listener what is revoked, and goes on with the rest; new partitions are added to that. A
member that was removed from the group has *lost* its partitions: others may own them already, so it commits
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import StaleMemberEpochError
from kafka.structs import ConsumerGroupMetadata, MemberState, TopicPartition

from compat.kafka._calls import Calls
from compat.kafka._client import Client
from compat.kafka.consumer._assigned.session import JOIN, AssignedSession
from compat.kafka.consumer._in_group import Member
from compat.kafka.consumer._listener import Notices
from compat.kafka.consumer._membership import Identity

log = logging.getLogger(__name__)


class AssignedMember(Member[AssignedSession]):
    """One consumer in its group. All methods belong to the program's thread but :meth:`interrupt`."""

    def __init__(
        self,
        client: Client,
        calls: Calls,
        subscription: SubscriptionState,
        config: dict[str, Any],
        wake_caller: Callable[[], None],
    ) -> None:
        super().__init__(calls, subscription, config, AssignedSession(client, calls, config, wake_caller))
        self._subscribed: set[str] | None = None  # told to the session

    # -- following the coordinator ----------------------------------------------------------------

    def poll(self, deadline: float, before_revoking: Callable[[float | None], None]) -> bool:
        """Take over what the coordinator has assigned; False if the group was not joined by ``deadline``.

        ``before_revoking`` is told how many milliseconds it has; None: as many as it likes.

        Raises:
            KafkaError: a rebalance listener failed; its exception is the cause.
            FencedInstanceIdError, UnreleasedInstanceIdError: another consumer has this ``group_instance_id``.
            UnsupportedAssignorError, InvalidGroupIdError, GroupMaxSizeReachedError,
            IncompatibleBrokerVersion: the group does not take this member.
        """
        subscription, session = self._subscription, self.session
        if not subscription.partitions_auto_assigned():
            return True
        session.last_poll = monotonic()
        self._topics.look(deadline)
        wanted = subscription.subscription
        if wanted is None:
            return False  # a pattern, and the topics that there are have not been seen yet
        if wanted != self._subscribed:
            session.subscribe(wanted)
            self._subscribed = set(wanted)  # not before: a Ctrl-C in between would leave the session untold
        while True:
            session.called = False
            if session.failure is not None:
                failure, session.failure = session.failure, None
                self._subscribed = None  # the next poll tries again
                raise failure
            if session.lost:
                self._drop()
            assigned = session.assigned
            if assigned is not None:
                self._follow(assigned, deadline, before_revoking)
                return True
            if monotonic() >= deadline or self._interrupted:
                return False
            session.wait(min(deadline - monotonic(), self.wait_slice))
            session.last_poll = monotonic()

    def interrupt(self) -> None:
        """End a wait for the group; for any thread."""
        self._interrupted = True
        self.session.interrupt()

    def _drop(self) -> None:
        """Others may have this member's partitions."""
        subscription = self._subscription
        owned = subscription.assigned_partitions()
        notices = Notices(subscription.rebalance_listener)
        if owned:
            self._lose(notices, owned)
        self.session.rejoin()
        notices.report()

    def _follow(
        self,
        assigned: Iterable[tuple[str, int]],
        deadline: float,
        before_revoking: Callable[[float | None], None],
    ) -> None:
        subscription = self._subscription
        topics = subscription.subscription or set()
        wanted = {TopicPartition(topic, number) for topic, number in assigned if topic in topics}
        owned = subscription.assigned_partitions()
        notices = Notices(subscription.rebalance_listener)
        if wanted != owned:
            revoked = owned - wanted
            if revoked:
                self._before_revoking(deadline, before_revoking)
                self._give_up(notices, "revoked", revoked)
                self._heard = self._heard - revoked
            subscription.assign_from_subscribed(sorted(wanted))
            self.session.owns(wanted)
            log.info("group %s assigns %s", self._group_id, wanted)
        elif self.session.owned != wanted:  # it was assigned more meanwhile, and then not any more
            self.session.owns(wanted)
        added = wanted - self._heard  # also what a poll took over that Ctrl-C ended
        if added:
            notices.tell("assigned", added)
            self._heard = wanted
        notices.report()

    # -- leaving ----------------------------------------------------------------------------------

    def leave(self, timeout_ms: float | None) -> None:
        """Leave the group, within ``timeout_ms``; no listener is told."""
        self._subscribed = None  # before it leaves: after a Ctrl-C in that it would never join again
        self._heard = set()
        self._topics.changed()
        self.session.leave(timeout_ms)

    # -- committing -------------------------------------------------------------------------------

    def identity(self) -> Identity:
        """Epoch, member id and instance id to commit under.

        Raises:
            CommitFailedError: there is no membership.
        """
        session = self.session
        if not self._subscription.partitions_auto_assigned():
            return -1, "", self._instance_id
        if session.epoch > JOIN and not session.lost:
            return session.epoch, session.member_id, self._instance_id
        raise self._not_a_member()

    def commit_refused(self, error: type[Exception], generation: int, member_id: str) -> None:
        """The coordinator does not know the member any more. For any thread."""
        if error is not StaleMemberEpochError:
            self.session.lose(generation)

    # -- looking ----------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """The member's epoch; -1 without a membership."""
        return self.session.epoch or -1

    def metadata(self) -> ConsumerGroupMetadata:
        """kafka-python's snapshot of the membership."""
        session = self.session
        joined = session.epoch > JOIN and not session.lost
        state = MemberState.STABLE if joined else MemberState.UNJOINED
        known = (session.epoch, session.member_id) if joined else (-1, "")
        return ConsumerGroupMetadata(self._group_id, *known, self._instance_id, state)
