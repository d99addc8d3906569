"""The next move of a member towards its target: what it keeps, gives up and gets.

A move is computed of what does not change, but is replaced. So that of a member with very many topics may be
computed beside the hub, before the heartbeat in which it is made. It counts then if everything is as it was.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from dafka.broker.groups.modern.assignment import NOTHING, Assignment, compared
from dafka.broker.groups.since import Since, lost, taken
from dafka.broker.interface.consumer_groups import Partitions

_NEVER: Since[UUID] = {}


class Position(NamedTuple):
    """What a member has and is to have, and since when; ``epoch`` is that of the target."""

    assigned: Assignment
    revoking: Assignment
    since: Since[UUID]
    target: Assignment
    epoch: int

    @property
    def topics(self) -> int:
        """How many topics are looked at for a move."""
        return len(self.assigned) + len(self.revoking) + len(self.target)

    def is_still(self, other: Position) -> bool:
        """Whether it is made of the same objects."""
        same = all(one is two for one, two in zip(self[:-1], other[:-1], strict=True))
        return same and self.epoch == other.epoch


class Move(NamedTuple):
    """The move of a member that has said what it owns (``owned``, None: as before).

    ``waits``: it still has what it is to give up, and stays where it is. ``has_given_up``: nothing of
    ``given_up`` is its own any more. ``since`` is without what it has given up. ``whole_since`` is
    since when it has all of its target, if all of ``missing`` is free; None if that has not been computed.
    """

    position: Position
    owned: Partitions | None
    waits: bool = False
    kept: Assignment = NOTHING
    given_up: Assignment = NOTHING
    missing: Assignment = NOTHING
    has_given_up: bool = False
    since: Since[UUID] = _NEVER
    whole_since: Since[UUID] | None = None


def move_of(position: Position, owned: Partitions | None, is_ahead: bool = False) -> Move:
    """The next move; ``is_ahead``: it is computed beside the hub, so that it may take longer."""
    assigned, revoking, since, target, epoch = position
    if revoking:
        if has_any(owned, revoking):
            return Move(position, owned, waits=True)
        since = lost(since, revoking)
    kept, given_up, missing = compared(assigned, target)
    has_given_up = not (given_up and has_any(owned, given_up))
    if given_up and has_given_up:
        since = lost(since, given_up)
    whole = None
    if is_ahead and has_given_up:
        whole = taken(since, missing, epoch) if missing else since
    return Move(position, owned, False, kept, given_up, missing, has_given_up, since, whole)


def has_any(owned: Partitions | None, partitions: Assignment) -> bool:
    """Whether a member that says what it owns (None: as before) has any of these partitions."""
    if owned is None:
        return True
    return any(not partitions.get(topic, frozenset()).isdisjoint(numbers) for topic, numbers in owned.items())
