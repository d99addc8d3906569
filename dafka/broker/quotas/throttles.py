"""Throttles: how much clients used of their quotas, and how long each has to wait."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice

from dafka.broker.limits import THROTTLES_KEPT
from dafka.broker.quotas.allowance import Rate, Tokens, Use, Windows
from dafka.broker.quotas.entities import NAME_OCTETS, Counting, address, counting
from dafka.broker.quotas.table import CONNECTED, MUTATED, REQUESTED, QuotaTable

_LOOKED_AT = 16  # allowances, for one that can be forgotten
_LONGEST = (2**31 - 1) / 1000  # seconds that a response can tell
_Name = tuple[str, str | None, str | None]
_Allowance = Rate | Tokens

DEFAULT_WINDOWS = Windows()
_SHORT = (REQUESTED, CONNECTED)
"""Those for which nobody waits longer than a window."""


class Throttles:
    """The throttles of the clients of one broker. Hub side.

    At most THROTTLES_KEPT allowances are remembered. One of which everything has flowed out is forgotten for
    a new one; while there is none among those that have not been used for longest, all newcomers share one.
    So a client may have as many names as it likes, and loses no debt by it. Of a long name its beginning
    counts.
    """

    def __init__(
        self,
        table: QuotaTable,
        clock: Callable[[], float] = time.monotonic,
        windows: Windows = DEFAULT_WINDOWS,
        controller_windows: Windows = DEFAULT_WINDOWS,
    ) -> None:
        """``controller_windows``: for changes of topics."""
        self._table = table
        self._windows = windows
        self._controller_windows = controller_windows
        self.clock = clock
        self.waits = 0  # that were told, since the start
        self._used: OrderedDict[_Name, tuple[_Allowance, float]] = OrderedDict()  # with the quota's value
        self._shared: dict[str, _Allowance] = {}  # by key: of the clients without a place of their own

    def __bool__(self) -> bool:
        """Whether there is any quota."""
        return bool(self._table.quotas)

    def has(self, key: str) -> bool:
        """Whether anybody has a quota of this key."""
        return self._table.has(key)

    def use(self, key: str, user: str, client_id: str, amount: float) -> float:
        """A client has used so much: octets, percents of a second, or partitions.

        Returns the seconds to wait, for requests at most a window: heartbeats must not come too late.
        """
        found = counting(self._table.quotas, key, user, client_id)
        if found is None:
            return 0.0
        now = self.clock()
        seconds = self._allowance(key, found, now).use(amount, found.limit, self._windows_of(key), now)
        return self._told(key, seconds)

    def use_if_within(self, key: str, user: str, client_id: str, amount: float) -> Use:
        """A client uses so much if its quota has it."""
        found = counting(self._table.quotas, key, user, client_id)
        return Use(True, 0.0) if found is None else self._use_if_within(key, found, amount)

    def connects(self, host: str) -> float:
        """Somebody connects from this address. The seconds until it may not, at most a window; 0: it may."""
        known = address(host)
        limit = self._table.of_address(known).get(CONNECTED)
        if limit is None:
            return 0.0
        used, seconds = self._use_if_within(CONNECTED, Counting(limit, (known, None)), 1.0)
        return 0.0 if used else seconds

    def owed(self, key: str, user: str, client_id: str) -> float:
        """The seconds that a client has to wait before it uses anything, in whatever connection."""
        found = counting(self._table.quotas, key, user, client_id)
        used = None if found is None else self._known(_name(key, found))
        if found is None or used is None:
            return 0.0
        return self._bounded(key, used.owed(found.limit, self._windows_of(key), self.clock()))

    def room(self, key: str, user: str, client_id: str) -> float:
        """The most that a client can use at once, if it has used nothing before."""
        found = counting(self._table.quotas, key, user, client_id)
        return float("inf") if found is None else found.limit * self._windows_of(key).before

    def _use_if_within(self, key: str, found: Counting, amount: float) -> Use:
        now = self.clock()
        use = self._allowance(key, found, now).use_if_within(amount, found.limit, self._windows_of(key), now)
        return Use(use.used, self._told(key, use.seconds))

    def _told(self, key: str, seconds: float) -> float:
        self.waits += seconds > 0
        return self._bounded(key, seconds)

    def _bounded(self, key: str, seconds: float) -> float:
        """With a quota close to 0 the time to wait is without a bound."""
        return min(seconds, self._windows.seconds if key in _SHORT else _LONGEST)

    def _windows_of(self, key: str) -> Windows:
        return self._controller_windows if key == MUTATED else self._windows

    def _known(self, name: _Name) -> _Allowance | None:
        kept = self._used.get(name)
        if kept is not None:
            return kept[0]
        return self._shared.get(name[0]) if len(self._used) >= THROTTLES_KEPT else None

    def _allowance(self, key: str, found: Counting, now: float) -> _Allowance:
        name = _name(key, found)
        kept = self._used.get(name)
        used: _Allowance
        if kept is not None:
            used = kept[0]
        elif len(self._used) < THROTTLES_KEPT or self._forgets_one(now):
            used = Tokens() if key == MUTATED else Rate()
        else:
            return self._shared.setdefault(key, Tokens() if key == MUTATED else Rate())
        self._used[name] = used, found.limit
        self._used.move_to_end(name)
        return used

    def _forgets_one(self, now: float) -> bool:
        for name, (used, limit) in islice(self._used.items(), _LOOKED_AT):
            if used.is_empty(limit, self._windows_of(name[0]), now):
                del self._used[name]
                return True
        return False


def _name(key: str, found: Counting) -> _Name:
    user, client_id = (one and one[:NAME_OCTETS] for one in found.shared)
    return key, user, client_id
