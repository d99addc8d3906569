"""How often members of the newer groups that are in the process of their broker send heartbeats.

They cost little there, and a member that sends them often hears of changes soon. Very many members share what
may be spent on them; otherwise heartbeats would be all that the broker gets to.
"""

from __future__ import annotations

from weakref import WeakSet

SHORTEST = 0.1  # seconds between two of one member
EACH_SECOND = 1000  # of all members together

_members: WeakSet[object] = WeakSet()


def pause(member: object, interval: float) -> float:
    """Seconds until the next heartbeat of a member whose broker wants one every ``interval`` seconds."""
    _members.add(member)
    return min(interval, max(SHORTEST, len(_members) / EACH_SECOND))


def end(member: object) -> None:
    """It sends no more."""
    _members.discard(member)
