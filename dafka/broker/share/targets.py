"""Targets of large share groups: computed once for all members that join meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from kafka.errors import CoordinatorNotAvailableError

from dafka.broker.groups.modern import targets
from dafka.broker.share.assignor import assign
from dafka.broker.share.group import ShareGroup
from dafka.hub.hub import Hub


class Targets:
    """The targets of one broker's share groups. Hub side."""

    def __init__(self, hub: Hub, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._targets = targets.Targets[ShareGroup](hub, self._is_due, self._compute)

    def renew(self, group: ShareGroup) -> None:
        """Have the target of a group computed if it is an older group's, and that is not under way."""
        self._targets.renew(group.name, group)

    def wait(self, group: ShareGroup, member_id: str) -> None:
        """Wait as a green thread until a new member has a target, or is gone, unless that is put off.

        Raises CoordinatorNotAvailableError if it cannot be computed.
        """
        while group.lacks_target(member_id) and group.is_target_due(self._clock()):
            self.renew(group)
            self._targets.wait(group)
            if not self._targets.is_running(group) and group.lacks_target(member_id):
                raise CoordinatorNotAvailableError("The assignment of the group could not be computed.")

    def _is_due(self, name: str, group: ShareGroup) -> bool:
        return group.is_target_due(self._clock())

    def _compute(self, group: ShareGroup) -> None:
        draft = group.draft()
        target = targets.ASIDE.run(draft.target, assign)
        group.install(draft.epoch, target, self._clock())
