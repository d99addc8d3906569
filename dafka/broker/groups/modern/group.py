"""The base of the newer groups: members with epochs, heartbeats, and assignments by the broker.

Theory of operation
-------------------
A member sends heartbeats, and nothing else. With the first one (member epoch 0) it joins, with the last one
(-1) it leaves, and without one for its session timeout it is removed. The group has an *epoch*, which is
raised when a member comes or goes, reads other topics, or when these get partitions, are created or deleted.
From the group of an epoch an assignor computes the *target* of each member, which has that epoch as the
*assignment epoch*. A member is led to its target with the answers to its heartbeats, and has the assignment
epoch as its *member epoch* when it has arrived; nobody waits for anybody else on the way there.

    Empty ──join──> Assigning ──target computed──> Reconciling ──all members at its epoch──> Stable
                        ^                               │                                      │
                        └───────────── the epoch is raised ────────────────────────────────────┘

When there is another target: :mod:`dafka.broker.groups.modern.due`.

A heartbeat with another epoch than the member's is refused, and the member has to join again without any
partition. The one before is taken from a member whose last answer may have been lost.

A member commits offsets with the epoch that it knows, which may be older than its own by then. That is taken
for partitions that it has had since that epoch or longer (KIP-1251): it alone reads them since then.

A refusal is an exception of ``kafka.errors``, whose words go to the client. Time is what the
caller says it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf
from typing import ClassVar, Generic, TypeVar

from kafka.errors import (
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    InvalidRequestError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)

from dafka.broker import limits
from dafka.broker.groups.kept_rows import Saved
from dafka.broker.groups.modern.due import Due
from dafka.broker.groups.modern.member import JOIN_EPOCH, ModernMember
from dafka.broker.groups.modern.subscriptions import Subscriptions
from dafka.broker.groups.modern.topics import Topics
from dafka.broker.groups.times import Kept
from dafka.broker.interface.groups import Error, GroupType, TopicPartition
from dafka.broker.limits import EMPTY_SECONDS, GROUP_SUBSCRIPTIONS
from dafka.broker.topics.topic import KnownTopic

LONGEST_NAME = 249  # characters of a topic
FEW_NAMES = 1000  # that are looked up one by one
REMOVED_AT_ONCE = 1000  # members and their subscriptions, in one tick

M = TypeVar("M", bound=ModernMember)
S = TypeVar("S")  # the target of a member


class ModernGroup(Due, ABC, Generic[M, S]):
    """A group; ``wake_at`` is the latest time for the next :meth:`tick`.

    ``epoch`` is where it begins: 0, or behind the epochs that a group of that id had before a restart.
    ``name`` is its id.
    """

    type: ClassVar[GroupType]

    def __init__(self, now: float, topics: Topics, epoch: int = 0, name: str = "") -> None:
        self.name = name
        super().__init__(epoch)
        self.members: dict[str, M] = {}
        self.target: dict[str, S] = {}  # of each member, by member id
        self._topics = topics
        self._subscribed = Subscriptions()
        self._known: dict[str, KnownTopic] = {}  # those of the topics that exist
        self._version = -1  # of the topics, when they were looked up
        self._subscriptions = 0  # of all members
        self._gone = self._deleted = False
        self._forget_at = inf
        self._unsaved: set[str] = set()
        self._emptied(now)

    # -- as one of all groups: see dafka.broker.groups.registry ---------------------------------------

    @property
    def state_name(self) -> str:
        """Kafka's word for its state."""
        if self.dead:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if all(map(self.is_reconciled, self.members.values())) else "Reconciling"

    @property
    def listed_protocol(self) -> str:
        """The protocol type that lists of groups have for it."""
        return self.type.value

    @property
    def occupied(self) -> bool:
        """Whether it has members."""
        return bool(self.members)

    @property
    def dead(self) -> bool:
        """Whether it is to be forgotten: it was deleted, or empty for long."""
        return self._gone or self._deleted

    @property
    def kept(self) -> Kept | None:
        """Its type and epoch, and how old its target is."""
        behind = 0 if self.members else self.epoch - self.assignment_epoch
        return None if self._deleted else Kept(self.type.value, self.epoch, behind)

    def die(self) -> None:
        """Mark the group as deleted; it has to be empty."""
        self._deleted = True

    def subscribed(self) -> frozenset[str] | None:
        """The topics that its members subscribe to."""
        return frozenset(self._subscribed.names)

    def expires_unread(self) -> bool:
        """Whether offsets in other topics may expire while it has members."""
        return True

    # -- over a restart: see dafka.broker.groups.kept_members -----------------------------------------

    def take_unsaved(self) -> Iterable[str] | None:
        """The members that may have changed since this was last asked."""
        unsaved, self._unsaved = self._unsaved, set()
        return unsaved

    def member_ids(self) -> Iterable[str]:
        """The ids of its members."""
        return self.members

    def saved_member(self, member_id: str) -> Saved | None:
        """The state of a member to keep; None for one in the broker's own process."""
        member = self.members.get(member_id)
        if member is None or not member.client_host:
            return None
        return member.saved(self.target.get(member_id))

    @abstractmethod
    def saved_whole(self) -> Saved:
        """The state of the group to keep besides its members. The first part is how many there are."""

    def mark(self, member: M) -> None:
        """Something that is kept of this member may have changed."""
        self._unsaved.add(member.member_id)

    def go_on(self, behind: int) -> None:
        """Be the group without members that there was before a restart, with a target so many epochs old."""
        self.assignment_epoch = self.epoch - behind

    def begin_again(self, count: int, assignment_epoch: int | None, is_whole: bool) -> None:
        """All members are here of which something was kept, of ``count`` that there were, with their targets.

        The group is on its way to the target of ``assignment_epoch``, as it was. It gets another one if
        members are missing, or the target is not ``is_whole``: topics have changed, and no heartbeat has
        come since. None: targets were not kept, and are what members have; then another one is needed
        unless all were at rest.
        """
        epochs = [member.epoch for member in self.members.values()]
        self.assignment_epoch = max([self.epoch if assignment_epoch is None else assignment_epoch, *epochs])
        self.epoch = max(self.epoch, self.assignment_epoch)
        if assignment_epoch is None:
            is_whole = is_whole and all(map(self.is_reconciled, self.members.values()))
        if self.members and not self.needs_target and not (is_whole and count == len(self.members)):
            self.raise_epoch()

    # -- offsets --------------------------------------------------------------------------------

    def check_commit(
        self,
        now: float,
        generation: int,
        member_id: str,
        instance_id: str | None,
        partitions: Iterable[TopicPartition],
    ) -> Error | None:
        """The error of an offset commit, None if it is allowed.

        It is if there are no members, to a member with its epoch, and to one with an older epoch in which it
        has had all of the partitions already.
        """
        if generation < 0 and not self.members:
            return None
        error = self.check_member(member_id, generation)
        if error is None or error is UnknownMemberIdError:
            return error
        member = self.members[member_id]
        if JOIN_EPOCH <= generation < member.epoch and all(
            self.has_since(member, *partition) <= generation for partition in partitions
        ):
            return None
        return error

    def gives_epoch(self, member_id: str) -> bool:
        """Whether that is a member which commits offsets with its epoch."""
        member = self.members.get(member_id)
        return member is not None and member.stale is StaleMemberEpochError

    def check_member(self, member_id: str, epoch: int) -> Error | None:
        """The error of what comes from a member of that epoch."""
        member = self.members.get(member_id)
        if member is None:
            return UnknownMemberIdError
        return None if epoch == member.epoch else member.stale

    def has_since(self, member: M, topic: str, partition: int) -> float:
        """The epoch from which on the member has had a partition without a break; inf if it has not."""
        return inf

    # -- members --------------------------------------------------------------------------------

    @abstractmethod
    def is_reconciled(self, member: M) -> bool:
        """Whether the member has all of its target, and nothing else."""

    def member(self, member_id: str) -> M:
        """The member of that id. Raises UnknownMemberIdError."""
        found = self.members.get(member_id)
        if found is None:
            raise UnknownMemberIdError(f"Member {member_id} is not a member of group {self.name}.")
        return found

    def check_size(self, member_id: str, most: int) -> None:
        """Raise GroupMaxSizeReachedError if ``member_id`` would be one member too many."""
        if member_id not in self.members and len(self.members) >= most:
            raise GroupMaxSizeReachedError(
                f"The {self.type.value} group has reached its maximum capacity of {most} members."
            )

    def check_epoch(self, member: M, epoch: int, lost_answer: bool = True) -> None:
        """Raise FencedMemberEpochError if a heartbeat with this epoch must not count.

        ``lost_answer``: whether it may be one whose predecessor was not answered.
        """
        if epoch == member.epoch or (lost_answer and epoch == member.previous_epoch < member.epoch):
            return
        word = "greater" if epoch > member.epoch else "smaller"
        also = self._previous(member) if epoch < member.epoch else ""
        raise FencedMemberEpochError(
            f"The {self.type.value} group member has a {word} member epoch ({epoch}) than the one known by "
            f"the group coordinator ({member.epoch}){also}. The member must abandon all its partitions and "
            "rejoin."
        )

    def _previous(self, member: M) -> str:
        """What is also said of a member with an older epoch."""
        return ""

    def touch(self, now: float, member: M, session: float) -> None:
        """Something has come from the member: it lives for a session timeout longer."""
        member.expires = now + session
        self.wake_at = min(self.wake_at, now if self._has_more else member.expires)
        self._wake_for_target(now)
        self.mark(member)

    def add(self, member: M) -> None:
        """Add a new member; its subscription and the new epoch are the caller's."""
        self.members[member.member_id] = member
        self._forget_at = inf

    def remove(self, now: float, member: M) -> None:
        """Remove a member, and raise the epoch."""
        self.mark(member)
        del self.members[member.member_id]
        self.target.pop(member.member_id, None)
        self.subscribe(member, frozenset())
        self.raise_epoch()
        if not self.members:
            self._emptied(now)
        if self._has_more:
            self.wake_at = min(self.wake_at, now)
        self._wake_for_target(now)

    def remove_all(self, now: float, members: Iterable[M]) -> None:
        """Remove members together: the epoch goes up once."""
        epoch = self.epoch
        for member in members:
            self.epoch = epoch
            self.remove(now, member)

    def tick(self, now: float) -> None:
        """Remove the members whose time has come; of very many, some."""
        late: list[M] = []
        soonest = inf
        for one in self.members.values():
            deadline = one.deadline
            if deadline <= now:
                late.append(one)
            elif deadline < soonest:
                soonest = deadline
        left = REMOVED_AT_ONCE
        for member in late:
            if left <= 0:
                soonest = now  # the next tick, which is due at once, goes on
                break
            left -= 1 + len(member.topics)
            self.remove(now, member)
        self._end_some()
        if self._has_more:
            soonest = now
        self._gone = not self.members and self._forget_at <= now
        self.wake_at = min(soonest, inf if self._gone else self._forget_at)
        self._wake_for_target(now)

    def _emptied(self, now: float) -> None:
        self._forget_at = now + EMPTY_SECONDS
        self.wake_at = min(self.wake_at, self._forget_at)

    # -- topics ---------------------------------------------------------------------------------

    def subscribe(self, member: M, topics: Collection[str]) -> bool:
        """Replace what a member subscribes to; whether that is something else.

        Raises InvalidRequestError if a group has no room for it, and then changes nothing.
        """
        wanted, had = frozenset(topics), member.topics
        if wanted == had:
            return False
        total = self._subscriptions - len(had) + len(wanted)
        if total > GROUP_SUBSCRIPTIONS and len(wanted) > len(had):
            raise InvalidRequestError(
                f"all members of a group together subscribe to {GROUP_SUBSCRIPTIONS} topics at most, "
                "counted for each member"
            )
        new = self._subscribed.new(wanted)
        longest = max(map(len, new), default=0)
        if longest > LONGEST_NAME:
            raise InvalidRequestError(f"no topic has a name of {longest} characters")
        if not self._subscribed.names:
            self._version = self._topics.version  # all that is known is what is looked up now
        self._subscriptions = total
        member.topics = self._subscribed.begin(wanted, new)
        self._look_up(new)
        self._forget(self._subscribed.end(had))
        return True

    def preparing(self, topics: frozenset[str]) -> Iterator[bool]:
        """Look very many topics up, some at a time, before members subscribe to them. The caller may pause,
        and calls :meth:`prepared` when they have, unless this gives nothing."""
        if len(topics) > limits.TOPICS_AT_ONCE and self._subscribed.new(topics):
            if not self._subscribed.names:
                self._version = self._topics.version
            yield from self._subscribed.prepare(topics, self._look_up)

    def prepared(self, topics: frozenset[str]) -> None:
        """The end of what :meth:`preparing` has begun."""
        self._forget(self._subscribed.end(topics))

    def _forget(self, gone: Collection[str]) -> None:
        """Nobody subscribes to these topics any more."""
        if not self._subscribed.names:
            self._known, gone = {}, ()
        for name in gone:
            self._known.pop(name, None)

    @property
    def _has_more(self) -> bool:  # of what has ended, for _end_some()
        return self._subscribed.is_ending

    def _end_some(self) -> None:
        self._forget(self._subscribed.end_some())

    def _look_up(self, names: Collection[str]) -> None:
        found = self._topics.find_all(names)
        self._known.update(found)
        if len(found) < len(names):
            for name in names:
                if name not in found:
                    self._known.pop(name, None)

    def topics_changed(self) -> bool:
        """Whether topics of the group were created or deleted, or have other partitions, since last asked."""
        version = self._topics.version
        if version == self._version:
            return False
        changed = self._topics.changed_since(self._version)
        self._version, before = version, self._known
        names = self._subscribed.names
        if changed is not None and len(changed) < len(names):
            self._known = dict(before)
            wanted: Collection[str] = [name for name in changed if name in names]
        else:
            self._known, wanted = {}, names
            if len(names) > FEW_NAMES:  # perhaps most of them are not topics
                wanted = [name for name in self._topics.names() if name in names]
        self._look_up(wanted)
        return before != self._known

    # -- the target -----------------------------------------------------------------------------

    def raise_epoch(self) -> None:
        """The group has changed, so that it needs a new target."""
        self.epoch += 1

    def install(self, epoch: int, target: Mapping[str, S], now: float = -inf) -> None:
        """Take over a target that was computed for the group of ``epoch``.

        Members that joined since get nothing by it, and partitions of members that left stay unassigned until
        the next target.
        """
        if epoch > self.assignment_epoch:
            before = self.target
            self.assignment_epoch, self._assigned_at = epoch, now
            self._wake_for_target(now)
            members = self.members
            self.target = after = {name: share for name, share in target.items() if name in members}
            self._unsaved.update([name for name in members if before.get(name) is not after.get(name)])
