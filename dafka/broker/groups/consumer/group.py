"""A consumer group whose assignment the broker computes (KIP-848): a state machine, without I/O or clock.

Theory of operation
-------------------
:mod:`dafka.broker.groups.modern.group` has what all newer groups do. A member of a consumer group has
partitions, each of which is one member's alone, so it is led to its target in steps, one with each heartbeat:

- it is told to give up the partitions that are not in its target (*revoking*). It stays in its epoch until it
  says that it has, or is removed when its rebalance timeout has passed;
- then it gets the free partitions of its target, and with them the assignment epoch. Partitions that another
  member still has come with a later heartbeat.

A member that keeps partitions goes on reading them: nothing stops the whole group. What a member has of a
topic that it no longer subscribes to it gives up at once, even before there is another target.

What members subscribe to by regular expression is in :mod:`dafka.broker.groups.consumer.subscribed`.

A *static* member (with an instance id) that leaves with epoch -2 keeps its place and its partitions until
its session ends. A client that joins with the same instance id meanwhile takes its place, under another
member id. While it is there, another one with its instance id is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from math import inf
from typing import NamedTuple
from uuid import UUID

from kafka.errors import (
    BrokerResponseError,
    FencedInstanceIdError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)

from dafka.broker.groups.consumer.kept import SavedGroup
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.consumer.moves import Move, Position, has_any, move_of
from dafka.broker.groups.consumer.owning import OwningGroup
from dafka.broker.groups.consumer.requests import ASSIGNORS
from dafka.broker.groups.modern.assignment import (
    NOTHING,
    Assignment,
    Assignor,
    both,
    size,
)
from dafka.broker.groups.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from dafka.broker.groups.modern.topics import Topics
from dafka.broker.groups.since import epoch_of, taken
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat, ConsumerMember, Partitions
from dafka.broker.interface.groups import IN_PROCESS, GroupType, JoinRequest
from dafka.broker.limits import ASSIGNED_AT_ONCE, MOVED_AT_ONCE


class Answer(NamedTuple):
    """A member's id and epoch, and what it is to have if it has to be told."""

    member_id: str
    epoch: int
    assignment: Assignment | None = None


class ConsumerGroup(OwningGroup):
    """A group."""

    type = GroupType.CONSUMER

    def __init__(self, now: float, topics: Topics, epoch: int = 0, name: str = "") -> None:
        super().__init__(now, topics, epoch, name)
        self._instances: dict[str, str] = {}  # static members: instance id -> member id
        self._classic: set[str] = set()  # members with the classic protocol
        self._left_at = -1  # the epoch that the last member with the newer one has ended
        self._topics_differ = False  # from those that the last epoch was raised for

    # -- heartbeats -----------------------------------------------------------------------------

    def heartbeat(self, now: float, request: ConsumerHeartbeat, session: float, most: int) -> Answer:
        """A heartbeat that :func:`check_heartbeat` has passed, in a group of ``most`` members at most.

        Raises the errors of the interface.
        """
        if request.member_epoch < JOIN_EPOCH:
            return self._leave(now, request)
        member, is_new = self._joined(request, most) if request.member_epoch == JOIN_EPOCH else (None, False)
        if member is None:
            member = self._named(request)
            self._check(member, request)
        before, joins = member.assigned, request.member_epoch == JOIN_EPOCH
        self.progress(now, member, is_new, request, session)
        everything = request.rebalance_timeout is not None and request.owned is not None
        everything = everything and (request.topics is not None or request.regex is not None)
        told = joins or everything or member.assigned != before
        return Answer(member.member_id, member.epoch, member.assigned if told else None)

    def progress(
        self,
        now: float,
        member: Member,
        is_new: bool,
        request: ConsumerHeartbeat,
        session: float,
        classic: JoinRequest | None = None,
    ) -> None:
        """Take over what a member says, and lead it towards its target.

        ``classic``: what it has joined with, if it speaks the classic protocol.
        """
        epoch, before = self.epoch, (member.names, member.regex)
        # Before the member, perhaps the only one, no longer subscribes to what was deleted.
        self._topics_differ = self.topics_changed() or self._topics_differ
        try:
            changed = self._update(member, request)
        except BrokerResponseError:
            if is_new:
                self.remove(now, member)
                self.epoch = epoch
            raise
        member.classic, member.answer_by = classic, inf
        (self._classic.discard if classic is None else self._classic.add)(member.member_id)
        if changed or self._topics_differ:
            self.raise_epoch()
        self.assign_if_small(now)
        self._reconcile(now, member, request.owned, before != (member.names, member.regex))
        self.touch(now, member, session)

    def _joined(self, request: ConsumerHeartbeat, most: int) -> tuple[Member, bool]:
        """The member that joins, or joins again; and whether it is a new one."""
        self.check_size(request.member_id, most)
        known, static = self.members.get(request.member_id), self.static(request.instance_id)
        if static is not None:
            return self._take_over(static, request), False
        self._check_expression(request)
        if known is None:
            known = Member(request.member_id)
            self.add(known)
            return known, True
        # It has been told to join again, or did not get the answer, and has no partition any more.
        self._release_all(known)
        known.join_again()
        return known, False

    def _take_over(self, old: Member, request: ConsumerHeartbeat) -> Member:
        """A new process of a static member takes the place of the one that has left."""
        if old.epoch != LEAVE_STATIC_EPOCH and old.classic is None:
            raise UnreleasedInstanceIdError(
                f"Static member {request.member_id} with instance id {request.instance_id} cannot join the "
                f"group because the instance id is owned by {old.member_id} member."
            )
        if request.member_id != old.member_id and request.member_id in self.members:
            raise UnreleasedInstanceIdError(f"{request.member_id} is the id of another member of the group.")
        self._check_expression(request)
        self.rename(old, request.member_id)
        return old

    def rename(self, old: Member, new: str) -> None:
        """Give the place of a static member to a new process, with another member id."""
        self._classic.discard(old.member_id)
        self.members = {(new if one is old else name): one for name, one in self.members.items()}
        if old.member_id in self.target:
            self.target[new] = self.target.pop(old.member_id)
        self.mark(old)
        old.member_id = self._instances[str(old.instance_id)] = new
        self.mark(old)
        old.epoch = old.previous_epoch = JOIN_EPOCH
        if self.needs_target:
            self.raise_epoch()  # the target that is being computed is for the member id before

    def static(self, instance_id: str | None) -> Member | None:
        """The static member with that instance id."""
        return self.members.get(self._instances.get(instance_id or "", ""))

    def _named(self, request: ConsumerHeartbeat) -> Member:
        """The member that a heartbeat comes from."""
        if request.instance_id is None:
            return self.member(request.member_id)
        member = self.members.get(self._instances.get(request.instance_id, ""))
        if member is None:
            raise UnknownMemberIdError(f"Instance id {request.instance_id} is unknown.")
        if member.member_id != request.member_id:
            raise FencedInstanceIdError(
                f"Static member {request.member_id} with instance id {request.instance_id} was fenced by "
                f"member {member.member_id}."
            )
        return member

    def _check(self, member: Member, request: ConsumerHeartbeat) -> None:
        """Fence a heartbeat with a wrong epoch: the one before the last counts with what it has told."""
        owned = None if request.member_epoch == member.epoch else request.owned
        lost_answer = owned is not None and all(
            member.assigned.get(topic, frozenset()).issuperset(numbers) for topic, numbers in owned.items()
        )
        self.check_epoch(member, request.member_epoch, lost_answer)

    def _update(self, member: Member, request: ConsumerHeartbeat) -> bool:
        """Take over what has changed of a member; whether the group needs another target."""
        changed = self._resubscribe(member, request)
        if request.instance_id is not None:
            if member.instance_id not in (None, request.instance_id):
                self._instances.pop(str(member.instance_id), None)
            member.instance_id = request.instance_id
            self._instances[request.instance_id] = member.member_id
        if request.rack is not None:
            member.rack = request.rack
        if request.assignor is not None:
            member.assignor = request.assignor
        if request.rebalance_timeout is not None:
            member.rebalance_timeout = request.rebalance_timeout
        member.client_id, member.client_host = request.client_id, request.client_host
        return changed

    def raise_epoch(self) -> None:
        self._topics_differ = False
        super().raise_epoch()

    # -- members that come from a classic group, or from before a restart -----------------------------

    def adopt(self, member: Member) -> None:
        """Take over a member, which has no partitions yet."""
        self.add(member)
        self.expressions.replace(None, member.regex)
        self.subscribe(member, self._topics_of(member.names, member.regex))
        if member.classic is not None:
            self._classic.add(member.member_id)
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.member_id
        self.wake_at = min(self.wake_at, member.deadline)
        self.mark(member)

    def giving(
        self,
        member: Member,
        assigned: Assignment,
        revoking: Assignment = NOTHING,
        target: Assignment | None = None,
    ) -> Iterator[None]:
        """Note what a member has that was taken over, as far as nobody else has it, and its target; None:
        what it has. Since when it has it is the caller's to say, who may pause."""
        member.assigned = yield from self._taking(assigned)
        member.revoking = yield from self._taking(revoking)
        self.target[member.member_id] = member.assigned if target is None else target

    @property
    def only_classic(self) -> bool:
        """Whether it has members, and all of them speak the classic protocol."""
        return 0 < len(self.members) == len(self._classic)

    @property
    def classic_generation(self) -> int:
        """The generation of the classic group that it becomes: the epoch in which the last member that speaks
        the newer protocol left, as in Kafka."""
        return self._left_at if self._left_at == self.epoch - 1 else self.epoch

    def names(self) -> dict[UUID, str]:
        """The names of the topics that its members read, by id."""
        return {topic.topic_id: name for name, topic in self._known.items()}

    def ids(self) -> dict[str, UUID]:
        """The ids of the topics that its members read, by name."""
        return {name: topic.topic_id for name, topic in self._known.items()}

    # -- over a restart: see dafka.broker.groups.consumer.restoring -----------------------------------

    def saved_whole(self) -> SavedGroup:
        return SavedGroup(len(self.members), self.expressions.resolved, self.assignment_epoch)

    # -- leaving --------------------------------------------------------------------------------

    def _leave(self, now: float, request: ConsumerHeartbeat) -> Answer:
        member = self._named(request)
        if request.member_epoch == LEAVE_STATIC_EPOCH:
            self._give_up(member, member.revoking)
            member.revoking, member.revoke_by = NOTHING, inf
            member.epoch = LEAVE_STATIC_EPOCH
            member.since = taken({}, member.assigned, 0)  # its next process may commit with any epoch
            self.mark(member)
        else:
            self.remove(now, member)
        return Answer(request.member_id, request.member_epoch)

    def remove(self, now: float, member: Member) -> None:
        """Remove a member; its partitions are free."""
        self._release_all(member)
        self._classic.discard(member.member_id)
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        if member.classic is None:
            self._left_at = self.epoch
        self.expressions.replace(member.regex, None)
        super().remove(now, member)

    # -- towards the target ---------------------------------------------------------------------

    @property
    def assignor_name(self) -> str:
        """The assignor that most members want who want a certain one, or the default."""
        wanted = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return wanted.most_common(1)[0][0] if wanted else next(iter(ASSIGNORS))

    @property
    def assignor(self) -> Assignor:
        """The function that computes the target."""
        return ASSIGNORS[self.assignor_name]

    @property
    def pause(self) -> float:
        """None with classic members, who would join again and again until there is a target."""
        return 0.0 if self._classic else super().pause

    def assign_if_small(self, now: float) -> None:
        """Compute the target, if it is due and few members and partitions are concerned."""
        if self.is_target_due(now) and not self.is_large:
            self.install(self.epoch, self.draft().target(self.assignor), now)

    @property
    def is_large(self) -> bool:
        """Whether its target takes long to compute."""
        left = ASSIGNED_AT_ONCE - len(self.members) - self._subscriptions
        return left < 0 or left < sum(topic.partitions for topic in self._known.values())

    def is_reconciled(self, member: Member) -> bool:
        """Whether the member has arrived at the target."""
        return member.epoch == self.assignment_epoch and not member.lacks and not member.revoking

    def _position(self, member: Member) -> Position:
        target = self.target_of(member)
        if member.topics is not member.served and _are_few(member.topics, target):
            ids = self._ids_of(member.topics)
            if not ids.issuperset(target):
                target = {topic: numbers for topic, numbers in target.items() if topic in ids}
        return Position(member.assigned, member.revoking, member.since, target, self.assignment_epoch)

    def look_ahead(self, request: ConsumerHeartbeat, run: Callable[..., Move]) -> None:
        """Before a heartbeat whose move may take long: have it computed by ``run(function, *arguments)``,
        which may pause."""
        member = self.members.get(request.member_id)
        if member is None or self.is_reconciled(member):
            return
        position = self._position(member)
        if position.topics > MOVED_AT_ONCE:
            member.ahead = run(move_of, position, request.owned, True)

    def _reconcile(
        self, now: float, member: Member, owned: Partitions | None, has_resubscribed: bool = False
    ) -> None:
        move, member.ahead = member.ahead, None
        if self.is_reconciled(member):
            self._reserved(member)
            if has_resubscribed:
                self._unsubscribe(now, member, owned)
            return
        position = self._position(member)
        if move is None or move.owned is not owned or not move.position.is_still(position):
            move = move_of(position, owned)
        reserved = self._reserved(member, move)
        if move.waits:
            if has_resubscribed:
                self._unsubscribe(now, member, owned)
            return
        self._owned.release(member.revoking)
        member.revoking, member.revoke_by = NOTHING, inf
        member.since = move.since
        if not move.has_given_up:
            member.assigned, member.revoking = move.kept, move.given_up
            member.lacks = False
            self._wait_for_revocation(now, member)
            return
        self._owned.release(move.given_up)
        if reserved is None:
            fresh = self._owned.take(move.missing)
            member.lacks = size(fresh) < size(move.missing)
        else:
            fresh, member.lacks = reserved.taken, reserved.lacks
        member.advance(self.assignment_epoch)
        # When it has all of its target that is the same object, so that both are kept as one.
        member.assigned = both(move.kept, fresh) if member.lacks else position.target
        if move.whole_since is not None and not member.lacks:
            member.since = move.whole_since
        else:
            member.take(fresh)

    def _unsubscribe(self, now: float, member: Member, owned: Partitions | None) -> None:
        """Have a member give up its partitions of topics that it no longer subscribes to; it gets nothing."""
        if not _are_few(member.topics, member.assigned):
            return
        ids = self._ids_of(member.topics)
        rest = {topic: numbers for topic, numbers in member.assigned.items() if topic not in ids}
        if not rest:
            return
        left = {topic: numbers for topic, numbers in member.assigned.items() if topic in ids}
        target = self.target_of(member)
        member.assigned = target if target == left else left  # the same object: both are kept as one
        if has_any(owned, both(member.revoking, rest)):
            member.revoking = both(member.revoking, rest)
            self._wait_for_revocation(now, member)
        else:
            self._give_up(member, rest)

    def _wait_for_revocation(self, now: float, member: Member) -> None:
        if member.classic is None:
            member.revoke_by = now + member.rebalance_timeout
            self.wake_at = min(self.wake_at, member.revoke_by)

    # -- offsets --------------------------------------------------------------------------------

    def has_since(self, member: Member, topic: str, partition: int) -> float:
        found = self._topics.find(topic)
        return inf if found is None else epoch_of(member.since, found.topic_id, partition)

    # -- describing -----------------------------------------------------------------------------

    def described(self) -> Iterator[ConsumerMember]:
        """The members as they are described; others may come and go meanwhile."""
        for one in list(self.members.values()):
            yield ConsumerMember(
                one.member_id,
                one.instance_id,
                one.rack,
                one.epoch,
                one.client_id,
                one.client_host or IN_PROCESS,
                sorted(one.names),
                one.regex,
                both(one.assigned, one.revoking),
                self.target_of(one),
                one.classic is not None,
            )


def _are_few(names: Collection[str], partitions: Assignment) -> bool:
    """Whether topics are few enough to look at once more what a member still subscribes to. Otherwise it has
    what it no longer subscribes to until the next target, which follows."""
    return len(names) + len(partitions) <= MOVED_AT_ONCE
