"""Which tasks some member of a Streams group has, and in which process.

A process keeps the state of a task in one place on its disk, so it takes a task in one role at a time. Only a
member that names another process than before may bring there what the process has already. An active task is
somebody's alone in the whole group.
"""

from __future__ import annotations

from collections.abc import Mapping

from dafka.broker.groups.streams.tasks import Roles, Share

Numbers = Mapping[str, set[int] | frozenset[int]]  # of tasks, by subtopology


class Owned:
    """The tasks of a group that members have."""

    def __init__(self) -> None:
        self._active: dict[str, set[int]] = {}  # by subtopology
        # Of all roles, by process: what a member there has, what a second one has as well, and so on.
        self._at: dict[str, list[dict[str, set[int]]]] = {}

    def free(self, process: str, wanted: Roles) -> Roles:
        """The ones of these tasks that a member in this process may take now."""
        here: Numbers = self._at[process][0] if process in self._at else {}
        active = _without(_without(wanted.active, here), self._active)
        standby = _without(_without(wanted.standby, here), active)  # one role for each task
        warmup = _without(_without(_without(wanted.warmup, here), active), standby)
        return Roles(active, standby, warmup)

    def take(self, process: str, roles: Roles) -> None:
        """A member in this process has these tasks now; those that are active were nobody's."""
        assert not _add(self._active, roles.active)
        for share in roles:
            place = 0
            while share:
                times = self._at.setdefault(process, [])
                if place == len(times):
                    times.append({})
                share = _add(times[place], share)
                place += 1

    def release(self, process: str, roles: Roles) -> None:
        """The member in this process has these tasks no more."""
        assert not _remove(self._active, roles.active)
        for share in roles:
            if not share:
                continue
            times = self._at[process]
            for place in reversed(range(len(times))):
                share = _remove(times[place], share)
                if not times[place]:
                    del times[place]
            assert not share
            if not times:
                del self._at[process]


def _without(share: Share, owned: Numbers) -> Share:
    if not owned:
        return share
    left = {name: numbers.difference(owned.get(name, ())) for name, numbers in share.items()}
    return {name: numbers for name, numbers in left.items() if numbers}


def _add(owned: dict[str, set[int]], share: Share) -> Share:
    """Add tasks; those that were there."""
    there: dict[str, frozenset[int]] = {}
    for name, numbers in share.items():
        known = owned.setdefault(name, set())
        if not known.isdisjoint(numbers):
            there[name] = numbers & known
        known |= numbers
    return there


def _remove(owned: dict[str, set[int]], share: Share) -> Share:
    """Remove tasks; those that were not there."""
    left: dict[str, frozenset[int]] = {}
    for name, numbers in share.items():
        known = owned.get(name, set())
        if not known.issuperset(numbers):
            left[name] = numbers - known
        known -= numbers
        if not known:
            owned.pop(name, None)
    return left
