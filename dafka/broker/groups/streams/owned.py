"""Which tasks some member of a Streams group has, and in which process.

A process keeps the state of a task in one place on its disk, so it takes a task in one role at a time. Only a
member that names another process than before may bring there what the process has already. An active task is
somebody's alone in the whole group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from dafka.broker.groups.streams.tasks import NONE, Roles, Share, TaskId, each, frozen


class Owned:
    """The tasks of a group that members have."""

    def __init__(self) -> None:
        self._active: dict[TaskId, str] = {}  # the process that runs it
        # In which processes how many members have it as a standby or warm it up.
        self._copies: dict[TaskId, Counter[str]] = {}

    def free(self, process: str, wanted: Roles) -> Roles:
        """Those of the tasks that a member in this process may take now."""
        taken: set[TaskId] = set()  # one role for each task, also among the wanted ones

        def of(share: Share, is_active: bool) -> Share:
            free: dict[str, set[int]] = {}
            for task in each(share):
                if task not in taken and self._is_free(process, task, is_active):
                    taken.add(task)
                    free.setdefault(task[0], set()).add(task[1])
            return frozen(free) if free else NONE

        return Roles(of(wanted.active, True), of(wanted.standby, False), of(wanted.warmup, False))

    def _is_free(self, process: str, task: TaskId, is_active: bool) -> bool:
        runs = self._active.get(task)
        if runs is not None and (is_active or runs == process):
            return False
        return process not in self._copies.get(task, ())

    def take(self, process: str, roles: Roles) -> None:
        """A member in this process has these tasks now; those that are active were nobody's."""
        for task in each(roles.active):
            assert task not in self._active
            self._active[task] = process
        for share in (roles.standby, roles.warmup):
            for task in each(share):
                self._copies.setdefault(task, Counter())[process] += 1

    def release(self, process: str, roles: Roles) -> None:
        """The member in this process has these tasks no more."""
        for task in each(roles.active):
            del self._active[task]
        for share in (roles.standby, roles.warmup):
            for task in each(share):
                copies = self._copies[task]
                copies[process] -= 1
                if not copies[process]:
                    del copies[process]
                if not copies:
                    del self._copies[task]

    @property
    def copies(self) -> Mapping[TaskId, Collection[str]]:
        """The processes that have a copy of each task."""
        return self._copies
