"""Strategies of hypothesis for plans of faults; needs ``hypothesis``, which nothing else here does.

hypothesis shrinks what it finds by itself: a plan that fails becomes one of few faults of early calls.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis import strategies as st

from dafka.testing.torture.kinds import kinds_of
from dafka.testing.torture.plan import Fault, check_point

CALLS = 10
FAULTS = 5


def faults(
    points: Sequence[str],
    *,
    level: str = "everything",
    kinds: Collection[str] | None = None,
    calls: int = CALLS,
) -> st.SearchStrategy[Fault]:
    """Faults at some of ``points`` (``"produce orders-0"``, ``"commit billing"``, ...), within the first
    ``calls`` there. ``kinds``: by their names; None: those that chaos chooses by itself at that level.

    Raises ValueError for a point, a level or a kind that there is not, and for points that meet no such kind.
    """
    allowed = kinds_of(level)
    for kind in kinds or ():
        if kind not in allowed:
            raise ValueError(f"{kind!r} is not a fault of that level; there are {', '.join(allowed)}")
    if calls < 1:
        raise ValueError(f"calls are counted from 1 on, so {calls!r} of them have no faults")
    met = []
    for point in points:
        operation = check_point(point)
        for name, kind_ in allowed.items():
            wanted = name in kinds if kinds is not None else kind_.weight and operation not in kind_.planned
            if wanted and operation in kind_.operations:
                met.append((point, name))
    if not met:
        raise ValueError(f"no fault of that level or kinds at {', '.join(points) or 'no point'}")
    return st.builds(
        lambda where, call: Fault(where[0], call, where[1]), st.sampled_from(met), st.integers(1, calls)
    )


def plans(
    points: Sequence[str],
    *,
    level: str = "everything",
    kinds: Collection[str] | None = None,
    calls: int = CALLS,
    max_size: int = FAULTS,
) -> st.SearchStrategy[list[Fault]]:
    """Plans for ``chaos.plan()``: at most ``max_size`` faults, one of a call. The other arguments are
    those of :func:`faults`."""
    return st.lists(
        faults(points, level=level, kinds=kinds, calls=calls),
        max_size=max_size,
        unique_by=lambda fault: (fault.point, fault.call),
    )
