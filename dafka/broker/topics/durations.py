"""Durations as settings have them, in ISO 8601."""

from __future__ import annotations

import re

_DURATION = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:[.,]\d{1,9})?)S)?)?", re.IGNORECASE
)


def seconds_of(duration: str) -> float:
    """The seconds of a duration (PnDTnHnMn.nS). Raises ValueError."""
    found = _DURATION.fullmatch(duration)
    if found is None or not any(found.groups()):
        raise ValueError(f"a duration is PnDTnHnMn.nS, not {duration!r}")
    days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
