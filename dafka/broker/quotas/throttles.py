"""Throttles: how much clients used of their quotas, and how long each has to wait."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice

from dafka.broker.limits import THROTTLES_KEPT
from dafka.broker.quotas.allowance import BURST_SECONDS, Allowance
from dafka.broker.quotas.entities import NAME_OCTETS, Counting, counting
from dafka.broker.quotas.table import REQUESTED, QuotaTable

_LOOKED_AT = 16  # allowances, for one that can be forgotten
_Name = tuple[str, str | None, str | None]

REQUEST_SECONDS = 1.0
"""The longest wait for requests (``quota.window.size.seconds``): heartbeats must not come too late."""


class Throttles:
    """Of the clients of one broker. Hub side.

    At most THROTTLES_KEPT allowances are remembered. One of which everything has flowed out is forgotten for
    a new one; while there is none among those that have not been used for longest, all newcomers share one.
    So a client may have as many names as it likes, and loses no debt by it. Of a long name its beginning
    counts.
    """

    def __init__(self, table: QuotaTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self.clock = clock
        self._used: OrderedDict[_Name, tuple[Allowance, float]] = OrderedDict()  # with the quota's value
        self._shared: dict[str, Allowance] = {}  # by key: of those for whom there is no place

    def __bool__(self) -> bool:
        """Whether there is any quota."""
        return bool(self._table.quotas)

    def has(self, key: str) -> bool:
        """Whether anybody has a quota of this key."""
        return self._table.has(key)

    def use(self, key: str, user: str, client_id: str, amount: float) -> float:
        """A client has used so much: octets, or percents of a second. Returns the seconds to wait."""
        found = counting(self._table.quotas, key, user, client_id)
        if found is None:
            return 0.0
        now = self.clock()
        used = self._allowance(_name(key, found), found.limit, now)
        seconds = used.use(amount, found.limit, now)
        if key == REQUESTED:
            used.forgive(found.limit, BURST_SECONDS)
            return min(seconds, REQUEST_SECONDS)
        return seconds

    def owed(self, key: str, user: str, client_id: str) -> float:
        """The seconds that a client has to wait before it uses anything, in whatever connection."""
        found = counting(self._table.quotas, key, user, client_id)
        used = None if found is None else self._known(_name(key, found))
        return 0.0 if found is None or used is None else used.owed(found.limit, self.clock())

    def room(self, key: str, user: str, client_id: str) -> float:
        """The most that a client may use at once."""
        found = counting(self._table.quotas, key, user, client_id)
        if found is None:
            return float("inf")
        used = self._known(_name(key, found)) or Allowance()
        return used.room(found.limit, self.clock())

    def _known(self, name: _Name) -> Allowance | None:
        kept = self._used.get(name)
        if kept is not None:
            return kept[0]
        return self._shared.get(name[0]) if len(self._used) >= THROTTLES_KEPT else None

    def _allowance(self, name: _Name, limit: float, now: float) -> Allowance:
        kept = self._used.get(name)
        if kept is not None:
            used = kept[0]
        elif len(self._used) < THROTTLES_KEPT or self._forgets_one(now):
            used = Allowance()
        else:
            return self._shared.setdefault(name[0], Allowance())
        self._used[name] = used, limit
        self._used.move_to_end(name)
        return used

    def _forgets_one(self, now: float) -> bool:
        for name, (used, limit) in islice(self._used.items(), _LOOKED_AT):
            if used.is_empty(limit, now):
                del self._used[name]
                return True
        return False


def _name(key: str, found: Counting) -> _Name:
    user, client_id = (one and one[:NAME_OCTETS] for one in found.shared)
    return key, user, client_id
