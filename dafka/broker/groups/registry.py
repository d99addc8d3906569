"""All groups of a broker by id, and the clock that ticks them.

There is one namespace of ids: groups of different protocols never share an id. Members of a group outlive a
restart (:mod:`dafka.broker.groups.kept_members`). Of a group of the newer protocols without members the
broker keeps type and epoch (:mod:`dafka.broker.groups.times`), so that it is of the same type then, and its
epoch does not go back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    InvalidGroupIdError,
)

from dafka.broker.groups.generation import at_once
from dafka.broker.groups.kept_members import KeptGroup, KeptMembers
from dafka.broker.groups.kept_rows import Format
from dafka.broker.groups.members import Reply
from dafka.broker.groups.times import GroupTimes, Kept
from dafka.broker.interface.groups import Error, GroupType, TopicPartition
from dafka.broker.limits import GROUPS_KEPT
from dafka.hub.deadlines import Deadlines
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

ANSWERED_AT_ONCE = 100  # members
FAILED_PAUSE = 1.0  # seconds until a group is ticked again after an unexpected error


class AnyGroup(KeptGroup, Protocol):
    """The common base of groups of all types: state machines without threads and without a clock."""

    wake_at: float
    """The latest time for the next :meth:`tick`; an earlier one is harmless."""

    @property
    def state_name(self) -> str:
        """Its state, by Kafka's word."""

    @property
    def listed_protocol(self) -> str:
        """The protocol type that lists of groups have for it."""

    @property
    def dead(self) -> bool:
        """Whether it is to be forgotten."""

    @property
    def kept(self) -> Kept | None:
        """The facts to store for a restart."""

    def tick(self, now: float) -> None:
        """Apply the timeouts that are due."""

    def die(self) -> None:
        """Mark it as deleted; it has to be empty."""

    def subscribed(self) -> frozenset[str] | None:
        """The topics that its members read; None if they are unknown."""

    def expires_unread(self) -> bool:
        """Whether offsets in topics that no member reads may expire while it has members."""

    def check_commit(
        self,
        now: float,
        generation: int,
        member_id: str,
        instance_id: str | None,
        partitions: Iterable[TopicPartition],
    ) -> Error | None:
        """The error of an offset commit to these partitions, None if it is allowed."""


G = TypeVar("G", bound=AnyGroup)


Restore = Callable[[str, Any, Any, Sequence[Any]], Iterator[None]]
"""Gives a group of its type what was kept of it, as :meth:`Groups.revive` says."""


class Groups:
    """The groups of one broker. Hub side."""

    def __init__(
        self,
        hub: Hub,
        times: GroupTimes,
        members: KeptMembers,
        clock: Callable[[], float],
        has_offsets: Callable[[str], bool],
    ) -> None:
        """``has_offsets(id)``: whether the group has committed offsets, or had some lately."""
        self._hub = hub
        self._has_offsets = has_offsets
        self._times = times
        self._members = members
        self.clock = clock
        """The clock of all groups, in seconds."""
        self._groups: dict[str, AnyGroup] = {}
        self.deleting: set[str] = set()
        """Groups whose offsets are being changed or deleted, in several rounds. Nobody joins them then."""
        self.successors: list[Callable[[str, AnyGroup], AnyGroup | None]] = []
        """Asked after each change of a group: whether another one is to take its place."""
        self.watchers: list[Callable[[str, AnyGroup], object]] = []
        """Told of each change of a group that goes on."""
        self._told: dict[str, str] = {}  # the states of groups that were logged
        self._made: dict[GroupType, Callable[[str, int, int], AnyGroup]] = {}
        self._restoring: dict[GroupType, Restore] = {}
        self._deadlines = Deadlines(hub, self._tick, lambda: self.clock())

    def revive(
        self, kind: GroupType, make: Callable[[str, int, int], AnyGroup], form: Format, restoring: Restore
    ) -> None:
        """Let ``make(id, epoch, behind)`` make the groups of that type that are known from before a restart,
        by what :class:`Kept` says of them.

        ``restoring(id, group, whole, members)`` gives them what was kept of their members, in rows of that
        form.
        """
        self._made[kind] = make
        self._members.formats[kind] = form
        self._restoring[kind] = restoring

    def restore(self) -> None:
        """Go on with the members that were kept; waits as a green thread, before anybody else calls."""
        pace = Pace()
        for name, kind, whole, members in self._members.stored():
            kept = self._times.kept(name)
            if kept is not None and kept.type != kind.value:
                continue  # it has become another group since
            group = self._made[kind](name, 0 if kept is None else kept.epoch, 0)
            for _ in pace.over(self._restoring[kind](name, group, whole, members), every=1):
                pass
            if not group.occupied:
                continue
            pace.rest()
            self._groups[name] = group
            self._members.begin_with(name, group)
            self._times.go_on(name)
            self.changed(name, group)
            pace.rest()
        self._members.forget_others()

    def saved(self, name: str) -> None:
        """Wait as a green thread until what a group has told its members is on the disk."""
        self._members.wait(name)

    def close(self) -> None:
        """Tick no group any more."""
        self._deadlines.close()

    def check(self) -> None:
        """Read the clock again, after a test has set it forward."""
        self._deadlines.check()

    def settle(self) -> None:
        """The same; waits as a green thread until the groups have been ticked that are due."""
        self._deadlines.settle()

    # -- looking up -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, name: object) -> bool:
        """Whether the group has members, or had some recently."""
        return name in self._groups

    def get(self, name: str) -> AnyGroup | None:
        """The group of that id."""
        found = self._groups.get(name)
        if found is None:
            kept = self._times.kept(name)
            make = None if kept is None else self._made.get(GroupType(kept.type))
            if kept is not None and make is not None:
                found = self._groups[name] = make(name, kept.epoch, kept.behind)
                self.changed(name, found)
        return found

    def exists(self, name: str) -> bool:
        """Whether there is a group of that id, of members or of committed offsets alone."""
        return self.get(name) is not None or self._has_offsets(name)

    def is_offsets(self, name: str) -> bool:
        """Whether the group is but committed offsets: of no members, it is a classic one."""
        return self.get(name) is None and self._has_offsets(name)

    def check_type(self, name: str) -> Error | None:
        """GroupIdNotFoundError for a group of a type that has no committed offsets."""
        found = self.get(name)
        is_share = found is not None and not found.dead and found.type is GroupType.SHARE
        return GroupIdNotFoundError if is_share else None

    def of(self, name: str, kind: type[G]) -> G:
        """The group of that id and class. Raises GroupIdNotFoundError."""
        found = self.get(name)
        if not name:
            raise InvalidGroupIdError("A group has a name.")
        if found is None and not self.is_offsets(name):
            raise GroupIdNotFoundError(f"Group {name} not found.")
        if not isinstance(found, kind):
            wanted = kind.__name__.removesuffix("Group").lower() or GroupType.CLASSIC.value
            raise GroupIdNotFoundError(f"Group {name} is not a {wanted} group.")
        return found

    def all(self) -> Iterator[tuple[str, AnyGroup | Kept]]:
        """All groups that have members, had some recently, or have a type other than classic."""
        yield from list(self._groups.items())
        for name, kept in self._times.all_kept():
            if name not in self._groups:
                yield name, kept

    def names(self, kind: GroupType) -> list[str]:
        """The ids of all groups of a type other than classic."""
        return [name for name, kept in self._times.all_kept() if kept.type == kind.value]

    # -- changing -------------------------------------------------------------------------------

    @contextmanager
    def nobody_joins(self, name: str) -> Iterator[None]:
        """Have members that join a group try again later, while its offsets are changed or deleted.

        Raises CoordinatorLoadInProgressError: that is under way already.
        """
        self.check_joins(name)
        self.deleting.add(name)
        try:
            yield
        finally:
            self.deleting.discard(name)

    def check_joins(self, name: str) -> None:
        """Raise CoordinatorLoadInProgressError if a group is not to be joined now."""
        if name in self.deleting:
            raise CoordinatorLoadInProgressError(f"Offsets of group {name} are being changed or deleted.")

    def check_room(self) -> None:
        """Raise CoordinatorNotAvailableError if there are too many groups for another one."""
        if len(self._groups) >= GROUPS_KEPT:
            raise CoordinatorNotAvailableError(f"{GROUPS_KEPT} groups have members")

    def put(self, name: str, group: AnyGroup) -> None:
        """Add a group, or replace one that has changed its type or is empty."""
        self._groups[name] = group

    def changed(self, name: str, group: AnyGroup) -> None:
        """Schedule the next tick of a group that may have changed; forget it if it is dead."""
        if self._groups.get(name) is not group:
            return
        for successor in self.successors:
            other = successor(name, group)
            if other is not None:
                group = self._groups[name] = other
        self._times.note(name, group.occupied, group.kept)
        self._members.note(name, group)
        if log.isEnabledFor(logging.INFO):
            self._tell(name, group)
        if group.dead:
            del self._groups[name]
            return
        self._deadlines.set((name, group), group.wake_at)
        for watcher in self.watchers:
            watcher(name, group)

    def deliver(self, replies: Iterable[Reply], count: int) -> None:
        """Give the members of a group their answers: in the turns that come if they are many."""
        if count <= ANSWERED_AT_ONCE:
            at_once(replies, count)
        else:
            self._hub.spawn(at_once, Pace().over(replies), count)

    def _tell(self, name: str, group: AnyGroup) -> None:
        """Log in which state a group is now, if that has changed."""
        state = group.state_name
        if self._told.get(name) != state:
            self._told[name] = state
            log.info("%s group %r: %s", group.type.value, name, state)
        if group.dead:
            del self._told[name]

    def _tick(self, named: tuple[str, AnyGroup]) -> None:
        name, group = named
        if self._groups.get(name) is not group:
            return  # another one has taken its place
        try:
            group.tick(self.clock())
        except Exception:  # the members of the group wait for its next tick
            log.exception("the timeouts of group %r failed unexpectedly; trying again", name)
            group.wake_at = self.clock() + FAILED_PAUSE
        self.changed(name, group)
