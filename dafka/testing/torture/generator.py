"""Faults from a seed.

Whether a call meets a fault, and which, is computed from the seed, the point and the number of the call
there, and from nothing else: neither the time, nor what happens at other points. A program that makes the
same calls meets the same faults, on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from dafka.testing.torture.kinds import KINDS, kinds_of
from dafka.testing.torture.plan import Faults

RATE = 0.1  # of the calls that meet a fault

IN_A_ROW = 3
"""Calls that meet faults at one point one after the other, at most; the next one meets none.

Clients give up after a number of attempts or a time: Kafka's Java client, confluent-kafka, kafka-python and
aiokafka repeat a Produce for two minutes and a commit for one, with pauses of 0.1 to 1 s. Three attempts in
vain are far from that, so a program whose client has its default settings never sees more than a delay of
what may be retried.
"""

_SPAN = float(1 << 64)


class Generator(Faults):
    """The faults of a seed. ``rate``: the part of calls that meet one, 0 to 1. ``weights``: how often a kind
    is chosen, compared with others, instead of its own weight; 0 is never. Raises ValueError."""

    def __init__(
        self,
        seed: int,
        level: str = "everything",
        *,
        rate: float = RATE,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        if type(seed) is not int:
            raise ValueError(f"a seed is an int, not {seed!r}")
        if not 0 <= rate <= 1:  # nor NaN
            raise ValueError(f"a rate is between 0 and 1, not {rate!r}")
        allowed = kinds_of(level)
        for name, weight in (weights or {}).items():
            if name not in allowed:
                there = "not a fault of that level" if name in KINDS else "not a fault"
                raise ValueError(f"{name!r} is {there}; there are {', '.join(allowed)}")
            if not 0 <= weight < float("inf"):
                raise ValueError(f"a weight is 0 or more, not {weight!r}")
        self.seed = seed
        self.level = level
        self.rate = rate
        self._key = blake2b(str(seed).encode()).digest()
        by_operation: dict[str, list[tuple[str, float]]] = {}
        for name, kind in allowed.items():
            weight = (weights or {}).get(name, kind.weight)
            for operation in kind.operations:
                if weight and operation not in kind.planned:
                    by_operation.setdefault(operation, []).append((name, weight))
        self._kinds = by_operation

    def kind(self, point: str, call: int) -> str | None:
        operation = point.partition(" ")[0]
        choice = self._kinds.get(operation)
        if not choice or not self._hit(point, call):
            return None
        row = call if self.rate == 1 else 1  # hits that end with this one
        while row < call and self._hit(point, call - row):
            row += 1
        if row % (IN_A_ROW + 1) == 0:
            return None
        left = self._random(point, call, "kind") * sum(weight for _, weight in choice)
        for name, weight in choice:
            left -= weight
            if left < 0:
                return name
        return choice[-1][0]

    def _hit(self, point: str, call: int) -> bool:
        return self._random(point, call, "hit") < self.rate

    def _random(self, point: str, call: int, what: str) -> float:
        """A number from 0 to 1, the same each time."""
        digest = blake2b(f"{what} {call} {point}".encode(), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "big") / _SPAN

    def __repr__(self) -> str:
        return f"chaos({self.seed}, level={self.level!r})"
