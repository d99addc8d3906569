"""Times to wait and intervals, as callers give them: checked once, where they enter.

NaN passes every comparison: what it bounds never ends. It also takes the order out of the heap that an event
loop keeps its timers in, so that timers of others, in the whole process, never end either. So it is refused
before it comes anywhere near one; :class:`dafka.hub.hub.Hub` has a loop that refuses it as well.
"""

from __future__ import annotations

from math import inf
from numbers import Real

LONGEST = 1e9
"""Seconds, some thirty years: the longest interval, and for ever where a number is needed."""


def wait_of(timeout: object, name: str = "timeout", unit: str = "seconds") -> float | None:
    """How long to wait: None for ever, which infinity means too; not at all for what is below 0.

    Raises:
        TypeError: it is no number; a bool is none.
        ValueError: it is NaN.
    """
    if timeout is None:
        return None
    wait = _number(timeout, name, unit, " or None")
    return None if wait == inf else wait


def bounded_wait(timeout: object, name: str = "timeout", unit: str = "seconds") -> float:
    """:func:`wait_of` where there has to be a number: infinity is LONGEST, and None is refused."""
    return min(_number(timeout, name, unit), LONGEST)


def interval_of(
    interval: object, name: str, *, least: float = 0.0, above: bool = False, most: float = LONGEST
) -> float:
    """A number of seconds from ``least`` (``above`` it: a larger one) to ``most``.

    Raises:
        TypeError: it is no number.
        ValueError: it is not in these bounds, or NaN.
    """
    seconds = _number(interval, name, "seconds")
    if not (least < seconds if above else least <= seconds) or seconds > most:
        bounds = f"above {least:g}" if above else f"of {least:g} or more"
        bounds += f", at most {most:g}" if most < inf else ""
        raise ValueError(f"{name} is a number of seconds {bounds}, not {interval!r:.100}")
    return seconds


def _number(value: object, name: str, unit: str, otherwise: str = "") -> float:
    kind = type(value)
    if kind is not float and kind is not int and (kind is bool or not isinstance(value, Real)):
        raise TypeError(f"{name} is a number of {unit}{otherwise}, not {kind.__name__}: {value!r:.100}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:  # an int beyond all floats
        number = inf if value > 0 else -inf  # type: ignore[operator]
    if number != number:
        raise ValueError(f"{name} is a number of {unit}{otherwise}, not {value!r}")
    return number
