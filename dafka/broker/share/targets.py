"""Targets of large share groups: computed once for all members that join meanwhile."""

from __future__ import annotations

from kafka.errors import CoordinatorNotAvailableError

from dafka.broker.groups.modern import targets
from dafka.broker.groups.registry import AnyGroup, Groups
from dafka.broker.share.assignor import assign
from dafka.broker.share.group import ShareGroup
from dafka.hub.hub import Hub


class Targets:
    """The targets of one broker's share groups. Hub side."""

    def __init__(self, hub: Hub, groups: Groups) -> None:
        self._hub = hub
        self._groups = groups
        self._targets = targets.Targets[ShareGroup](hub, self._is_due, self._compute, groups.changed)
        groups.watchers.append(self._changed)

    def _changed(self, name: str, group: AnyGroup) -> None:
        # Others have their next target with the next heartbeat; one that was put off is begun when it is due.
        if isinstance(group, ShareGroup) and group.needs_target and group.pause > 0:
            self.renew(group)

    def renew(self, group: ShareGroup) -> None:
        """Have the target of a group computed if it is an older group's, and that is not under way."""
        self._targets.renew(group.name, group)

    def wait(self, group: ShareGroup, member_id: str) -> None:
        """Wait as a green thread until a new member has a target, or is gone, unless that is put off.

        Raises CoordinatorNotAvailableError if it cannot be computed.
        """
        while group.lacks_target(member_id) and group.is_target_due(self._groups.clock()):
            self.renew(group)
            self._targets.wait(group)
            is_over = not self._targets.is_running(group)
            if is_over and group.lacks_target(member_id) and group.is_target_due(self._groups.clock()):
                raise CoordinatorNotAvailableError("The assignment of the group could not be computed.")

    def _is_due(self, name: str, group: ShareGroup) -> bool:
        return group.is_target_due(self._groups.clock())

    def _compute(self, group: ShareGroup) -> None:
        draft = group.draft()
        target = targets.computed(self._hub, draft.target, assign)
        group.install(draft.epoch, target, self._groups.clock())
