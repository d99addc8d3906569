"""Runs that were delivered to a consumer and wait for its user: all, or the newest of each partition."""

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

    def take(self) -> Deliver | None:
        """The run that waits longest, or None."""

    def __len__(self) -> int:
        """How many runs wait."""


class AllRuns:
    """Every run, in their order."""

    def __init__(self) -> None:
        self._runs: deque[Deliver] = deque()

    def put(self, run: Deliver) -> tuple[int, int]:
        """Add a run at the end."""
        self._runs.append(run)
        return len(run.contents), sum(map(len, run.contents))

    def take(self) -> Deliver | None:
        """The first run, or None."""
        try:
            return self._runs.popleft()
        except IndexError:
            return None

    def __len__(self) -> int:
        return len(self._runs)


class NewestRuns:
    """The newest message of each partition: a new one replaces the waiting one.

    So nothing waits for a slow user, and what it takes is as new as it can be.
    """

    def __init__(self) -> None:
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
        """That of the partition which waits longest, or None."""
        with self._lock:
            address = next(iter(self._newest), None)
            return None if address is None else self._newest.pop(address)

    def __len__(self) -> int:
        return len(self._newest)
