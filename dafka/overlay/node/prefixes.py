"""The prefixes that an endpoint wants: those of its subscribers, and those that it forwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from dafka.overlay.errors import TooManyPrefixes
from dafka.overlay.filters import Filter, reduced
from dafka.overlay.limits import FILTER_OCTETS, MOST_PREFIXES


class Prefixes:
    """Bounded by what other nodes take in a filter. Hub side."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._octets = 0
        self._of: dict[Hashable, Filter] = {}

    @property
    def filter(self) -> Filter:
        """The wanted prefixes."""
        return reduced(self._counts)

    def replace(self, owner: Hashable, wanted: Filter) -> None:
        """The prefixes that somebody wants from now on; nothing: it is forgotten.

        Raises :class:`TooManyPrefixes`, and nothing is changed then.
        """
        before = self._of.get(owner, ())
        gone, new = set(before), set(wanted)
        gone, new = gone - new, new - gone
        added = [prefix for prefix in new if prefix not in self._counts]
        dropped = [prefix for prefix in gone if self._counts[prefix] == 1]
        count = len(self._counts) + len(added) - len(dropped)
        octets = self._octets + sum(map(len, added)) - sum(map(len, dropped))
        if added and (count > MOST_PREFIXES or octets > FILTER_OCTETS):
            raise TooManyPrefixes(
                f"{count} prefixes of {octets} octets, where an endpoint has at most {MOST_PREFIXES} of"
                f" {FILTER_OCTETS}; shorter ones cover more"
            )
        self._octets = octets
        self._counts.update(new)
        self._counts.subtract(gone)
        for prefix in dropped:
            del self._counts[prefix]
        if wanted:
            self._of[owner] = wanted
        else:
            self._of.pop(owner, None)
