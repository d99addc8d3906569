"""Since when groups are without members: the log's table ``groups``, the beginning of offsets' retention.

A group's row holds milliseconds since 1970, or OCCUPIED while the group has members. A group that was
occupied when its broker ended has lost its members with it, so for such a row the time begins when the row is
next looked at. Groups that never had members, of consumers that only commit, have no row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dafka.commit.writer import Writer
from dafka.log import Log, LogClosedError
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

GROUPS = "groups"
OCCUPIED = -1


class GroupTimes:
    """When the groups of one broker lost their last member. Hub side."""

    def __init__(self, log: Log, writer: Writer, clock: Callable[[], float] = time.time) -> None:
        self._table = log.table(GROUPS)
        self._writer = writer
        self._clock = clock
        self._occupied: set[str] = set()

    def note(self, group: str, occupied: bool) -> None:
        """Say whether a group has members, whenever that may have changed; does not wait for the commit."""
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
        """When the group lost its last member, in ms; None if it never had one. It has none now."""
        at: int | None = self._table.get(group)
        if at == OCCUPIED:
            at = int(self._clock() * 1000)
            self._put(group, at)
        return at

    def __iter__(self) -> Iterator[str]:
        """The groups that have a row and no members."""
        return iter([group for group in self._table.unordered() if group not in self._occupied])

    def forget(self, groups: list[str]) -> None:
        """Delete the rows of groups that nothing is known of any more; waits as a green thread."""
        rows = {(GROUPS, group): None for group in groups if group not in self._occupied}
        if rows:
            self._writer.put_and_wait(rows)

    def _put(self, group: str, at: int) -> None:
        def done(error: Exception | None) -> None:
            # What is there instead is older, or OCCUPIED: put right when it is next looked at.
            if error is not None and not isinstance(error, LogClosedError):
                log.warning("when group %r lost its members could not be written: %s", group, error)

        self._writer.put({(GROUPS, group): at}, done)
