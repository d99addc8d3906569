"""Discarded messages: counted by cause, and logged once a minute for each cause."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

from dafka.zper import limits

log = logging.getLogger(__name__)


class Discarded:
    """Counts and logs what clients sent in vain. Causes are a few words of ours, never a client's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.counted: Counter[str] = Counter()
        self._clock = clock
        self._logged: dict[str, tuple[float, int]] = {}  # when, and what was counted then

    def report(self, cause: str, detail: str, count: int = 1, level: int = logging.WARNING) -> None:
        """Count ``count`` of a cause, and log ``detail`` unless a line about it was logged in this minute."""
        self.counted[cause] += count
        now = self._clock()
        at, before = self._logged.get(cause, (-limits.REASON_SECONDS, 0))
        if now < at + limits.REASON_SECONDS:
            return
        counted = self.counted[cause]
        self._logged[cause] = now, counted
        more = counted - before - count
        log.log(level, "%s%s", detail, f" ({more} more since the last line about {cause!r})" if more else "")
