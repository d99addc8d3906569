"""The assignor "sticky" of Streams groups: tasks stay where they were, as far as the shares stay even.

Active tasks go, one after the other, to

1. the member that had it, unless that has its share already;
2. of the members that had it as a standby, the one whose process has least to do, unless it has its share;
3. the process that has least to do, and in it to the member with the fewest tasks.

Standby tasks, of subtopologies with state, go in the same way to processes that have the task in no role:
first where it was active, then where it was a standby, then where there is least to do. With fewer processes
than replicas some are left out.

What stays is looked at by the numbers of tasks, what is left one subtopology after the other: so each
subtopology is spread over the members, and tasks of one number are rather together.

A share is the number of tasks by that of members, rounded up; when members have reached it, it is reckoned
anew for the others. The load of a process is its number of tasks by that of its members, as each is a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from dafka.broker.groups.modern.assignment import same_where_equal
from dafka.broker.groups.streams.tasks import NONE, Roles, Share, TaskId, each


class Runner(NamedTuple):
    """A member as the assignor sees it. ``target`` is what it was to have until now."""

    member_id: str
    process: str
    target: Roles


class Spec(NamedTuple):
    """The input for a target: the group of an epoch. It does not change with the group.

    ``tasks``: how many tasks each subtopology has. ``stateful``: the subtopologies with state. ``standbys``:
    how many copies each of their tasks has.
    """

    epoch: int
    members: Sequence[Runner]
    tasks: Mapping[str, int]
    stateful: frozenset[str]
    standbys: int


Target = dict[str, Roles]


def assign_sticky(spec: Spec) -> Target:
    """The target of each member."""
    if not spec.members:
        return {}
    return same_where_equal({one.member_id: one.target for one in spec.members}, _Assignment(spec).run())


class _Process:
    """A process and its members, with what they have got."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}  # tasks of all roles by member
        self.tasks: set[TaskId] = set()
        self._idle: list[tuple[int, int, str]] | None = (
            None  # members by tasks; rebuilt after an exact choice
        )

    @property
    def load(self) -> float:
        return len(self.tasks) / len(self.counts)

    def add(self, member_id: str, task: TaskId) -> int:
        """Give the task to the member; how many it has now."""
        self.tasks.add(task)
        self.counts[member_id] += 1
        self._idle = None
        return self.counts[member_id]

    def add_to_least(self, task: TaskId) -> tuple[str, int]:
        """Give the task to the member with the fewest; which one, and how many it has now."""
        if self._idle is None:
            members = enumerate(self.counts.items())
            self._idle = [(count, place, member) for place, (member, count) in members]
            heapify(self._idle)
        count, place, member = heappop(self._idle)
        heappush(self._idle, (count + 1, place, member))
        self.tasks.add(task)
        self.counts[member] = count + 1
        return member, count + 1


class _Quota:
    """How many of so many tasks a member may have, reckoned anew whenever one has as many."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.each = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def reached(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = self._share()


class _Assignment:
    """One computation."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._processes: dict[str, _Process] = {}
        self._homes: dict[str, str] = {}  # process by member
        self._was_active: dict[TaskId, str] = {}
        self._were_standby: dict[TaskId, list[str]] = {}
        for member_id, process, target in spec.members:
            self._processes.setdefault(process, _Process()).counts[member_id] = 0
            self._homes[member_id] = process
            self._was_active.update(dict.fromkeys(each(target.active), member_id))
            for task in each(target.standby):
                self._were_standby.setdefault(task, []).append(member_id)
        active = sum(spec.tasks.values())
        copied = sum(count for name, count in spec.tasks.items() if name in spec.stateful)
        self._active_quota = _Quota(active, len(spec.members))
        self._quota = _Quota(active + copied * spec.standbys, len(spec.members))
        self._active: dict[str, dict[str, set[int]]] = {}
        self._standby: dict[str, dict[str, set[int]]] = {}

    def run(self) -> Target:
        tasks = [(name, number) for name, count in self._spec.tasks.items() for number in range(count)]
        tasks.sort(key=_by_number)
        self._assign_active(tasks)
        if self._spec.standbys:
            self._assign_standby([task for task in reversed(tasks) if task[0] in self._spec.stateful])
        return {
            member: Roles(_frozen(self._active.get(member)), _frozen(self._standby.get(member)))
            for member in self._homes
        }

    # -- active tasks ---------------------------------------------------------------------------

    def _assign_active(self, tasks: Sequence[TaskId]) -> None:
        left = [task for task in tasks if not self._stays(task)]
        left = [task for task in left if not self._follows_its_standby(task)]
        left.sort()  # one subtopology after the other: the tasks of each are spread
        queue = self._by_load()
        for task in left:
            _, place, process = heappop(queue)
            member, count = process.add_to_least(task)
            self._given(self._active, member, task, count, True)
            heappush(queue, (process.load, place, process))

    def _stays(self, task: TaskId) -> bool:
        member = self._was_active.get(task)
        return member is not None and self._may_run(member, task)

    def _follows_its_standby(self, task: TaskId) -> bool:
        member = self._least_loaded(self._were_standby.get(task, ()), task)
        return member is not None and self._may_run(member, task)

    def _may_run(self, member: str, task: TaskId) -> bool:
        """Give an active task to the member unless it has its share."""
        process = self._processes[self._homes[member]]
        if process.counts[member] >= self._active_quota.each:
            return False
        self._given(self._active, member, task, process.add(member, task), True)
        return True

    def _given(
        self, to: dict[str, dict[str, set[int]]], member: str, task: TaskId, count: int, active: bool
    ) -> None:
        to.setdefault(member, {}).setdefault(task[0], set()).add(task[1])
        if active:
            self._active_quota.reached(count)
        self._quota.reached(count)

    # -- standby tasks --------------------------------------------------------------------------

    def _assign_standby(self, tasks: Sequence[TaskId]) -> None:
        left: list[tuple[TaskId, int]] = []
        for task in tasks:
            replicas = self._spec.standbys
            while replicas and self._keeps_a_copy(task):
                replicas -= 1
            if replicas:
                left.append((task, replicas))
        left.sort(reverse=True)
        queue = self._by_load()
        for task, replicas in left:
            full: list[tuple[float, int, _Process]] = []  # those that have the task already
            while replicas and queue:
                _, place, process = heappop(queue)
                if task not in process.tasks:
                    member, count = process.add_to_least(task)
                    self._given(self._standby, member, task, count, False)
                    replicas -= 1
                full.append((process.load, place, process))
            for one in full:
                heappush(queue, one)

    def _keeps_a_copy(self, task: TaskId) -> bool:
        before = self._was_active.get(task)
        for member in (before, self._least_loaded(self._were_standby.get(task, ()), task)):
            if member is None:
                continue
            process = self._processes[self._homes[member]]
            if task not in process.tasks and process.counts[member] < self._quota.each:
                self._given(self._standby, member, task, process.add(member, task), False)
                return True
        return False

    # -- choosing -------------------------------------------------------------------------------

    def _least_loaded(self, members: Iterable[str], task: TaskId) -> str | None:
        """The member with the least to do among those whose process does not have the task in any role."""
        found: tuple[float, int, str] | None = None
        for member in members:
            process = self._processes[self._homes[member]]
            if task not in process.tasks:
                candidate = (process.load, process.counts[member], member)
                found = candidate if found is None or candidate[:2] < found[:2] else found
        return None if found is None else found[2]

    def _by_load(self) -> list[tuple[float, int, _Process]]:
        queue = [(one.load, place, one) for place, one in enumerate(self._processes.values())]
        heapify(queue)
        return queue


def _by_number(task: TaskId) -> tuple[int, str]:
    """The key by which tasks of the same number come after each other."""
    return task[1], task[0]


def _frozen(tasks: Mapping[str, set[int]] | None) -> Share:
    return NONE if not tasks else {name: frozenset(numbers) for name, numbers in tasks.items()}
