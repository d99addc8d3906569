"""A line of the table: the measurement, its reference, and the wanted ratio."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from processes import Figures, StoodStillError, run

REFERENCE_SECONDS = 60
REFERENCE_ATTEMPTS = 3

Figure = Callable[[int], float]  # from the number of the turn to what was measured in it


def rate(value: float) -> str:
    return f"{value:,.0f}/s"


def milliseconds(value: float) -> str:
    return f"{1000 * value:,.2f} ms"


def microseconds(value: float) -> str:
    return f"{1e6 * value:,.0f} us"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


class Line(NamedTuple):
    """``unit`` formats the figures; ``beside`` says what the reference is; at most one bound is set:
    ``least_ratio`` or ``most_ratio`` of figure to reference, or ``most`` or ``least`` for the figure itself.
    """

    name: str
    unit: Callable[[float], str]
    measure: Figure
    reference: Figure | None
    beside: str
    least_ratio: float | None = None
    most: float | None = None
    least: float | None = None
    most_ratio: float | None = None

    @property
    def wanted(self) -> str:
        if self.least_ratio is not None:
            return f"ratio >= {self.least_ratio:g}"
        if self.most_ratio is not None:
            return f"ratio <= {self.most_ratio:g}"
        if self.least is not None:
            return f">= {self.unit(self.least)}"
        return "" if self.most is None else f"<= {self.unit(self.most)}"

    def met(self, figure: float, ratio: float | None) -> str:
        """Whether the aim is met, as a column of the table says it: empty without an aim, "?" without a
        reference."""
        if ratio is None and (self.least_ratio or self.most_ratio) is not None:
            return "?"  # the reference is not there
        if ratio is not None and self.least_ratio is not None:
            return "yes" if ratio >= self.least_ratio else "NO"
        if ratio is not None and self.most_ratio is not None:
            return "yes" if ratio <= self.most_ratio else "NO"
        if self.least is not None:
            return "yes" if figure >= self.least else "NO"
        return "" if self.most is None else "yes" if figure <= self.most else "NO"


def measurement(*programs: Callable[..., Figures]) -> Callable[[int], Figures]:
    """The programs' figures one after the other; several lines may ask for them, they are run once a turn."""

    @lru_cache(maxsize=1)
    def figures(turn: int) -> Figures:
        return run(*programs)

    return figures


def reference_measurement(*programs: Callable[..., Figures]) -> Callable[[int], Figures]:
    """As :func:`measurement`, for kafka-python's classes: a run that stands still is repeated, and said.

    About one in a hundred of kafka-python's consumers (3.0.12) does not ask for its topic when it starts: its
    metadata has no topics until it is five minutes old.
    """

    @lru_cache(maxsize=1)
    def figures(turn: int) -> Figures:
        for _ in range(REFERENCE_ATTEMPTS - 1):
            try:
                return run(*programs, seconds=REFERENCE_SECONDS)
            except StoodStillError as error:
                print(f"bench: kafka-python stands still, again: {error}", file=sys.stderr)
        return run(*programs, seconds=REFERENCE_SECONDS)

    return figures


def pick(figures: Callable[[int], Figures], position: int = 0) -> Figure:
    return lambda turn: figures(turn)[position]
