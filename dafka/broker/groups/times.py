"""When each group lost its last member: the log's table ``groups``. The retention of offsets begins then.

The row of a group holds milliseconds since 1970, or OCCUPIED while the group has members. A group whose row
says OCCUPIED when the broker starts, and whose members were not kept, has lost them with the broker; its time
begins when the row is next read. A group whose consumers only commit and never join has no row.

The row of a group that is not of the classic protocol has its type and its epoch besides; and without members
by how much its target was older, if it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dafka.broker.interface.groups import GroupType
from dafka.commit.writer import Writer
from dafka.log import Log, LogClosedError, shapes
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

GROUPS = "groups"
OCCUPIED = -1

_types = frozenset(one.value for one in GroupType)
_FACTS = shapes.number, lambda value: shapes.text(value) and value in _types, shapes.natural
_ROW = shapes.either(shapes.number, shapes.row_of(*_FACTS), shapes.row_of(*_FACTS, shapes.natural))


class Kept(NamedTuple):
    """The stored facts of a group: its type, by its word, and its epoch.

    ``behind``: by how much the epoch of its target is smaller, which is asked for without members only.
    """

    type: str
    epoch: int
    behind: int = 0

    @property
    def protocol(self) -> str:
        """The protocol type in lists of groups."""
        return self.type


class GroupTimes:
    """The times at which the groups of one broker lost their last member. Hub side."""

    def __init__(self, log: Log, writer: Writer, clock: Callable[[], float] = time.time) -> None:
        self._table = log.table(GROUPS, shapes.rows(shapes.any_key, _ROW))
        self._writer = writer
        self._clock = clock
        self._occupied: set[str] = set()
        self._kept: dict[str, Kept] = {
            group: Kept(*row[1:]) for group, row in self._table.items() if isinstance(row, list)
        }

    def note(self, group: str, occupied: bool, kept: Kept | None = None) -> None:
        """Record whether a group has members, and what else is kept of it, if that has changed.

        Does not wait for the commit.
        """
        same = occupied is (group in self._occupied)
        if same and kept == self._kept.get(group):
            return
        if kept is None:
            self._kept.pop(group, None)
        else:
            self._kept[group] = kept
        if occupied:
            self._occupied.add(group)
            at = OCCUPIED
        else:
            self._occupied.discard(group)
            at = int(self._clock() * 1000)
        self._put(group, at)

    def go_on(self, group: str) -> None:
        """The members of a group that had some when the broker ended are still there."""
        self._occupied.add(group)

    def kept(self, group: str) -> Kept | None:
        """The type and the epoch of a group that is not of the classic protocol."""
        return self._kept.get(group)

    def all_kept(self) -> list[tuple[str, Kept]]:
        """All groups that are not of the classic protocol."""
        return list(self._kept.items())

    def is_occupied(self, group: str) -> bool:
        """Whether the group has members."""
        return group in self._occupied

    def emptied(self, group: str) -> int | None:
        """When a group without members lost its last one, in ms; None if it never had any."""
        row = self._table.get(group)
        at: int | None = row[0] if isinstance(row, list) else row
        if at == OCCUPIED:
            at = int(self._clock() * 1000)
            self._put(group, at)
        return at

    def __iter__(self) -> Iterator[str]:
        """The groups that have a row and no members; rows may come and go meanwhile."""
        return (group for group in self._table.unordered() if group not in self._occupied)

    def forget(self, groups: list[str]) -> None:
        """Delete the rows of these groups, but for those that have members; waits as a green thread."""
        rows = {(GROUPS, group): None for group in groups if group not in self._occupied}
        if rows:
            for group in groups:
                if group not in self._occupied:
                    self._kept.pop(group, None)
            self._writer.put_and_wait(rows)

    def _put(self, group: str, at: int) -> None:
        kept = self._kept.get(group)
        row: Any = at
        if kept is not None:
            row = [at, *kept] if kept.behind else [at, *kept[:2]]

        def done(error: Exception | None) -> None:
            # The row still has an older time, or OCCUPIED, which emptied() replaces when it is next read.
            if error is not None and not isinstance(error, LogClosedError):
                log.warning("the time at which group %r lost its members was not written: %s", group, error)

        self._writer.put({(GROUPS, group): row}, done)
