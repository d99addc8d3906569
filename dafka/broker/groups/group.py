"""One consumer group: Kafka's classic group protocol as a state machine, without I/O, threads or clock.

Theory of operation
-------------------
The members share the work among themselves; the broker does not know what they share. Each member *joins*
with the protocols that it supports (names, and metadata that only members understand). When all have joined,
a new *generation* begins: one member is the leader and gets the metadata of the others. The leader computes
the assignment, and every member *syncs*: the leader sends the assignments, the others wait for theirs. Then
members send *heartbeats*, until one joins, leaves, expires or changes its metadata; then all join again.

    Empty ──join──> PreparingRebalance ──all joined──> CompletingRebalance ──leader synced──> Stable
      ^                │   ^   ^                             │ join, leave, expiry              │
      └─nobody left────┘   │   └─────────────────────────────┘                                  │
      │                    └──────────────── join, leave, expiry ───────────────────────────────┘
      └─long empty─> Dead

A join is answered when the generation is complete, a sync when the leader has synced. Such calls take a
``reply`` function, which is called exactly once: before the call returns, or during a later call. A parked
heartbeat works the same way and is answered when a rebalance begins, the member is removed or a newer
heartbeat replaces it, so members learn of a rebalance at once.

No call waits for ever. A member that sends nothing for its session timeout is removed, except while its own
join or sync waits here. How long a rebalance waits for joins is in :mod:`dafka.broker.groups.rebalance`; for
syncs it waits up to the longest rebalance timeout, then removes the members that are missing.

A *static* member keeps its place while it is away: it does not leave. A client that joins with the same
``instance_id`` takes over its assignment under a new member id, without a rebalance unless the protocol
would change. The old member id is fenced from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from uuid import uuid4

from kafka.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from dafka.broker.groups.generation import Deliver, Generation, State, at_once
from dafka.broker.groups.kept_rows import SavedClassic, SavedGeneration
from dafka.broker.groups.members import HeartbeatReply, JoinReply, Member, Members, Reply, SyncReply
from dafka.broker.groups.rebalance import DEFAULTS, JoinPhase, Terms
from dafka.broker.interface.groups import (
    NO_MEMBER,
    Error,
    GroupDescription,
    GroupType,
    Joined,
    JoinRequest,
    LeavingMember,
    Synced,
    TopicPartition,
)
from dafka.broker.limits import EMPTY_SECONDS


class Group:
    """A group. ``wake_at`` is the latest time for the next :meth:`tick`; an earlier one is harmless.

    ``deliver(replies, count)`` gives the answers to many members, now or soon: it calls the functions that it
    is given, each with its value. If the group has changed by then, members learn of it with their next call.
    """

    def __init__(self, now: float, deliver: Deliver = at_once, terms: Terms = DEFAULTS) -> None:
        self._deliver = deliver
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.members = Members(terms.size)
        self.wake_at = inf
        self._joins = JoinPhase(terms.initial_delay)
        self._sync_by = inf
        self._forget_at = inf
        self._is_unsaved = False
        self._emptied(now)

    @property
    def leader(self) -> str | None:
        """The id of the member that computes the assignment."""
        return self.members.leader

    # -- as one of all groups: see dafka.broker.groups.registry ---------------------------------------

    type = GroupType.CLASSIC
    kept = None

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def listed_protocol(self) -> str:
        return self.protocol_type or ""

    @property
    def occupied(self) -> bool:
        return bool(self.members)

    @property
    def dead(self) -> bool:
        return self.state is State.DEAD

    def subscribed(self) -> frozenset[str] | None:
        """The topics that the members of a consumer group read; None if they are unknown."""
        return self.members.topics(self.protocol_type)

    def expires_unread(self) -> bool:
        return self.state is State.STABLE

    # -- over a restart: see dafka.broker.groups.kept_members -----------------------------------------

    def take_unsaved(self) -> Iterable[str] | None:
        """None if the members have a new assignment, or are gone, since this was last asked."""
        asked, self._is_unsaved = self._is_unsaved, False
        return None if asked else ()

    def member_ids(self) -> Iterable[str]:
        return self.members

    def saved_member(self, member_id: str) -> SavedClassic | None:
        return self.members.saved(member_id)

    def saved_whole(self) -> SavedGeneration:
        whole = (self.generation, self.protocol_type, self.protocol, self.leader)
        return SavedGeneration(len(self.members), *whole, self.state is State.STABLE)

    # -- joining ----------------------------------------------------------------------------------

    def join(self, now: float, request: JoinRequest, reply: JoinReply) -> None:
        """JoinGroup; answered when the generation has all its members, or at once with an error."""
        dead = CoordinatorNotAvailableError if self.state is State.DEAD else None
        error = dead or self.members.join_refusal(request, self.protocol_type)
        if error is not None:
            reply(Joined(error, member_id=request.member_id))
        elif request.member_id == NO_MEMBER:
            self._join_new(now, request, reply)
        elif self.members.pending.pop(request.member_id, None) is not None:
            self._add(now, request.member_id, request, reply)
        else:
            error = self.members.refusal(request.member_id, request.instance_id)
            if error is not None:
                reply(Joined(error, member_id=request.member_id))
            else:
                self._rejoin(now, self.members[request.member_id], request, reply)

    def _join_new(self, now: float, request: JoinRequest, reply: JoinReply) -> None:
        instance = request.instance_id
        member_id = f"{request.client_id if instance is None else instance}-{uuid4()}"
        known = self.members.of_instance(instance)
        if known is not None:
            self._take_over(now, known, member_id, request, reply)
        elif instance is None and request.require_known_member:
            self.members.pending[member_id] = until = now + request.session_timeout
            self.wake_at = min(self.wake_at, until)
            self._joins.extend(now)
            reply(Joined(MemberIdRequiredError, member_id=member_id))
        else:
            self._add(now, member_id, request, reply)

    def _add(self, now: float, member_id: str, request: JoinRequest, reply: JoinReply) -> None:
        member = Member(member_id, request, now)
        member.join = reply
        self.members.add(member)
        self.protocol_type = request.protocol_type
        self._joins.extend(now)
        self._prepare(now)

    def _rejoin(self, now: float, member: Member, request: JoinRequest, reply: JoinReply) -> None:
        same = tuple(member.request.protocols) == tuple(request.protocols)
        if same and (
            self.state is State.COMPLETING or (self.state is State.STABLE and member.member_id != self.leader)
        ):
            # Nothing has changed. The client repeats its JoinGroup, perhaps because the answer was lost.
            self._touch(member, now)
            reply(self._answering.joined(member.member_id, self.members.values()))
            return
        at_once(member.dismiss(RebalanceInProgressError), 1)
        self.members.change(member, request)
        member.join = reply
        self._prepare(now)

    def _take_over(
        self, now: float, member: Member, member_id: str, request: JoinRequest, reply: JoinReply
    ) -> None:
        """A new process of a static member takes the place of the old one."""
        old_id = member.member_id
        at_once(member.dismiss(FencedInstanceIdError), 1)
        led = self.leader == old_id
        self.members.rename(member, member_id)
        self.members.change(member, request)
        self._touch(member, now)
        if self.state is State.STABLE and self.members.chosen_protocol() == self.protocol:
            self._is_unsaved = True
            joined = self._answering.joined(member.member_id, self.members.values())
            if led and request.can_skip_assignment:
                joined = joined._replace(skip_assignment=True)
            elif led:
                # It must not compute a new assignment, so the answer names another leader.
                joined = joined._replace(leader=old_id, members=())
            reply(joined)
            return
        member.join = reply
        self._prepare(now)

    @property
    def _answering(self) -> Generation:
        """The answers to the members of the generation."""
        return Generation(self.generation, self.protocol_type, self.protocol, self.leader or NO_MEMBER)

    # -- rebalancing --------------------------------------------------------------------------------

    def _prepare(self, now: float) -> None:
        """Begin a rebalance, or complete the current one if all members have joined."""
        if self.state is not State.PREPARING:
            self._joins.begin(now, self.members, initial=self.state is State.EMPTY)
            forget = self.state is State.COMPLETING
            self.state = State.PREPARING
            self._sync_by = self._forget_at = inf
            self.wake_at = min(self.wake_at, self._joins.wake_at(now))
            replies: list[Reply] = []
            for member in self.members.values():
                if forget:
                    member.assignment = b""
                if member.sync is not None:
                    sync, member.sync = member.sync, None
                    self._touch(member, now)
                    replies.append((sync, Synced(RebalanceInProgressError)))
                if member.heartbeat is not None:
                    replies += member.wake(RebalanceInProgressError)
            self._deliver(replies, len(replies))
        self._complete_joins(now)

    def _complete_joins(self, now: float) -> None:
        if self.state is not State.PREPARING or not self._joins.is_complete(now, self.members):
            return
        self._remove(self.members.absent())
        joined = [member for member in self.members.values() if member.join is not None]
        if self.members and not joined:
            # All members are static and away: they keep their places until their sessions expire.
            self._joins.begin_again(now, self.members)
            self.wake_at = min(self.wake_at, self._joins.wake_at(now))
            return
        self.generation += 1
        self._joins.end()
        if not self.members:
            self._emptied(now)
            return
        if self.leader is None or self.members[self.leader].join is None:
            self.members.leader = joined[0].member_id
        self.protocol = self.members.chosen_protocol()
        self.state = State.COMPLETING
        self._sync_by = now + self.members.rebalance_timeout
        self.wake_at = min(self.wake_at, self._sync_by)
        replies = [(member.join, member.member_id) for member in joined]
        for member in joined:
            member.synced = False
            member.expires = now + member.request.session_timeout
            member.join = None
        self.wake_at = min(self.wake_at, min(member.expires for member in joined))
        everybody = list(self.members.values())
        self._deliver(self._answering.answers(replies, everybody), len(replies))

    def _emptied(self, now: float) -> None:
        self.state = State.EMPTY
        self.protocol = None
        self._is_unsaved = True
        self._forget_at = now + EMPTY_SECONDS
        self.wake_at = min(self.wake_at, self._forget_at)

    # -- syncing ------------------------------------------------------------------------------------

    def sync(
        self,
        now: float,
        generation: int,
        member_id: str,
        instance_id: str | None,
        protocol_type: str | None,
        protocol: str | None,
        assignments: Mapping[str, bytes],
        reply: SyncReply,
    ) -> None:
        """SyncGroup; answered when the leader has synced, or at once with an error."""
        error = self._fenced(generation, member_id, instance_id)
        if error is None and (
            (protocol_type is not None and protocol_type != self.protocol_type)
            or (protocol is not None and protocol != self.protocol)
        ):
            error = InconsistentGroupProtocolError
        if error is None and self.state is State.PREPARING:
            error = RebalanceInProgressError
        if error is not None:
            reply(Synced(error))
            return
        member = self.members[member_id]
        member.synced = True
        if self.state is State.STABLE:
            self._touch(member, now)
            reply(self._synced(member))
            return
        if member.sync is not None:
            member.sync(Synced(RebalanceInProgressError))  # a newer SyncGroup replaces the pending one
        member.sync = reply
        if member_id == self.leader:
            self._assign(now, assignments)

    def _assign(self, now: float, assignments: Mapping[str, bytes]) -> None:
        self.state = State.STABLE
        self._is_unsaved = True
        replies: list[Reply] = []
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.sync is not None:
                sync, member.sync = member.sync, None
                self._touch(member, now)
                replies.append((sync, self._synced(member)))
        self._deliver(replies, len(replies))

    def _synced(self, member: Member) -> Synced:
        return Synced(None, member.assignment, self.protocol_type, self.protocol)

    # -- heartbeats ------------------------------------------------------------------------------

    def heartbeat(
        self,
        now: float,
        generation: int,
        member_id: str,
        instance_id: str | None,
        reply: HeartbeatReply | None = None,
    ) -> Error | None:
        """Heartbeat. Returns an error, or keeps ``reply`` to call it when the member has to rejoin."""
        error = self._fenced(generation, member_id, instance_id)
        if error is not None:
            return error
        member = self.members[member_id]
        self._touch(member, now)
        if self.state is State.PREPARING:
            return RebalanceInProgressError
        if reply is not None:
            at_once(member.wake(None), 1)
            member.heartbeat = reply
        return None

    def heartbeat_over(self, now: float, member_id: str, reply: HeartbeatReply) -> None:
        """The caller stops waiting for a parked heartbeat: the session is extended from now on."""
        member = self.members.get(member_id)
        if member is not None and member.heartbeat is reply:
            member.heartbeat = None
            self._touch(member, now)

    def check_commit(
        self,
        now: float,
        generation: int,
        member_id: str,
        instance_id: str | None,
        partitions: Iterable[TopicPartition],
    ) -> Error | None:
        """The error of an offset commit, None if it is allowed. A commit by a member extends its session."""
        if generation < 0 and not self.members:
            return None
        if generation < 0 and member_id == NO_MEMBER and instance_id is None:
            return UnknownMemberIdError  # only its members commit for a group that has any
        error = self._fenced(generation, member_id, instance_id)
        if error is not None:
            return error
        self._touch(self.members[member_id], now)
        return RebalanceInProgressError if self.state is State.COMPLETING else None

    def _fenced(self, generation: int, member_id: str, instance_id: str | None) -> Error | None:
        if self.state is State.DEAD:
            return CoordinatorNotAvailableError
        error = self.members.refusal(member_id, instance_id)
        if error is None and generation != self.generation:
            error = IllegalGenerationError
        return error

    def _touch(self, member: Member, now: float) -> None:
        member.expires = now + member.request.session_timeout
        self.wake_at = min(self.wake_at, member.expires)

    def begin_again(self, now: float) -> None:
        """Have all members join again."""
        self._prepare(now)

    # -- leaving ------------------------------------------------------------------------------------

    def leave(self, now: float, leaving: Iterable[LeavingMember]) -> list[Error | None]:
        """LeaveGroup: an answer for each member, and one rebalance for all."""
        answers, gone = self.members.resign(leaving)
        if gone:
            self._remove(gone)
            self._members_gone(now)
        else:
            self._complete_joins(now)  # a rebalance may have waited for a pending id
        return answers

    def tick(self, now: float) -> None:
        """Apply the timeouts that are due: of sessions, of rebalances and of syncs."""
        self.members.expire_pending(now)
        late = self.members.late(now, syncs_are_over=now >= self._sync_by)
        self._remove(late)
        if now >= self._sync_by:
            self._sync_by = inf
        if late:
            self._members_gone(now)
        self._complete_joins(now)
        forget_at = self._forget_at if self.state is State.EMPTY and not self.members.pending else inf
        if now >= forget_at:
            self.state, forget_at = State.DEAD, inf
        self.wake_at = min(forget_at, self._sync_by, self._joins.wake_at(now), self.members.next_expiry)

    def die(self) -> None:
        """Mark the group as deleted; it has to be empty."""
        self.state = State.DEAD

    def _remove(self, members: Sequence[Member]) -> None:
        replies: list[Reply] = []
        for member in members:
            self.members.remove(member)
            if member.parks:
                replies += member.dismiss(UnknownMemberIdError)
        self._deliver(replies, len(replies))

    def _members_gone(self, now: float) -> None:
        if self.state in (State.COMPLETING, State.STABLE):
            self._prepare(now)
        else:
            self._complete_joins(now)

    # -- describing ------------------------------------------------------------------------------------

    def describe(self) -> GroupDescription:
        """State, protocol and members; protocol, metadata and assignments only while the group is stable."""
        settled = self.state is State.STABLE
        members = [member.described(self.protocol, settled) for member in self.members.values()]
        protocol = (self.protocol or "") if settled else ""
        return GroupDescription(None, self.state.value, self.protocol_type or "", protocol, members)
