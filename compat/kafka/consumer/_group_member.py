"""A member of a consumer group: what happens in the program's thread, inside ``poll``.

kafka-python's protocol with kafka-python's parts: its assignors work out who reads what, and metadata and
assignments are its own octets, so that members with other Kafka clients can share the group. A rebalance
is: commit (if commits are automatic) and tell the listener what is revoked; join; assign, if this member
leads; sync; take the assignment over and tell the listener. Joining and syncing happen in the hub
(:mod:`~compat.kafka.consumer._group_session`); a ``poll`` whose time runs out leaves them there, returns
nothing, and the next one goes on.

*Eager* assignors: everything is revoked before joining. *Cooperative* ones: a member keeps what it has, is
told by the assignment what it has to give up, and joins once more so that others can have it. A member
that was removed from the group has *lost* its partitions: other members may own them already, so it
commits nothing.

The member joins again when a heartbeat says so, when its subscription changes (a pattern may match new
topics), and, if it leads, when a topic of the group has more partitions than it assigned.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, NamedTuple

from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.errors import CommitFailedError, FencedInstanceIdError, RebalanceInProgressError
from kafka.errors import UnknownMemberIdError as Unknown
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import ConsumerGroupMetadata, MemberState, TopicPartition

from compat.kafka._calls import GRACE, Calls
from compat.kafka._client import Client
from compat.kafka.consumer._group_session import JoinAttempt, Session
from compat.kafka.consumer._listener import Notices
from compat.kafka.consumer._membership import Identity, Membership
from compat.kafka.consumer._topics import Topics
from dafka.broker.interface.broker import Joined, Synced

log = logging.getLogger(__name__)

WAIT_SLICE = 1.0  # seconds that one wait takes at most; in between the program is seen to be alive


class Candidate(NamedTuple):
    """A member as kafka-python's assignors want it."""

    member_id: str
    group_instance_id: str | None
    metadata: Any


class GroupMember(Membership):
    """One consumer in its group. All methods belong to the program's thread but :meth:`interrupt`."""

    def __init__(
        self,
        client: Client,
        calls: Calls,
        subscription: SubscriptionState,
        config: dict[str, Any],
        wake_caller: Callable[[], None],
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._group_id = config["group_id"]
        self._instance_id = config["group_instance_id"]
        strategy = config["partition_assignment_strategy"]
        made = [one if isinstance(one, AbstractPartitionAssignor) else one() for one in strategy]
        self._assignors: dict[str, Any] = {one.name: one for one in made}
        common = set.intersection(*(set(one.supported_protocols()) for one in made))
        self._cooperative = max(common) == RebalanceProtocol.COOPERATIVE
        self._topics = Topics(calls, subscription, config["allow_auto_create_topics"])
        self.session = Session(client, calls, config, wake_caller)
        self.wait_slice = min(WAIT_SLICE, config["max_poll_interval_ms"] / 3000)
        self._rejoin = True
        self._prepared = False  # the listener knows that a rebalance is under way
        self._attempt: JoinAttempt | None = None
        self._offered: list[tuple[str, bytes]] = []  # protocols with metadata, as last joined with
        self._stable = False
        self._joined_with: set[str] | None = None  # the subscription that was last joined with
        self._assigned_from: dict[str, frozenset[int]] | None = None  # partitions the leader has assigned
        self._outdated = False  # ... and whether there are others by now
        self._interrupted = False
        dropped = weakref.finalize(self, self.session.abandon)
        dropped.atexit = False

    # -- rebalancing ------------------------------------------------------------------------------

    def changed(self) -> None:
        """The subscription has changed, or metadata is known to be old: look at it next time."""
        self._topics.changed()

    def poll(self, deadline: float, before_revoking: Callable[[float | None], None]) -> bool:
        """Take part in a rebalance if there is one; False if it has not ended by ``deadline``.

        ``before_revoking`` is told how many milliseconds it has; None: as many as it likes.

        Raises:
            KafkaError: a rebalance listener failed; its exception is the cause.
            FencedInstanceIdError: another consumer has joined with this ``group_instance_id``.
            InconsistentGroupProtocolError, InvalidSessionTimeoutError, InvalidGroupIdError,
            GroupMaxSizeReachedError: the group does not take this member.
        """
        if not self._subscription.partitions_auto_assigned():
            return True
        self.session.last_poll = monotonic()
        if self._topics.look(deadline) and self._assigned_from is not None:
            self._outdated = self._assigned_from != self._topics.snapshot()
        while self._attempt is not None or self._must_join():
            if self._attempt is None:
                self._prepare(deadline, before_revoking)
                self._offered = self._protocols()
                self._attempt = self.session.join(self._offered)
            if not self._wait(self._attempt, deadline):
                return False
            outcome, self._attempt = self._attempt.outcome, None
            if isinstance(outcome, Joined):
                # If the group has moved on meanwhile, it joins once more with what it offered.
                self._attempt = self.session.join(self._offered, self._assign(outcome, deadline))
            elif isinstance(outcome, Synced):
                self._complete(outcome)
            elif isinstance(outcome, Unknown):
                self._expelled()
            elif outcome is not None:
                raise outcome
        return True

    def _wait(self, attempt: JoinAttempt, deadline: float) -> bool:
        while not attempt.wait(min(deadline - monotonic(), self.wait_slice)):
            now = self.session.last_poll = monotonic()
            if now >= deadline or self._interrupted:
                return False
        return True

    def interrupt(self) -> None:
        """End a wait for other members; for any thread."""
        self._interrupted = True
        attempt = self._attempt
        if attempt is not None:
            attempt.wake()

    def _must_join(self) -> bool:
        pending_error = self.session.pending_error
        if pending_error is FencedInstanceIdError:
            self._stable = False
            raise FencedInstanceIdError((self._group_id, self._instance_id))
        if pending_error is not None:
            self._rejoin = True
        return self._rejoin or self._outdated or self._joined_with != self._subscription.subscription

    def _prepare(self, deadline: float, before_revoking: Callable[[float | None], None]) -> None:
        """Revoke what has to be revoked before joining, once for each rebalance."""
        if self._prepared:
            return
        self._rejoin = True  # also if a listener fails below
        subscription, session = self._subscription, self.session
        notices = Notices(subscription.rebalance_listener)
        owned = subscription.assigned_partitions()
        lost = session.lost
        if lost:
            session.forget()
            self._stable = False
        if lost and owned:
            log.info("Group %s lost membership; forcibly revoking %s", self._group_id, owned)
            subscription.mark_pending_revocation(owned)
            notices.tell("lost", owned)
            self._drop_assignment()
        else:
            left = max(deadline - monotonic(), GRACE)
            before_revoking(None if left == float("inf") else left * 1000)
            if not self._cooperative:
                subscription.mark_pending_revocation(owned)
                notices.tell("revoked", owned)
            else:
                revoked = {one for one in owned if one.topic not in (subscription.subscription or ())}
                if revoked:
                    subscription.mark_pending_revocation(revoked)
                    notices.tell("revoked", revoked)
                    subscription.assign_from_subscribed(sorted(owned - revoked))
                    self._claim(owned - revoked)
        self._forget_leading()
        notices.report()
        self._prepared = True

    def _forget_leading(self) -> None:
        self._assigned_from = None
        self._outdated = False
        self._topics.others = set()

    def _drop_assignment(self) -> None:
        self._subscription.assign_from_subscribed([])
        self._claim(set())

    def _claim(self, partitions: set[TopicPartition]) -> None:
        """Cooperative assignors tell the leader what this member has; it must not be more than that."""
        if self._cooperative:
            by_topic: dict[str, list[int]] = {}
            for topic, number in sorted(partitions):
                by_topic.setdefault(topic, []).append(number)
            for assignor in self._assignors.values():
                assignment = ConsumerProtocolAssignment(0, list(by_topic.items()), b"")
                assignor.on_assignment(assignment, self.session.generation)

    def _expelled(self) -> None:
        """The coordinator did not know this member when it joined or synced: join again as a new one."""
        self._rejoin = True
        self._stable = False
        if self._cooperative:
            self._prepared = False  # what it has kept is lost, which the listener has to hear
        else:
            self.session.forget()
            self._drop_assignment()  # the listener was told before; the positions are no longer this member's

    def _protocols(self) -> list[tuple[str, bytes]]:
        self._stable = False
        self._joined_with = topics = set(self._subscription.subscription or ())
        return [(name, assignor.metadata(topics).encode()) for name, assignor in self._assignors.items()]

    def _assign(self, joined: Joined, deadline: float) -> dict[str, bytes]:
        """The leader's work: who of the members reads which partitions."""
        candidates = [
            Candidate(member_id, instance_id, ConsumerProtocolSubscription.decode(metadata))
            for member_id, instance_id, metadata in joined.members
        ]
        self._topics.others = {topic for one in candidates for topic in one.metadata.topics}
        self._topics.changed()
        self._topics.look(deadline)  # if it comes too late for this, the group rebalances once more
        self._assigned_from = self._topics.snapshot()
        assignments = self._assignors[str(joined.protocol)].assign(self._topics, candidates)
        return {member_id: assignment.encode() for member_id, assignment in assignments.items()}

    def _complete(self, synced: Synced) -> None:
        """Take the assignment over."""
        subscription = self._subscription
        assignor = self._assignors[str(synced.protocol)]
        assignment = (
            ConsumerProtocolAssignment.decode(synced.assignment)
            if synced.assignment
            else ConsumerProtocolAssignment(0, [], b"")
        )
        owned, wanted = subscription.assigned_partitions(), set(assignment.partitions())
        rejected: ValueError | None = None
        try:
            subscription.assign_from_subscribed(sorted(wanted))
        except ValueError as error:
            rejected = error
        else:
            assignor.on_assignment(assignment, self.session.generation)
        # Not before: a member that is interrupted (Ctrl-C) before this line joins again.
        self._stable = True
        self._prepared = False
        if rejected is not None:
            log.warning("assignment rejected, joining again: %s", rejected)
            return
        revoked, added = owned - wanted, wanted - owned
        self._rejoin = self._cooperative and bool(revoked)  # so that the others can have them
        log.info("group %s assigns %s", self._group_id, wanted)
        notices = Notices(subscription.rebalance_listener)
        if not self._cooperative:
            notices.tell("assigned", wanted)
        else:
            if revoked:
                notices.tell("revoked", revoked)
            if added:
                notices.tell("assigned", added)
        notices.report()

    # -- leaving ----------------------------------------------------------------------------------

    def leave(self, timeout_ms: float | None) -> None:
        """Leave the group, within ``timeout_ms``; no listener is told."""
        self.session.leave(timeout_ms)
        self._attempt = None
        self._rejoin = True
        self._prepared = self._stable = False
        self._joined_with = None
        self._forget_leading()
        self._topics.changed()

    def close(self, timeout_ms: float | None) -> None:
        """Give the partitions back, so that the listener is told, and leave the group."""
        subscription = self._subscription
        notices = Notices(subscription.rebalance_listener)
        try:
            owned = subscription.assigned_partitions()
            if subscription.partitions_auto_assigned() and owned:
                subscription.mark_pending_revocation(owned)
                notices.tell("lost" if self.session.lost else "revoked", owned)
                self._drop_assignment()
        finally:
            self.leave(timeout_ms)
        notices.report()

    # -- committing -------------------------------------------------------------------------------

    def identity(self) -> Identity:
        """Generation, member id and instance id to commit under.

        Raises:
            RebalanceInProgressError: a rebalance is under way in this member.
            CommitFailedError: there is no membership.
        """
        session = self.session
        if not self._subscription.partitions_auto_assigned():
            return -1, "", self._instance_id
        if self._stable and not session.lost:
            return session.generation, session.member_id, self._instance_id
        if self._attempt is not None or (self._prepared and not session.lost):
            raise RebalanceInProgressError(
                "Offset commit cannot be completed since the consumer is undergoing a rebalance for auto "
                "partition assignment. You can try completing the rebalance by calling poll() and then "
                "retry the operation."
            )
        raise CommitFailedError(
            "Offset commit cannot be completed since the consumer is not part of an active group for auto "
            "partition assignment; it is likely that the consumer was kicked out of the group."
        )

    def commit_refused(self, error: type[Exception], generation: int, member_id: str) -> None:
        """Join again: the coordinator has refused a commit under that name. For any thread."""
        self.session.fail_membership(error, generation, member_id)

    # -- looking ----------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """The generation that was last joined; -1 without a membership."""
        return self.session.generation

    def metadata(self) -> ConsumerGroupMetadata:
        """kafka-python's snapshot of the membership."""
        session = self.session
        state = MemberState.STABLE if self._stable and not session.lost else MemberState.UNJOINED
        if self._attempt is not None:
            state = MemberState.REBALANCING
        known = ("", -1) if session.pending_error in (Unknown,) else (session.member_id, session.generation)
        return ConsumerGroupMetadata(self._group_id, known[1], known[0], self._instance_id, state)

    def partitions_for_topic(self, topic: str) -> Iterable[int] | None:
        """The partitions in the last metadata; None if the topic was not in it."""
        return self._topics.partitions_for_topic(topic)
