"""Runs that were delivered to a consumer and wait for its user: all, or the newest of each partition.

Ctrl-C in the user's thread loses none. Python raises it where a call ends, and where a function or the next
round of a loop begins: a run is taken by assignments that stand together, and so happen all or not at all.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from gevent import monkey

from dafka.roles.outputs import Deliver

_allocate_lock = monkey.get_original("_thread", "allocate_lock")  # one of gevent would wait in the hub


class Inbox(Protocol):
    """Runs on their way to the user's thread: ``put`` is called in the hub, ``take`` in the thread."""

    def put(self, run: Deliver) -> tuple[int, int]:
        """Add a run: by how many records and octets there is more in it now."""

    current: Deliver | None
    """The run that was taken last, until there is no further one."""
    taken_records: int
    """Records taken ever; written by the user's thread only."""
    taken_octets: int
    """Their octets."""

    def take(self) -> Deliver | None:
        """Make the run that waits longest the current one; it, or None."""

    def __len__(self) -> int:
        """How many runs wait."""


class AllRuns:
    """Every run, in their order."""

    def __init__(self) -> None:
        self.current: Deliver | None = None
        self.taken_records = self.taken_octets = 0
        self.runs: deque[Deliver] = deque()
        """Those that wait, the first one first."""

    def put(self, run: Deliver) -> tuple[int, int]:
        """Add a run at the end."""
        self.runs.append(run)
        return len(run.contents), sum(map(len, run.contents))

    def take(self) -> Deliver | None:
        """Make the first run the current one."""
        runs = self.runs
        run = runs[0] if runs else None
        if run is not None:
            records, octets = len(run.contents), sum(map(len, run.contents))
            self.current = run
            self.taken_records += records
            self.taken_octets += octets
            del runs[0]
        else:
            self.current = None
        return run

    def __len__(self) -> int:
        return len(self.runs)


class NewestRuns:
    """The newest message of each partition: a new one replaces the waiting one.

    So nothing waits for a slow user, and what it takes is as new as it can be.
    """

    def __init__(self) -> None:
        self.current: Deliver | None = None
        self.taken_records = self.taken_octets = 0
        self._newest: dict[bytes, Deliver] = {}
        self._lock = _allocate_lock()

    def put(self, run: Deliver) -> tuple[int, int]:
        """Have the last message of a run in the place of the one that waits of its partition."""
        last = run._replace(first=run.first + len(run.contents) - 1, contents=run.contents[-1:])
        with self._lock:
            before = self._newest.get(run.address)
            self._newest[run.address] = last
        size = len(last.contents[0])
        return (1, size) if before is None else (0, size - len(before.contents[0]))

    def take(self) -> Deliver | None:
        """Make that of the partition which waits longest the current one."""
        with self._lock:
            newest = self._newest
            address = next(iter(newest), None)
            if address is None:
                self.current = None
                return None
            run = newest[address]
            octets = len(run.contents[0])
            self.current = run
            self.taken_records += 1
            self.taken_octets += octets
            del newest[address]
            return run

    def __len__(self) -> int:
        return len(self._newest)
