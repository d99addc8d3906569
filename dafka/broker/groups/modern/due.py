"""When a group of the newer protocols has another target.

A target takes as long to compute as there are members, so that one for each of many members that come one
after the other would take long. A large group has the next one some time after the last; a member that has
none until then is asked to come again when it should be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from dafka.broker.limits import MEMBERS_ASSIGNED_FOR_EACH, PAUSE_OF_A_MEMBER


class Due:
    """A group with a target; ``wake_at`` is the latest time for its next tick.

    ``epoch`` is the group's, ``assignment_epoch`` that of which it was when the target was computed.
    """

    members: Mapping[str, Any]
    target: Mapping[str, Any]

    def __init__(self, epoch: int) -> None:
        self.epoch = self.assignment_epoch = epoch
        self.wake_at = inf
        self.interval = 0.0
        """Seconds that pass between two targets at least; what changes meanwhile has one target."""
        self._assigned_at = -inf

    @property
    def needs_target(self) -> bool:
        """Whether the target was computed for an older epoch."""
        return self.epoch > self.assignment_epoch and bool(self.members)

    @property
    def assign_at(self) -> float:
        """Before this time there is no further target."""
        return self._assigned_at + max(self.interval, self.pause)

    @property
    def pause(self) -> float:
        """Seconds between two targets at least, for the sake of what they take."""
        count = len(self.members)
        return PAUSE_OF_A_MEMBER * count if count > MEMBERS_ASSIGNED_FOR_EACH else 0.0

    def _wake_for_target(self, now: float) -> None:
        """Have the next tick when a target is due that is put off."""
        if self.needs_target and now < self.assign_at:
            self.wake_at = min(self.wake_at, self.assign_at)

    def come_again(self, now: float, member_id: str, interval: float) -> float:
        """The seconds after which a member is to send the next heartbeat, which usually are ``interval``.

        One that has no target yet comes when it should have one: as long after that is due as the group has
        between two of them.
        """
        if self.pause == 0.0 or not self.lacks_target(member_id):
            return interval
        return min(interval, max(self.assign_at - now, 0.0) + self.pause / 2)

    def lacks_target(self, member_id: str) -> bool:
        """Whether this member is new, and no target has been computed since."""
        return self.needs_target and member_id in self.members and member_id not in self.target

    def is_target_due(self, now: float) -> bool:
        """Whether another target is to be computed now."""
        return self.needs_target and now >= self.assign_at
