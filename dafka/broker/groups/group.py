"""One consumer group: Kafka's classic group protocol as a state machine, without I/O, threads or clock.

Theory of operation
-------------------
Members agree on who does what without the broker knowing what it is about. Each *joins* with what it can
do (protocol names, and metadata that only members understand). When all have joined, a new *generation*
begins: one member is the leader and learns the others' metadata. The leader works out an assignment, and
everyone *syncs*: the leader hands the assignments in, the others wait for theirs. From then on members
*heartbeat*, until one joins, leaves, dies or changes its metadata; then all have to join again.

    Empty ──join──> PreparingRebalance ──all joined──> CompletingRebalance ──leader synced──> Stable
      ^                │   ^   ^                             │ join, leave, expiry              │
      └─nobody left────┘   │   └─────────────────────────────┘                                  │
      │                    └──────────────── join, leave, expiry ───────────────────────────────┘
      └─long empty─> Dead

A join is answered when the generation is complete, a sync when the leader has come: calls take a ``reply``
function, which is called exactly once, at once or in a later call. A parked heartbeat works the same way:
it is answered when there is something to say. So members hear of a rebalance when it begins.

Nobody waits for ever: a member without a sign of life for its session timeout is removed, except while its
join or sync waits here. A rebalance waits for known members up to the largest of their rebalance timeouts,
then goes on without them; the same goes for syncs. Members that were given an id and have not joined with
it yet (``pending``) are waited for, too, until their session timeout.

The first generation of an empty group waits a moment (``INITIAL_DELAY``) for members that start
together; each newcomer extends it, up to ``INITIAL_DELAY_MAX``. Kafka waits three seconds there, for
members that find each other over a network. Some clients rely on such a wait: they join before they know
the partitions of their topics, would assign nothing, and join again when they do. kafka-python, if its
``poll`` ends during that second join, never looks at the answer: it stays without partitions and without
heartbeats. For a leader of that kind the wait is ``INITIAL_DELAY_UNREADY``.

A *static* member keeps its place while it is away: it does not leave, and whoever joins with its
``instance_id`` takes over its assignment under a new member id, without a rebalance unless the protocol
would change. The old id is fenced from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from math import inf
from uuid import uuid4

from kafka.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from dafka.broker.groups.members import HeartbeatReply, JoinReply, Member, Members, SyncReply
from dafka.broker.interface.groups import (
    NO_MEMBER,
    Error,
    GroupDescription,
    Joined,
    JoinedMember,
    JoinRequest,
    LeavingMember,
    MemberDescription,
    Synced,
)
from dafka.broker.limits import (
    EMPTY_SECONDS,
    GROUP_MAX_SIZE,
    INITIAL_DELAY,
    INITIAL_DELAY_MAX,
    INITIAL_DELAY_UNREADY,
)


class State(Enum):
    """A group's state, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Group:
    """A group. ``wake_at``: when to call :meth:`tick` at the latest (it may be early)."""

    def __init__(self, now: float) -> None:
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.members = Members()
        self.wake_at = inf
        self._initial = False
        self._join_after = -inf
        self._join_by = inf
        self._sync_by = inf
        self._forget_at = inf
        self._emptied(now)

    @property
    def leader(self) -> str | None:
        """The member that assigns."""
        return self.members.leader

    # -- joining ----------------------------------------------------------------------------------

    def join(self, now: float, request: JoinRequest, reply: JoinReply) -> None:
        """JoinGroup; answered when the generation has all its members, or at once with an error."""
        error = self._cannot_join(request)
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

    def _cannot_join(self, request: JoinRequest) -> Error | None:
        if self.state is State.DEAD:
            return CoordinatorNotAvailableError
        names = {name for name, _ in request.protocols}
        if not names or not request.protocol_type:
            return InconsistentGroupProtocolError
        if self.members and (
            request.protocol_type != self.protocol_type or not names & self.members.protocols
        ):
            return InconsistentGroupProtocolError
        if request.member_id == NO_MEMBER and len(self.members) + len(self.members.pending) >= GROUP_MAX_SIZE:
            return GroupMaxSizeReachedError
        return None

    def _join_new(self, now: float, request: JoinRequest, reply: JoinReply) -> None:
        instance = request.instance_id
        member_id = f"{request.client_id if instance is None else instance}-{uuid4()}"
        known = self.members.of_instance(instance)
        if known is not None:
            self._take_over(now, known, member_id, request, reply)
        elif instance is None and request.require_known_member:
            self.members.pending[member_id] = until = now + request.session_timeout
            self.wake_at = min(self.wake_at, until)
            self._expect_more(now)
            reply(Joined(MemberIdRequiredError, member_id=member_id))
        else:
            self._add(now, member_id, request, reply)

    def _add(self, now: float, member_id: str, request: JoinRequest, reply: JoinReply) -> None:
        member = Member(member_id, request, now)
        member.join = reply
        self.members.add(member)
        self.protocol_type = request.protocol_type
        self._expect_more(now)
        self._prepare(now)

    def _rejoin(self, now: float, member: Member, request: JoinRequest, reply: JoinReply) -> None:
        same = tuple(member.request.protocols) == tuple(request.protocols)
        if same and (
            self.state is State.COMPLETING or (self.state is State.STABLE and member.member_id != self.leader)
        ):
            # Nothing new: it asks again because the answer was lost, or because it need not have asked.
            self._touch(member, now)
            reply(self._joined(member))
            return
        member.dismiss(RebalanceInProgressError)
        self.members.change(member, request)
        member.join = reply
        self._prepare(now)

    def _take_over(
        self, now: float, member: Member, member_id: str, request: JoinRequest, reply: JoinReply
    ) -> None:
        """A new instance of a static member: it gets the old one's place."""
        old_id = member.member_id
        member.dismiss(FencedInstanceIdError)
        led = self.leader == old_id
        self.members.rename(member, member_id)
        self.members.change(member, request)
        self._touch(member, now)
        if self.state is State.STABLE and self.members.chosen_protocol() == self.protocol:
            joined = self._joined(member)
            if led and request.can_skip_assignment:
                joined = joined._replace(skip_assignment=True)
            elif led:
                # It must not assign anew, so it is told that somebody else leads.
                joined = joined._replace(leader=old_id, members=())
            reply(joined)
            return
        member.join = reply
        self._prepare(now)

    def _joined(self, member: Member) -> Joined:
        members: Sequence[JoinedMember] = ()
        if member.member_id == self.leader:
            members = [
                JoinedMember(other.member_id, other.request.instance_id, other.metadata(self.protocol))
                for other in self.members.values()
            ]
        return Joined(
            None,
            self.generation,
            self.protocol_type,
            self.protocol,
            self.leader or NO_MEMBER,
            member.member_id,
            members,
        )

    # -- rebalancing --------------------------------------------------------------------------------

    def _expect_more(self, now: float) -> None:
        """A newcomer to the first generation: more may follow."""
        if self._initial:
            self._join_after = max(self._join_after, min(now + INITIAL_DELAY, self._join_by))

    def _prepare(self, now: float) -> None:
        """Begin a rebalance, or see whether the one that has begun is complete."""
        if self.state is not State.PREPARING:
            self._initial = self.state is State.EMPTY
            if self._initial:
                first = next(iter(self.members.values()))  # which is going to lead
                delay = INITIAL_DELAY if first.request.knows_partitions else INITIAL_DELAY_UNREADY
                self._join_after = now + delay
                self._join_by = now + max(delay, INITIAL_DELAY_MAX)
            else:
                self._join_after = now
                self._join_by = now + self.members.rebalance_timeout
            forget = self.state is State.COMPLETING
            self.state = State.PREPARING
            self._sync_by = self._forget_at = inf
            self.wake_at = min(self.wake_at, self._join_after, self._join_by)
            for member in self.members.values():
                if forget:
                    member.assignment = b""
                if member.sync is not None:
                    sync, member.sync = member.sync, None
                    self._touch(member, now)
                    sync(Synced(RebalanceInProgressError))
                member.wake(RebalanceInProgressError)
        self._complete_joins(now)

    def _complete_joins(self, now: float) -> None:
        if self.state is not State.PREPARING:
            return
        if now < self._join_by:
            if now < self._join_after or any(member.join is None for member in self.members.values()):
                return
            if self.members.pending and not self._initial:
                return
        for member in list(self.members.values()):
            if member.join is None and member.request.instance_id is None:
                self._remove(member)
        joined = [member for member in self.members.values() if member.join is not None]
        if self.members and not joined:
            # Static members only, all away: they keep their places until their sessions end.
            self._join_by = now + self.members.rebalance_timeout
            self.wake_at = min(self.wake_at, self._join_by)
            return
        self.generation += 1
        self._join_after, self._join_by, self._initial = -inf, inf, False
        if not self.members:
            self._emptied(now)
            return
        if self.leader is None or self.members[self.leader].join is None:
            self.members.leader = joined[0].member_id
        self.protocol = self.members.chosen_protocol()
        self.state = State.COMPLETING
        self._sync_by = now + self.members.rebalance_timeout
        self.wake_at = min(self.wake_at, self._sync_by)
        for member in joined:
            member.synced = False
            self._touch(member, now)
            reply, member.join = member.join, None
            if reply is not None:
                reply(self._joined(member))

    def _emptied(self, now: float) -> None:
        self.state = State.EMPTY
        self.protocol = None
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
            member.sync(Synced(RebalanceInProgressError))  # it asks again; one answer is enough
        member.sync = reply
        if member_id == self.leader:
            self._assign(now, assignments)

    def _assign(self, now: float, assignments: Mapping[str, bytes]) -> None:
        self.state = State.STABLE
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.sync is not None:
                sync, member.sync = member.sync, None
                self._touch(member, now)
                sync(self._synced(member))

    def _synced(self, member: Member) -> Synced:
        return Synced(None, member.assignment, self.protocol_type, self.protocol)

    # -- signs of life ------------------------------------------------------------------------------

    def heartbeat(
        self,
        now: float,
        generation: int,
        member_id: str,
        instance_id: str | None,
        reply: HeartbeatReply | None = None,
    ) -> Error | None:
        """Heartbeat. If all is well and there is a ``reply``, that is called when it is no longer."""
        error = self._fenced(generation, member_id, instance_id)
        if error is not None:
            return error
        member = self.members[member_id]
        self._touch(member, now)
        if self.state is State.PREPARING:
            return RebalanceInProgressError
        if reply is not None:
            member.wake(None)
            member.heartbeat = reply
        return None

    def heartbeat_over(self, now: float, member_id: str, reply: HeartbeatReply) -> None:
        """A parked heartbeat is no longer waited for: it counts as a sign of life until now."""
        member = self.members.get(member_id)
        if member is not None and member.heartbeat is reply:
            member.heartbeat = None
            self._touch(member, now)

    def check_commit(
        self, now: float, generation: int, member_id: str, instance_id: str | None
    ) -> Error | None:
        """Whether offsets may be committed under that name; a sign of life, if it is a member's."""
        if generation < 0 and not self.members:
            return None
        if generation < 0 and member_id == NO_MEMBER and instance_id is None:
            return UnknownMemberIdError  # a group with members belongs to them
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

    # -- leaving ------------------------------------------------------------------------------------

    def leave(self, now: float, leaving: Iterable[LeavingMember]) -> list[Error | None]:
        """LeaveGroup: an answer for each of them, and one rebalance for all."""
        answers: list[Error | None] = []
        before = len(self.members)
        for member_id, instance_id, _reason in leaving:
            if member_id == NO_MEMBER and instance_id is not None:
                static = self.members.of_instance(instance_id)
                member_id = NO_MEMBER if static is None else static.member_id
            if self.members.pending.pop(member_id, None) is not None:
                answers.append(None)
                continue
            error = self.members.refusal(member_id, instance_id)
            if error is None:
                self._remove(self.members[member_id])
            answers.append(error)
        if len(self.members) < before:
            self._members_gone(now)
        else:
            self._complete_joins(now)  # an id that was given out is not waited for any longer
        return answers

    def tick(self, now: float) -> None:
        """Carry out what is due: sessions that end, members that others have waited for long enough."""
        pending = self.members.pending
        for member_id in [member_id for member_id, until in pending.items() if until <= now]:
            del pending[member_id]
        late = [
            member
            for member in self.members.values()
            if (not member.synced and now >= self._sync_by) or (not member.waits and member.expires <= now)
        ]
        for member in late:
            self._remove(member)
        if now >= self._sync_by:
            self._sync_by = inf
        if late:
            self._members_gone(now)
        self._complete_joins(now)
        if self.state is State.EMPTY and not pending and now >= self._forget_at:
            self.state = State.DEAD
        self.wake_at = min(
            inf if self.state is State.DEAD else self._forget_at,
            self._sync_by,
            self._join_by if now >= self._join_after else self._join_after,
            self.members.next_expiry,
        )

    def die(self) -> None:
        """The group has been deleted; only an empty one can be."""
        self.state = State.DEAD

    def _remove(self, member: Member) -> None:
        self.members.remove(member)
        member.dismiss(UnknownMemberIdError)

    def _members_gone(self, now: float) -> None:
        if self.state in (State.COMPLETING, State.STABLE):
            self._prepare(now)
        else:
            self._complete_joins(now)

    # -- looking ------------------------------------------------------------------------------------

    def describe(self) -> GroupDescription:
        """State, protocol and members; their metadata and assignments only once they are settled."""
        settled = self.state is State.STABLE
        members = [
            MemberDescription(
                member.member_id,
                member.request.instance_id,
                member.request.client_id,
                member.request.client_host,
                member.metadata(self.protocol) if settled else b"",
                member.assignment if settled else b"",
            )
            for member in self.members.values()
        ]
        protocol = (self.protocol or "") if settled else ""
        return GroupDescription(None, self.state.value, self.protocol_type or "", protocol, members)
