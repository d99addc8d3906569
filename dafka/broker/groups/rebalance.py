"""How long a rebalance waits for its members to join.

A rebalance waits for the known members up to the longest of their rebalance timeouts, then continues without
those that are missing. It also waits, until their session timeout, for members that were given an id and have
not joined with it yet (``Members.pending``).

The first generation of an empty group is delayed by ``INITIAL_DELAY``, for members that start together; each
new member extends the delay, up to ``INITIAL_DELAY_MAX``. Kafka waits three seconds there, and longer if
members come, and so does this broker with ``group.initial.rebalance.delay.ms``. Some clients rely on such a
delay: they join before they know the partitions of their topics, would assign nothing, and join again when
they know them. If the ``poll`` of kafka-python ends during that second join, it never reads the answer and
stays without partitions and without heartbeats. The delay for a leader of that kind is
``INITIAL_DELAY_UNREADY``.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from dafka.broker.groups.members import Members
from dafka.broker.limits import (
    GROUP_MAX_SIZE,
    INITIAL_DELAY,
    INITIAL_DELAY_MAX,
    INITIAL_DELAY_UNREADY,
    REBALANCE_AGAIN,
    SESSION_TIMEOUT_MAX,
    SESSION_TIMEOUT_MIN,
)


class Terms(NamedTuple):
    """The broker's settings for classic groups, in seconds. ``size`` is how many members one may have.

    ``initial_delay`` is Kafka's ``group.initial.rebalance.delay.ms``; None: the delays of this module.
    """

    size: int = GROUP_MAX_SIZE
    initial_delay: float | None = None
    shortest_session: float = SESSION_TIMEOUT_MIN
    longest_session: float = SESSION_TIMEOUT_MAX


DEFAULTS = Terms()


class JoinPhase:
    """The part of a rebalance in which members join."""

    def __init__(self, initial_delay: float | None = None) -> None:
        self._delay = INITIAL_DELAY if initial_delay is None else initial_delay
        self._is_set = initial_delay is not None
        self._initial = False
        self._after = -inf  # not complete before, even if all have joined
        self._until = inf  # complete then, even if some are missing

    def begin(self, now: float, members: Members, *, initial: bool) -> None:
        """Begin a rebalance of these members; ``initial``: it leads to the first generation of the group."""
        self._initial = initial
        if initial and self._is_set:
            self._after = now + self._delay
            self._until = now + max(self._delay, members.rebalance_timeout)
        elif initial:
            first = next(iter(members.values()))  # the future leader
            delay = INITIAL_DELAY if first.request.knows_partitions else INITIAL_DELAY_UNREADY
            self._after = now + delay
            self._until = now + max(delay, INITIAL_DELAY_MAX)
        else:
            self._after = now
            self._until = now + members.rebalance_timeout

    def extend(self, now: float) -> None:
        """Extend the initial delay, because a new member has come and more may follow."""
        if self._initial:
            self._after = max(self._after, min(now + self._delay, self._until))

    def begin_again(self, now: float, members: Members) -> None:
        """Wait for one more rebalance timeout, of which a client may have said that it is 0."""
        self._until = now + max(members.rebalance_timeout, REBALANCE_AGAIN)

    def end(self) -> None:
        """End it: the members have joined, or none is left."""
        self._after, self._until, self._initial = -inf, inf, False

    def is_complete(self, now: float, members: Members) -> bool:
        """Whether all members have joined, or those that are missing were waited for long enough."""
        if now >= self._until:
            return True
        if now < self._after or any(member.join is None for member in members.values()):
            return False
        return self._initial or not members.pending

    def wake_at(self, now: float) -> float:
        """The next time at which it may become complete without another join."""
        return self._until if now >= self._after else self._after
