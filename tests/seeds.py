"""What becomes of a simulation's seed, in a process of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any


def outcome(simulate: Callable[[int], Any], seed: int) -> tuple[int, int, str]:
    """Seed, messages, and the violation in words, empty for none."""
    try:
        return seed, simulate(seed).messages, ""
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        return seed, 0, f"{type(error).__name__}: {error} ({place})"
