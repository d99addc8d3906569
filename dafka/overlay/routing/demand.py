"""The demand of all others: how often each prefix occurs in their filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dafka.overlay.filters import Filter, reduced
from dafka.overlay.limits import MOST_TOLD
from dafka.overlay.wire.leaves import EVERYTHING


class Demand:
    """``changes`` counts how often it was changed."""

    def __init__(self) -> None:
        self.changes = 0
        self._counts: Counter[bytes] = Counter()

    def __len__(self) -> int:
        return len(self._counts)

    def counts(self, prefix: bytes) -> int:
        """How many filters have exactly this prefix."""
        return self._counts[prefix]

    def replace(self, before: Filter, after: Filter) -> None:
        """One filter takes the place of another."""
        if before == after:
            return
        self.changes += 1
        gone, new = set(before), set(after)
        counts = self._counts
        counts.update(new - gone)
        for prefix in gone - new:
            left = counts[prefix] - 1
            if left:
                counts[prefix] = left
            else:
                del counts[prefix]

    def without(self, filters: Iterable[Filter]) -> Filter:
        """The prefixes wanted besides these filters. If that would be a long list: everything."""
        counts = self._counts
        own: Counter[bytes] = Counter()
        for filter in filters:
            own.update(set(filter))
        alone = [prefix for prefix, count in own.items() if counts[prefix] == count]
        if len(counts) - len(alone) > MOST_TOLD:
            return EVERYTHING
        return reduced(counts.keys() - set(alone))
