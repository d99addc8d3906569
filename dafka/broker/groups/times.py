"""When each group lost its last member: the log's table ``groups``. The retention of offsets begins then.

The row of a group holds milliseconds since 1970, or OCCUPIED while the group has members. A group whose row
says OCCUPIED when the broker starts has lost its members with the broker; its time begins when the row is
next read. A group whose consumers only commit and never join has no row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dafka.commit.writer import Writer
from dafka.log import Log, LogClosedError, shapes
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

GROUPS = "groups"
OCCUPIED = -1


class GroupTimes:
    """The times at which the groups of one broker lost their last member. Hub side."""

    def __init__(self, log: Log, writer: Writer, clock: Callable[[], float] = time.time) -> None:
        self._table = log.table(GROUPS, shapes.rows(shapes.any_key, shapes.number))
        self._writer = writer
        self._clock = clock
        self._occupied: set[str] = set()

    def note(self, group: str, occupied: bool) -> None:
        """Record whether a group has members, if that has changed; does not wait for the commit."""
        if occupied is (group in self._occupied):
            return
        if occupied:
            self._occupied.add(group)
        else:
            self._occupied.discard(group)
        self._put(group, OCCUPIED if occupied else int(self._clock() * 1000))

    def is_occupied(self, group: str) -> bool:
        """Whether the group has members."""
        return group in self._occupied

    def emptied(self, group: str) -> int | None:
        """When a group without members lost its last one, in ms; None if it never had any."""
        at: int | None = self._table.get(group)
        if at == OCCUPIED:
            at = int(self._clock() * 1000)
            self._put(group, at)
        return at

    def __iter__(self) -> Iterator[str]:
        """The groups that have a row and no members."""
        return iter([group for group in self._table.unordered() if group not in self._occupied])

    def forget(self, groups: list[str]) -> None:
        """Delete the rows of these groups, but for those that have members; waits as a green thread."""
        rows = {(GROUPS, group): None for group in groups if group not in self._occupied}
        if rows:
            self._writer.put_and_wait(rows)

    def _put(self, group: str, at: int) -> None:
        def done(error: Exception | None) -> None:
            # The row still has an older time, or OCCUPIED, which emptied() replaces when it is next read.
            if error is not None and not isinstance(error, LogClosedError):
                log.warning("the time at which group %r lost its members was not written: %s", group, error)

        self._writer.put({(GROUPS, group): at}, done)
