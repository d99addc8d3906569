"""Counting what is discarded, by cause, in a table that cannot grow without bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dafka.mesh import limits


class Discards(Counter[str]):
    """How many messages were discarded, by cause; causes beyond the limit are counted as ``other``."""

    def add(self, cause: str, count: int = 1) -> None:
        """``count`` more for ``cause``."""
        if cause not in self and len(self) >= limits.CAUSES:
            cause = "other"
        self[cause] += count

    def add_all(self, causes: Mapping[str, int]) -> None:
        """The counts of a round."""
        for cause, count in causes.items():
            self.add(cause, count)
