"""The time that a broker goes by: all that depends on the time in it is given this, and asks nobody else.

It is two functions and nothing around them, so with the real time it costs what asking the system costs. A
test gives a broker others, and moves them.
"""

from __future__ import annotations

import time as system
from collections.abc import Callable
from typing import NamedTuple


class Clock(NamedTuple):
    """``time()``: seconds since the epoch, for what is stored: timestamps, retention, transactions, offsets.
    ``monotonic()``: seconds of a clock that never goes back, for what members of a group have to keep to."""

    time: Callable[[], float] = system.time
    monotonic: Callable[[], float] = system.monotonic


REAL = Clock()
"""The system's time."""
