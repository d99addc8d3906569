"""Computes what the members of large share groups are to read: beside the hub, once for all who join then."""

from __future__ import annotations

import logging

from kafka.errors import CoordinatorNotAvailableError

from dafka.broker.share.assignor import assign
from dafka.broker.share.group import ShareGroup
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.pool import Aside

log = logging.getLogger(__name__)

ASSIGNING = Aside(1)
"""Computes the targets of large groups, one after the other."""


class Targets:
    """The computations of one broker's share groups. Hub side."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._running: dict[ShareGroup, Changes] = {}

    def renew(self, group: ShareGroup) -> None:
        """Have the target of a group computed if it is an older group's, and that is not under way."""
        if group.needs_target and group not in self._running:
            self._running[group] = Changes()
            self._hub.spawn(self._compute, group)

    def wait(self, group: ShareGroup, member_id: str) -> None:
        """Wait as a green thread until a new member has a target, or is gone.

        Raises CoordinatorNotAvailableError if it cannot be computed.
        """
        while group.lacks_target(member_id):
            self.renew(group)
            self._running[group].wait()
            if group not in self._running and group.lacks_target(member_id):
                raise CoordinatorNotAvailableError("The assignment of the group could not be computed.")

    def _compute(self, group: ShareGroup) -> None:
        changes = self._running[group]
        try:
            while group.needs_target:
                spec = group.spec()
                group.install(spec.epoch, ASSIGNING.run(assign, spec))
                changes.tell()
        except Exception:
            log.exception("the assignment of share group %r failed unexpectedly", group.name)
        finally:
            del self._running[group]
            changes.tell()
