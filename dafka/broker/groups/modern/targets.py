"""The targets of large groups, which take long to compute: beside the hub, one after the other.

Until its target is there, the members of a group keep what they have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from dafka.broker.groups.registry import AnyGroup
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.pool import Aside
from dafka.hub.turns import next_turn

log = logging.getLogger(__name__)

ASIDE = Aside(1)
"""Where targets are computed, for groups of all types."""

G = TypeVar("G", bound=AnyGroup)
P = ParamSpec("P")
T = TypeVar("T")


def computed(hub: Hub, assign: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """A target, computed in ``ASIDE``. To install one takes some milliseconds: that has a turn with room."""
    target = ASIDE.run(assign, *args, **kwargs)
    hub.turns.share()
    return target


class Targets(Generic[G]):
    """Has the targets of groups of one type computed when they are due. Hub side.

    ``is_due(name, group)``: whether the group needs another target now. ``compute(group)`` has one
    :func:`computed`, and installs it; it waits as a green thread. ``changed(name, group)`` is called after
    that.
    """

    def __init__(
        self,
        hub: Hub,
        is_due: Callable[[str, G], bool],
        compute: Callable[[G], object],
        changed: Callable[[str, G], object],
    ) -> None:
        self._hub = hub
        self._changed = changed
        self._is_due = is_due
        self._compute = compute
        self._running: dict[G, Changes] = {}

    def renew(self, name: str, group: G) -> None:
        """Have the target of a group computed if it is due, and that is not under way."""
        if group not in self._running and self._is_due(name, group):
            self._running[group] = Changes()
            self._hub.spawn(self._run, name, group)

    def is_running(self, group: G) -> bool:
        """Whether a target of the group is being computed."""
        return group in self._running

    def wait(self, group: G) -> None:
        """Wait as a green thread until a target is installed, or its computation has failed."""
        self._running[group].wait()

    def _is_due_now(self, name: str, group: G) -> bool:
        self._hub.turns.share()  # to list ten thousand members takes some milliseconds
        return self._is_due(name, group)

    def _run(self, name: str, group: G) -> None:
        changes = self._running[group]
        try:
            while self._is_due_now(name, group):
                self._compute(group)
                self._changed(name, group)
                changes.tell()
                next_turn()  # of ten thousand members another one takes as long again to be begun
        except Exception:
            log.exception("the assignment of group %r failed unexpectedly", name)
        finally:
            del self._running[group]
            changes.tell()
