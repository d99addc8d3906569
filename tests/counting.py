"""How much work something is, as a count that no other load on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(function: Callable[..., Any], *arguments: Any, **options: Any) -> int:
    """How many lines of Python are run by calling ``function``, in this thread."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        function(*arguments, **options)
    finally:
        sys.settrace(before)
    return count
