"""The members of a group, the static ones by instance id, their leader, and the protocols they share.

The state of the group and its timeouts are in :mod:`dafka.broker.groups.group`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, ValuesView
from math import inf
from typing import Any

from kafka.errors import (
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription, ConsumerProtocolType

from dafka.broker.groups.kept_rows import SavedClassic
from dafka.broker.interface.groups import (
    IN_PROCESS,
    NO_MEMBER,
    Error,
    Joined,
    JoinRequest,
    LeavingMember,
    MemberDescription,
    Synced,
)
from dafka.broker.limits import GROUP_MAX_SIZE

JoinReply = Callable[[Joined], object]
SyncReply = Callable[[Synced], object]
HeartbeatReply = Callable[["Error | None"], object]
Reply = tuple[Callable[[Any], object], Any]
"""An answer to a parked call: the function to call, and with what."""


class Member:
    """A member, with the reply functions of its parked calls."""

    __slots__ = ("assignment", "expires", "heartbeat", "join", "member_id", "request", "sync", "synced")

    def __init__(self, member_id: str, request: JoinRequest, now: float) -> None:
        self.member_id = member_id
        self.request = request
        self.assignment = b""
        self.expires = now + request.session_timeout
        self.join: JoinReply | None = None
        self.sync: SyncReply | None = None
        self.heartbeat: HeartbeatReply | None = None
        self.synced = True  # False while the generation waits for its SyncGroup

    def metadata(self, protocol: str | None) -> bytes:
        """The metadata that the member sent for this protocol."""
        for name, metadata in self.request.protocols:
            if name == protocol:
                return metadata
        return b""

    def described(self, protocol: str | None, settled: bool) -> MemberDescription:
        """The description of a member: metadata and assignment only in a settled group."""
        request = self.request
        return MemberDescription(
            self.member_id,
            request.instance_id,
            request.client_id,
            request.client_host or IN_PROCESS,
            self.metadata(protocol) if settled else b"",
            self.assignment if settled else b"",
        )

    @property
    def waits(self) -> bool:
        """Whether a JoinGroup or SyncGroup of it is parked, during which a member sends no heartbeats."""
        return self.join is not None or self.sync is not None

    @property
    def parks(self) -> bool:
        """Whether any call of it is parked."""
        return self.heartbeat is not None or self.waits

    def dismiss(self, error: Error) -> Iterator[Reply]:
        """Unpark all its calls: their replies, with an error as the answer of each."""
        if self.join is not None:
            reply, self.join = self.join, None
            yield reply, Joined(error, member_id=self.member_id)
        if self.sync is not None:
            sync, self.sync = self.sync, None
            yield sync, Synced(error)
        yield from self.wake(error)

    def wake(self, error: Error | None) -> Iterator[Reply]:
        """Unpark its heartbeat, if there is one: the reply, with the answer."""
        if self.heartbeat is not None:
            heartbeat, self.heartbeat = self.heartbeat, None
            yield heartbeat, error


class Members(Mapping[str, Member]):
    """Members by member id, in the order of their joining.

    ``pending`` are ids that were given out and have not joined yet, with the time at which each expires.
    There are ``most`` at most, these included.
    """

    def __init__(self, most: int = GROUP_MAX_SIZE) -> None:
        self._most = most
        self._leader: str | None = None
        self.pending: dict[str, float] = {}
        self._by_id: dict[str, Member] = {}
        self._instances: dict[str, str] = {}  # static members: instance id -> member id
        self._protocols: dict[str, int] = {}  # how many members support each

    @property
    def leader(self) -> str | None:
        """The member that computes the assignment: the oldest one, if the one that was chosen has gone."""
        if self._leader not in self._by_id:
            # Looked for when it is asked for: many may go at once, each of them the oldest.
            self._leader = next(iter(self._by_id), None)
        return self._leader

    @leader.setter
    def leader(self, member_id: str | None) -> None:
        self._leader = member_id

    def __getitem__(self, member_id: str) -> Member:
        return self._by_id[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def values(self) -> ValuesView[Member]:
        return self._by_id.values()

    def of_instance(self, instance_id: str | None) -> Member | None:
        """The static member with that instance id."""
        return self._by_id.get(self._instances.get(instance_id or "", ""))

    def refusal(self, member_id: str, instance_id: str | None) -> Error | None:
        """The error of a call in the name of this member; None if it is a member."""
        if instance_id is not None:
            known = self._instances.get(instance_id)
            if known is not None and known != member_id:
                return FencedInstanceIdError
            if known is None:
                return UnknownMemberIdError
        return None if member_id in self._by_id else UnknownMemberIdError

    def join_refusal(self, request: JoinRequest, protocol_type: str | None) -> Error | None:
        """The error of a join that does not suit the members, whose protocols are of that type."""
        names = dict(request.protocols)
        if not names or not request.protocol_type:
            return InconsistentGroupProtocolError
        if self and (request.protocol_type != protocol_type or self.protocols.isdisjoint(names)):
            return InconsistentGroupProtocolError
        if request.member_id == NO_MEMBER and len(self) + len(self.pending) >= self._most:
            return GroupMaxSizeReachedError
        return None

    def saved(self, member_id: str) -> SavedClassic | None:
        """The state of a member to keep over a restart; None for one in the broker's own process."""
        member = self.get(member_id)
        if member is None or not member.request.client_host:
            return None
        return SavedClassic(member_id, member.request, member.assignment)

    # -- changing -----------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Add a new member; the first one becomes the leader."""
        self._by_id[member.member_id] = member
        self._count(member.request, 1)
        if member.request.instance_id is not None:
            self._instances[member.request.instance_id] = member.member_id

    def change(self, member: Member, request: JoinRequest) -> None:
        """Replace what a member joined with; its instance id stays."""
        old = member.request
        member.request = request._replace(instance_id=old.instance_id)
        self._count(old, -1)
        self._count(request, 1)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member the new member id of the process that has taken its place."""
        old_id, leader = member.member_id, self.leader
        self._by_id = {
            (member_id if known == old_id else known): other for known, other in self._by_id.items()
        }
        member.member_id = self._instances[str(member.request.instance_id)] = member_id
        self.leader = member_id if leader == old_id else leader

    def remove(self, member: Member) -> None:
        """Remove a member; the oldest of the others becomes the leader if it was the leader."""
        del self._by_id[member.member_id]
        self._count(member.request, -1)
        if member.request.instance_id is not None:
            self._instances.pop(member.request.instance_id, None)

    def _count(self, request: JoinRequest, change: int) -> None:
        counts = self._protocols  # a Counter would take several times as long
        for name in dict(request.protocols):
            count = counts.get(name, 0) + change
            if count:
                counts[name] = count
            else:
                del counts[name]  # members may join again and again with other names

    def resign(self, leaving: Iterable[LeavingMember]) -> tuple[list[Error | None], list[Member]]:
        """The answers to those who leave, and which of them are to be removed; pending ids go at once."""
        answers: list[Error | None] = []
        gone: dict[str, Member] = {}
        for member_id, instance_id, _reason in leaving:
            if member_id == NO_MEMBER and instance_id is not None:
                static = self.of_instance(instance_id)
                member_id = NO_MEMBER if static is None else static.member_id
            if self.pending.pop(member_id, None) is not None:
                answers.append(None)
                continue
            error = self.refusal(member_id, instance_id)
            if error is None and member_id in gone:
                error = UnknownMemberIdError
            if error is None:
                gone[member_id] = self[member_id]
            answers.append(error)
        return answers, list(gone.values())

    def expire_pending(self, now: float) -> None:
        """Forget the ids with which nobody has joined in time."""
        for member_id in [member_id for member_id, until in self.pending.items() if until <= now]:
            del self.pending[member_id]

    # -- missing members -----------------------------------------------------------------------------

    def absent(self) -> list[Member]:
        """Members that have not joined the rebalance, without static members, which keep their places."""
        return [one for one in self.values() if one.join is None and one.request.instance_id is None]

    def late(self, now: float, *, syncs_are_over: bool) -> list[Member]:
        """Members whose session is over, or whose SyncGroup has not come by the end of that phase."""
        return [
            one
            for one in self.values()
            if (syncs_are_over and not one.synced) or (one.expires <= now and not one.waits)
        ]

    # -- what they have in common ---------------------------------------------------------------------

    @property
    def protocols(self) -> set[str]:
        """The names of the protocols that all members support."""
        return {name for name, count in self._protocols.items() if count == len(self)}

    def chosen_protocol(self) -> str:
        """The protocol with the most votes; each member votes for its first one that all members support."""
        common = self.protocols
        if len(common) == 1:
            return next(iter(common))
        votes = Counter(
            next(name for name, _ in member.request.protocols if name in common) for member in self.values()
        )
        return votes.most_common(1)[0][0]

    def topics(self, protocol_type: str | None) -> frozenset[str] | None:
        """The topics that the members of a consumer group read; None if they are unknown."""
        if self and protocol_type != ConsumerProtocolType:
            return None
        topics: set[str] = set()
        for member in self.values():
            for _, metadata in member.request.protocols:
                try:
                    topics.update(ConsumerProtocolSubscription.decode(metadata).topics)
                except Exception:
                    return None
        return frozenset(topics)

    @property
    def rebalance_timeout(self) -> float:
        """The longest rebalance timeout of all members, in seconds."""
        return max([member.request.rebalance_timeout for member in self.values()], default=0.0)

    @property
    def next_expiry(self) -> float:
        """When the next session or pending id expires."""
        sessions = [one.expires for one in self.values() if one.join is None and one.sync is None]
        return min(min(sessions, default=inf), min(self.pending.values(), default=inf))
