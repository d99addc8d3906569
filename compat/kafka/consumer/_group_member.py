"""A member of a consumer group: the part that runs in the program's thread, inside ``poll``.

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
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.errors import FencedInstanceIdError, RebalanceInProgressError
from kafka.errors import UnknownMemberIdError as Unknown
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import ConsumerGroupMetadata, MemberState, TopicPartition

from compat.kafka._calls import Calls
from compat.kafka._client import Client
from compat.kafka.consumer._group_session import JoinAttempt, Session
from compat.kafka.consumer._in_group import Member
from compat.kafka.consumer._listener import Notices
from compat.kafka.consumer._membership import Identity
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import Joined, Synced

log = logging.getLogger(__name__)


class Candidate(NamedTuple):
    """A member as kafka-python's assignors want it."""

    member_id: str
    group_instance_id: str | None
    metadata: Any


class GroupMember(Member[Session]):
    """One consumer in its group. All methods belong to the program's thread but :meth:`interrupt`."""

    def __init__(
        self,
        client: Client,
        calls: Calls,
        subscription: SubscriptionState,
        config: dict[str, Any],
        wake_caller: Callable[[], None],
    ) -> None:
        super().__init__(calls, subscription, config, Session(client, calls, config, wake_caller))
        strategy = config["partition_assignment_strategy"]
        made = [one if isinstance(one, AbstractPartitionAssignor) else one() for one in strategy]
        self._assignors: dict[str, Any] = {one.name: one for one in made}
        common = set.intersection(*(set(one.supported_protocols()) for one in made))
        self._cooperative = max(common) == RebalanceProtocol.COOPERATIVE
        self._rejoin = True
        self._prepared = False  # the listener knows that a rebalance is under way
        self._attempt: JoinAttempt | None = None
        self._offered: list[tuple[str, bytes]] = []  # protocols with metadata, as last joined with
        self._stable = False
        self._untold = False  # the listener does not know yet of the assignment that was taken over
        self._joined_with: set[str] | None = None  # the subscription that was last joined with
        self._assigned_from: dict[str, frozenset[int]] | None = None  # partitions the leader has assigned
        self._outdated = False  # ... and whether there are others by now

    # -- rebalancing ------------------------------------------------------------------------------

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
        if self._untold:  # Ctrl-C came before
            self._tell_assignment()
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
            elif isinstance(outcome, BrokerStoppedError) and self.session.broker_runs:
                log.debug("group %s: joining at the broker that was started again", self._group_id)
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
            self._lose(notices, owned)
        else:
            self._before_revoking(deadline, before_revoking)
            if not self._cooperative:
                self._give_up(notices, "revoked", owned)
            else:
                revoked = {one for one in owned if one.topic not in (subscription.subscription or ())}
                if revoked:
                    self._give_up(notices, "revoked", revoked)
                    self._heard = self._heard - revoked
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
        super()._drop_assignment()
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
            self._prepared = False  # the partitions it has kept are lost, which the listener has to hear
        else:
            self.session.forget()
            self._drop_assignment()  # the listener was told before; the positions are no longer this member's

    def _protocols(self) -> list[tuple[str, bytes]]:
        self._stable = False
        self._joined_with = topics = set(self._subscription.subscription or ())
        return [(name, assignor.metadata(topics).encode()) for name, assignor in self._assignors.items()]

    def _assign(self, joined: Joined, deadline: float) -> dict[str, bytes]:
        """The leader's work: assign partitions to the members."""
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
        if not self._cooperative:
            self._heard = set()  # all was revoked before it joined
        try:
            subscription.assign_from_subscribed(sorted(wanted))
        except ValueError as error:
            rejected = error
        else:
            assignor.on_assignment(assignment, self.session.generation)
        # Not before: a member that is interrupted (Ctrl-C) before this line joins again.
        self._stable = True
        self._prepared = False
        self._untold = rejected is None
        if rejected is not None:
            log.warning("assignment rejected, joining again: %s", rejected)
            return
        self._rejoin = self._cooperative and bool(owned - wanted)  # so that the others can have them
        log.info("group %s assigns %s", self._group_id, wanted)
        self._tell_assignment()

    def _tell_assignment(self) -> None:
        """Tell the listener what an eager member has, or what has changed for a cooperative one."""
        notices = Notices(self._subscription.rebalance_listener)
        owned = self._subscription.assigned_partitions()
        revoked, added = self._heard - owned, owned - self._heard
        if revoked:
            notices.tell("revoked", revoked)
            self._heard = self._heard - revoked
        if added or not self._cooperative:
            notices.tell("assigned", added)
        self._heard, self._untold = owned, False
        notices.report()

    # -- leaving ----------------------------------------------------------------------------------

    def leave(self, timeout_ms: float | None) -> None:
        """Leave the group, within ``timeout_ms``; no listener is told."""
        self._attempt = None
        self._rejoin = True  # before it leaves: after a Ctrl-C in that it would never join again
        self._prepared = self._stable = self._untold = False
        self._heard = set()
        self._joined_with = None
        self._forget_leading()
        self._topics.changed()
        self.session.leave(timeout_ms)

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
        raise self._not_a_member()

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
