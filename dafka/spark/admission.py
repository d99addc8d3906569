"""Limits on how many of the available offsets one micro-batch takes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dafka.spark.option_values import TopicPartition

Offsets = dict[TopicPartition, int]


def available(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> int:
    """The number of offsets between start and end."""
    return sum(max(end - start.get(place, end), 0) for place, end in latest.items())


def limited(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], most: int) -> Offsets:
    """End offsets with at most about ``most`` offsets from ``start`` on, as Spark's own source shares them:
    each partition in proportion to what it has, rounded up where that is less than one offset."""
    total = available(start, latest)
    if total <= most:
        return dict(latest)
    ends = {}
    for place, end in latest.items():
        begin = start.get(place, end)
        share = most * max(end - begin, 0) / total
        ends[place] = (
            min(begin + (math.ceil(share) if share < 1 else math.floor(share)), end) if share else begin
        )
    return ends


class Holdback:
    """``minOffsetsPerTrigger``: wait for so many offsets, and no longer than ``longest`` seconds."""

    def __init__(self, least: int | None, longest: float) -> None:
        self._least = least
        self._longest = longest
        self._waiting_since: float | None = None

    def holds(self, offsets: int, now: float) -> bool:
        """Whether these few offsets are to be left for a later trigger. ``now`` in seconds, any clock."""
        if self._least is None or offsets >= self._least:
            self._waiting_since = None
            return False
        if self._waiting_since is None:
            self._waiting_since = now
        if now - self._waiting_since < self._longest:
            return True
        self._waiting_since = None
        return False
