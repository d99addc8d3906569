"""Throttles: what clients have used of their quotas, and how long each has to wait."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from dafka.broker.limits import THROTTLES_KEPT
from dafka.broker.quotas.allowance import BURST_SECONDS, Allowance
from dafka.broker.quotas.entities import NAME_OCTETS, counting
from dafka.broker.quotas.table import REQUESTED, QuotaTable

REQUEST_SECONDS = 1.0
"""The longest wait for requests (``quota.window.size.seconds``): heartbeats must not come too late."""


class Throttles:
    """Of the clients of one broker. Hub side.

    At most THROTTLES_KEPT allowances are remembered. The one that has not been used for longest is forgotten
    first: clients may have as many names as they like. Of a long name its beginning counts.
    """

    def __init__(self, table: QuotaTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self.clock = clock
        self._used: OrderedDict[tuple[str, str | None, str | None], Allowance] = OrderedDict()

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
        user_of, client_of = (one and one[:NAME_OCTETS] for one in found.shared)
        name = key, user_of, client_of
        used = self._used.get(name)
        if used is None:
            if len(self._used) >= THROTTLES_KEPT:
                self._used.popitem(last=False)
            used = self._used[name] = Allowance()
        self._used.move_to_end(name)
        seconds = used.use(amount, found.limit, self.clock())
        if key == REQUESTED:
            used.forgive(found.limit, BURST_SECONDS)
            return min(seconds, REQUEST_SECONDS)
        return seconds

    def burst(self, key: str, user: str, client_id: str) -> float:
        """The most that a client who has used nothing may use at once."""
        found = counting(self._table.quotas, key, user, client_id)
        return float("inf") if found is None else found.limit * BURST_SECONDS
