"""Logs that are open when the process forks stay with the parent."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """An open log."""

    def connections(self) -> list[object]:
        """Those of each thread to the database."""

    def leave_to_parent(self) -> object:
        """Refuse all further use; returns the object whose destructor must not run in this process."""


_open: weakref.WeakSet[Forked] = weakref.WeakSet()
_of_parent: list[object] = []  # kept, so that no destructor in a child works on the parent's database
_of_threads: list[object] = []  # connections of other threads, of which nothing is left in a child


def opened(log: Forked) -> None:
    """Leave ``log`` to the parent in every forked child."""
    _open.add(log)


def closed(log: Forked) -> None:
    _open.discard(log)


def _before_fork() -> None:
    _of_threads.append([log.connections() for log in list(_open)])


def _after_fork_in_parent() -> None:
    _of_threads.pop()


def _after_fork_in_child() -> None:
    _of_parent.extend(log.leave_to_parent() for log in list(_open))
    _open.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
