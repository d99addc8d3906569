"""Who is in a group: its members, static ones by their instances, who leads, and what all of them can do.

The state of the group and what waits for what are not known here (:mod:`dafka.broker.groups.group`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, ValuesView
from math import inf

from kafka.errors import FencedInstanceIdError, UnknownMemberIdError

from dafka.broker.interface.groups import Error, Joined, JoinRequest, Synced

JoinReply = Callable[[Joined], object]
SyncReply = Callable[[Synced], object]
HeartbeatReply = Callable[["Error | None"], object]


class Member:
    """A member, and which of its calls wait here for their answer."""

    __slots__ = ("assignment", "expires", "heartbeat", "join", "member_id", "request", "sync", "synced")

    def __init__(self, member_id: str, request: JoinRequest, now: float) -> None:
        self.member_id = member_id
        self.request = request
        self.assignment = b""
        self.expires = now + request.session_timeout
        self.join: JoinReply | None = None
        self.sync: SyncReply | None = None
        self.heartbeat: HeartbeatReply | None = None
        self.synced = True  # has no sync to make in this generation

    def metadata(self, protocol: str | None) -> bytes:
        """What the member said for this protocol."""
        return next((metadata for name, metadata in self.request.protocols if name == protocol), b"")

    @property
    def waits(self) -> bool:
        """Whether it cannot give signs of life because it waits for us."""
        return self.join is not None or self.sync is not None

    def dismiss(self, error: Error) -> None:
        """Answer everything that waits with an error."""
        if self.join is not None:
            reply, self.join = self.join, None
            reply(Joined(error, member_id=self.member_id))
        if self.sync is not None:
            sync, self.sync = self.sync, None
            sync(Synced(error))
        self.wake(error)

    def wake(self, error: Error | None) -> None:
        """Answer a parked heartbeat."""
        if self.heartbeat is not None:
            heartbeat, self.heartbeat = self.heartbeat, None
            heartbeat(error)


class Members(Mapping[str, Member]):
    """Members by their ids, in the order in which they came.

    ``leader`` is the id of one of them, None if there are none. ``pending`` are ids that were given out and
    that nobody has joined with yet, and until when they count.
    """

    def __init__(self) -> None:
        self.leader: str | None = None
        self.pending: dict[str, float] = {}
        self._by_id: dict[str, Member] = {}
        self._instances: dict[str, str] = {}  # static members: instance id -> member id
        self._protocols: Counter[str] = Counter()  # by how many members know them

    def __getitem__(self, member_id: str) -> Member:
        return self._by_id[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def values(self) -> ValuesView[Member]:
        return self._by_id.values()

    def of_instance(self, instance_id: str | None) -> Member | None:
        """The static member of that instance."""
        return self._by_id.get(self._instances.get(instance_id or "", ""))

    def refusal(self, member_id: str, instance_id: str | None) -> Error | None:
        """What somebody is told who is not the member that he says he is."""
        if instance_id is not None:
            known = self._instances.get(instance_id)
            if known is not None and known != member_id:
                return FencedInstanceIdError
            if known is None:
                return UnknownMemberIdError
        return None if member_id in self._by_id else UnknownMemberIdError

    # -- changing -----------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Take a new member in; the first one leads."""
        self._by_id[member.member_id] = member
        self._protocols.update(_names(member.request))
        if member.request.instance_id is not None:
            self._instances[member.request.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def change(self, member: Member, request: JoinRequest) -> None:
        """A member joins with something else; whose instance it is does not change."""
        old = member.request
        member.request = request._replace(instance_id=old.instance_id)
        self._protocols.subtract(_names(old))
        self._protocols.update(_names(request))

    def rename(self, member: Member, member_id: str) -> None:
        """Another instance has taken a static member's place, under an id of its own."""
        old_id = member.member_id
        self._by_id = {
            (member_id if known == old_id else known): other for known, other in self._by_id.items()
        }
        member.member_id = self._instances[str(member.request.instance_id)] = member_id
        if self.leader == old_id:
            self.leader = member_id

    def remove(self, member: Member) -> None:
        """A member is gone; if it was the leader, the one that is here for longest leads."""
        del self._by_id[member.member_id]
        self._protocols.subtract(_names(member.request))
        if member.request.instance_id is not None:
            self._instances.pop(member.request.instance_id, None)
        if self.leader == member.member_id:
            self.leader = next(iter(self._by_id), None)

    # -- what they have in common ---------------------------------------------------------------------

    @property
    def protocols(self) -> set[str]:
        """The names of protocols that all members know."""
        return {name for name, count in self._protocols.items() if count and count == len(self)}

    def chosen_protocol(self) -> str:
        """Each member votes for the one it likes best of those that all know."""
        common = self.protocols
        votes = Counter(
            next(name for name, _ in member.request.protocols if name in common) for member in self.values()
        )
        return votes.most_common(1)[0][0]

    @property
    def rebalance_timeout(self) -> float:
        """The longest of theirs, in seconds."""
        return max((member.request.rebalance_timeout for member in self.values()), default=0.0)

    @property
    def next_expiry(self) -> float:
        """When the first session, or the first of the ids that were given out, ends."""
        sessions = min((member.expires for member in self.values() if not member.waits), default=inf)
        return min(sessions, min(self.pending.values(), default=inf))


def _names(request: JoinRequest) -> set[str]:
    return {name for name, _ in request.protocols}
