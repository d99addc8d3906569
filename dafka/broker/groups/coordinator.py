"""The group coordinator: the classic protocol, and what concerns groups of every type.

The state machines themselves (:mod:`dafka.broker.groups.group` and others) have neither clock nor threads. A
call that has to wait parks as a green thread until its answer comes. Each group is ticked when its next
timeout is due (:mod:`dafka.broker.groups.registry`). A heartbeat only postpones a timeout, so most heartbeats
leave the deadlines as they are.

Members cannot join a group with an empty name, but offsets may be committed for it, as in Kafka.

Members and committed offsets survive a restart. A member hears of its generation and its assignment when both
are on the disk (:mod:`dafka.broker.groups.kept_members`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import gevent.event
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    NonEmptyGroupError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)

from dafka.broker import limits
from dafka.broker.groups.consumer import classic
from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.migration import Policy, downgraded
from dafka.broker.groups.generation import State
from dafka.broker.groups.group import Group
from dafka.broker.groups.kept_rows import CLASSIC
from dafka.broker.groups.offsets import GroupOffsets, check_offsets
from dafka.broker.groups.rebalance import Terms
from dafka.broker.groups.registry import AnyGroup, Groups
from dafka.broker.groups.restoring import restoring
from dafka.broker.groups.streams.group import StreamsGroup
from dafka.broker.groups.times import Kept
from dafka.broker.interface.groups import (
    NO_GENERATION,
    NO_MEMBER,
    CommittedOffset,
    Error,
    GroupDescription,
    GroupInterface,
    GroupType,
    Joined,
    JoinRequest,
    LeavingMember,
    ListedGroup,
    Synced,
    TopicPartition,
)
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces

T = TypeVar("T")


class Coordinator(GroupInterface):
    """The groups of one broker. Hub side; methods wait as green threads."""

    def __init__(
        self,
        hub: Hub,
        offsets: GroupOffsets,
        groups: Groups,
        stopped: Callable[[], Exception],
        policy: Policy,
        terms: Terms,
        most: int,
    ) -> None:
        """``stopped()`` makes the exception that ends waiting calls after :meth:`close`; a group of the newer
        protocol has ``most`` members at most."""
        self._terms = terms
        self._most = most
        self._hub = hub
        self._offsets = offsets
        self._groups = groups
        groups.successors.append(self._downgraded)
        groups.revive(
            GroupType.CLASSIC,
            lambda name, epoch, behind: Group(groups.clock(), self._groups.deliver, terms),
            CLASSIC,
            lambda name, group, whole, members: restoring(groups.clock(), group, whole, members),
        )
        self._stopped = stopped
        self._policy = policy
        self._forgetting: list[Callable[[str], Error | None]] = []
        self._waiting: set[gevent.event.AsyncResult] = set()
        self._downgrading: set[str] = set()  # groups that become classic ones in several turns

    def on_delete(self, forget: Callable[[str], Error | None]) -> None:
        """Have ``forget(group)`` called for each group that is deleted; it waits as a green thread."""
        self._forgetting.append(forget)

    def settle(self) -> None:
        """Apply the timeouts that are due, after a test has set the clock forward; waits as green thread."""
        self._groups.settle()

    def close(self) -> None:
        """End all waiting calls."""
        self._groups.close()
        for answer in list(self._waiting):
            answer.set_exception(self._stopped())

    # -- the protocol -------------------------------------------------------------------------------

    def join_group(self, group: str, request: JoinRequest) -> Joined:
        if not isinstance(group, str) or not group:
            return Joined(InvalidGroupIdError, member_id=request.member_id)
        if not self._terms.shortest_session <= request.session_timeout <= self._terms.longest_session:
            return Joined(InvalidSessionTimeoutError, member_id=request.member_id)
        if group in self._groups.deleting:
            return Joined(CoordinatorLoadInProgressError, member_id=request.member_id)
        found = self._groups.get(group)
        if isinstance(found, Group):
            known = found
        elif isinstance(found, ConsumerGroup) and found.occupied and self._policy.mixes:
            joined = classic.join(self._groups.clock(), found, request, self._most)
            self._groups.changed(group, found)
            self._groups.saved(group)
            return joined
        elif found is not None and (found.occupied or found.type is GroupType.SHARE):
            return Joined(InconsistentGroupProtocolError, member_id=request.member_id)
        else:
            if request.member_id != NO_MEMBER:
                return Joined(UnknownMemberIdError, member_id=request.member_id)
            try:
                self._groups.check_room()
            except CoordinatorNotAvailableError:
                return Joined(CoordinatorNotAvailableError, member_id=request.member_id)
            known = Group(self._groups.clock(), self._groups.deliver, self._terms)
            self._groups.put(group, known)

        def join(reply: Callable[[Joined], object]) -> None:
            known.join(self._groups.clock(), request, reply)

        return self._answered(group, known, join)

    def sync_group(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        protocol_type: str | None = None,
        protocol: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
    ) -> Synced:
        newer = self._newer(group)
        if newer is not None:
            now = self._groups.clock()
            synced = classic.sync(now, newer, generation, member_id, instance_id, protocol_type, protocol)
            self._groups.changed(group, newer)
            self._groups.saved(group)
            return synced
        known = self._classic(group)
        if known is None:
            return Synced(_unknown(group))

        def sync(reply: Callable[[Synced], object]) -> None:
            given = assignments or {}
            now = self._groups.clock()
            known.sync(now, generation, member_id, instance_id, protocol_type, protocol, given, reply)

        return self._answered(group, known, sync)

    def heartbeat(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        max_wait: float = 0.0,
    ) -> Error | None:
        newer = self._newer(group)
        if newer is not None:
            told = classic.heartbeat(self._groups.clock(), newer, generation, member_id, instance_id)
            self._groups.changed(group, newer)
            if told is None and max_wait > 0:
                self._pause(max_wait)  # nobody is woken here; the next heartbeat tells
            return told
        found = self._classic(group)
        if found is None:
            return _unknown(group)
        answer = gevent.event.AsyncResult()
        reply = answer.set if max_wait > 0 else None
        error = found.heartbeat(self._groups.clock(), generation, member_id, instance_id, reply)
        self._groups.changed(group, found)
        if error is not None or reply is None:
            return error
        self._waiting.add(answer)
        try:
            answer.wait(max_wait)
            return answer.get_nowait() if answer.ready() else None
        finally:
            self._waiting.discard(answer)
            found.heartbeat_over(self._groups.clock(), member_id, reply)
            self._groups.changed(group, found)

    def leave_group(self, group: str, members: Sequence[LeavingMember]) -> list[Error | None]:
        pieces = list(in_pieces(members, limits.LEAVING_AT_ONCE)) or [[]]
        return list(chain.from_iterable(self._leave(group, some) for some in Pace().over(pieces, every=1)))

    def _leave(self, group: str, members: Sequence[LeavingMember]) -> list[Error | None]:
        one, now = self._newer(group) or self._classic(group), self._groups.clock()
        if one is None:
            return [_unknown(group) for _ in members]
        left = classic.leave(now, one, members) if isinstance(one, ConsumerGroup) else one.leave(now, members)
        self._groups.changed(group, one)
        return left

    def _pause(self, seconds: float) -> None:
        """Wait, until :meth:`close` at most."""
        answer = gevent.event.AsyncResult()
        self._waiting.add(answer)
        try:
            answer.wait(seconds)
            if answer.ready():
                answer.get_nowait()
        finally:
            self._waiting.discard(answer)

    def _newer(self, name: str) -> ConsumerGroup | None:
        found = self._groups.get(name) if isinstance(name, str) else None
        return found if isinstance(found, ConsumerGroup) else None

    def _downgraded(self, name: str, group: AnyGroup) -> Group | None:
        """The classic group that takes the place of one in which only classic members are left."""
        if isinstance(group, ConsumerGroup) and self._policy.may_downgrade(group, self._terms.size):
            if len(group.members) <= limits.MIGRATED_AT_ONCE:
                return downgraded(self._groups.clock(), group, self._groups.deliver, self._terms)
            if name not in self._downgrading:
                self._downgrading.add(name)
                self._hub.spawn(self._downgrade, name, group)
        return None

    def _downgrade(self, name: str, group: ConsumerGroup) -> None:
        try:
            while self._groups.get(name) is group and group.only_classic:
                found = downgraded(self._groups.clock(), group, self._groups.deliver, self._terms)
                if found is not None and self._groups.get(name) is group:
                    self._groups.put(name, found)
                    self._groups.changed(name, found)
        finally:
            self._downgrading.discard(name)

    def _classic(self, name: str) -> Group | None:
        found = self._groups.get(name) if isinstance(name, str) else None
        return found if isinstance(found, Group) else None

    def _answered(self, name: str, group: Group, call: Callable[[Callable[[T], object]], None]) -> T:
        """Wait for the answer that ``call(reply)`` gives, at once or later."""
        answer = gevent.event.AsyncResult()
        self._waiting.add(answer)
        try:
            call(answer.set)
            self._groups.changed(name, group)
            given = answer.get()
            self._groups.saved(name)
            return given  # type: ignore[no-any-return]
        finally:
            self._waiting.discard(answer)

    # -- describing and deleting -----------------------------------------------------------------------

    def knows(self, group: str) -> bool:
        """Whether the group has members, or had some recently."""
        return group in self._groups

    def subscribed(self, group: str) -> frozenset[str] | None:
        """The topics that the members of a group read; None if offsets in no topic may expire."""
        found = self._groups.get(group)
        return None if found is None or not found.expires_unread() else found.subscribed()

    def describe_groups(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        return {name: self._describe(name) for name in Pace().over(groups, every=1)}

    def _describe(self, name: str) -> GroupDescription:
        group = self._groups.get(name)
        if isinstance(group, Group):
            return group.describe()
        detail = "" if group is None else f"Group {name} is not a classic group."
        state = State.EMPTY if self._groups.is_offsets(name) else State.DEAD
        return GroupDescription(None, state.value, detail=detail)

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        wanted_states = {state.lower() for state in states}
        wanted_types = {one.lower() for one in types}
        pace = Pace()
        found: dict[str, ListedGroup] = {}
        for name, group in pace.over(self._groups.all()):
            if isinstance(group, Kept):
                found[name] = ListedGroup(name, group.protocol, State.EMPTY.value, GroupType(group.type))
            else:
                found[name] = ListedGroup(name, group.listed_protocol, group.state_name, group.type)
        for name in pace.over(self._offsets.groups()):
            if name not in found:
                found[name] = ListedGroup(name, "", State.EMPTY.value)
        return [
            one
            for one in pace.over(found.values())
            if (not wanted_states or one.state.lower() in wanted_states)
            and (not wanted_types or one.type.value in wanted_types)
        ]

    def delete_groups(self, groups: Iterable[str]) -> dict[str, Error | None]:
        return {name: self._delete(name) for name in Pace().over(dict.fromkeys(groups))}

    def _delete(self, name: str) -> Error | None:
        if not isinstance(name, str):
            return InvalidGroupIdError
        if name in self._groups.deleting:
            return CoordinatorLoadInProgressError
        group = self._groups.get(name)
        if group is None and not self._offsets.has_group(name):
            return GroupIdNotFoundError
        if group is not None:
            if group.occupied:
                return NonEmptyGroupError
            group.die()
            self._groups.changed(name, group)
        # Until the last round nobody joins it or commits for it; clients try again.
        with self._groups.nobody_joins(name):
            errors = [forget(name) for forget in (*self._forgetting, self._offsets.delete_group)]
            return next((error for error in errors if error is not None), None)

    # -- offsets ------------------------------------------------------------------------------------

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = -1,
        member_id: str = NO_MEMBER,
        instance_id: str | None = None,
        knows_epochs: bool = True,
    ) -> dict[TopicPartition, Error | None]:
        check = partial(
            self.check_commit, group, generation, member_id, instance_id, knows_epochs=knows_epochs
        )
        if len(offsets) > limits.COMMIT_OFFSETS:
            check_offsets(offsets.values())  # before some are committed
            errors = map(check, in_pieces(offsets, limits.COMMIT_OFFSETS))
            error = next((one for one in errors if one is not None), None)
            if error is not None:  # one that is refused has all of them refused
                return dict.fromkeys(offsets, error)
        answers: dict[TopicPartition, Error | None] = {}
        for some in in_pieces(offsets.items(), limits.COMMIT_OFFSETS):
            committed = dict(some)
            unknown = self._offsets.without_partition(committed)
            answers.update(dict.fromkeys(unknown, UnknownTopicOrPartitionError))
            committed = {key: one for key, one in committed.items() if key not in unknown}
            if not committed:
                continue  # as in Kafka, for any member
            error = check(committed)
            if error is not None:
                answers.update(dict.fromkeys(committed, error))
            else:
                answers.update(self._offsets.commit(group, committed))
        return answers

    def check_type(self, group: str) -> Error | None:
        """See :meth:`Groups.check_type`."""
        return self._groups.check_type(group)

    def check_commit(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        partitions: Iterable[TopicPartition],
        knows_epochs: bool = True,
    ) -> Error | None:
        """The error of an offset commit to these partitions by this member, None if it may commit.

        Counts as a heartbeat of the member. ``knows_epochs`` as in :meth:`commit_offsets`.
        """
        if group in self._groups.deleting:
            return CoordinatorLoadInProgressError
        found = self._groups.get(group)
        if found is None:
            if generation < 0:
                return None
            unknown = GroupIdNotFoundError if knows_epochs else IllegalGenerationError
            return UnknownMemberIdError if self._offsets.has_group(group) else unknown
        newer = found if isinstance(found, (ConsumerGroup, StreamsGroup)) else None
        if newer is not None and not knows_epochs and newer.gives_epoch(member_id):
            return UnsupportedVersionError
        error = found.check_commit(self._groups.clock(), generation, member_id, instance_id, partitions)
        self._groups.changed(group, found)
        return error

    def fetch_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = NO_GENERATION,
    ) -> dict[TopicPartition, CommittedOffset]:
        found = self._groups.get(group)
        if isinstance(found, (ConsumerGroup, StreamsGroup)) and (member_id is not None or member_epoch >= 0):
            error = found.check_member(member_id or "", member_epoch)
            if error is not None:
                raise error(f"fetching the offsets of group {group!r}")
        return self._offsets.fetch(group, partitions, require_stable)

    def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Error | None]:
        wanted = list(partitions)
        if not isinstance(group, str) or not group:
            return dict.fromkeys(wanted, InvalidGroupIdError)
        if self.check_type(group) or not (group in self._groups or self._offsets.has_group(group)):
            return dict.fromkeys(wanted, GroupIdNotFoundError)
        answers: dict[TopicPartition, Error | None] = {}
        pace = Pace()
        for some in in_pieces(wanted, limits.COMMIT_OFFSETS):
            pace.rest()
            # Members may have joined since the last round.
            found = self._groups.get(group)
            read = found.subscribed() if found is not None else frozenset()
            absent = self._offsets.without_partition(some)
            rest = [key for key in some if key in absent or (read is not None and key[0] not in read)]
            answers.update(dict.fromkeys(some, GroupSubscribedToTopicError))
            answers.update(self._offsets.delete(group, rest))
        return answers


def _unknown(group: object) -> Error:
    """The error of a member's call to a group that does not exist."""
    return UnknownMemberIdError if isinstance(group, str) and group else InvalidGroupIdError
