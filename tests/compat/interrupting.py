"""Ctrl-C at the end of one of the calls that some modules make: that is where Python looks for signals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any


def interrupt() -> None:
    """Python's own handler of Ctrl-C."""
    raise KeyboardInterrupt


class InterruptedCall:
    """A context in which the call of that number meets Ctrl-C when it ends, in this thread.

    Returns of ``handing_out`` are no such place: what they return is the program's by then. ``interrupted``
    says whether there were so many calls. ``handler``: what is called then.
    """

    def __init__(
        self,
        number: int,
        *modules: Any,
        handing_out: tuple[CodeType, ...] = (),
        handler: Callable[[], object] = interrupt,
    ) -> None:
        self.interrupted = False
        self._handler = handler
        self._left = number
        self._files = {module.__file__ for module in modules}
        self._handing_out = handing_out

    def __enter__(self) -> InterruptedCall:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: Any, event: str, argument: Any) -> None:
        handed_out = event == "return" and frame.f_code in self._handing_out
        if event not in ("return", "c_return") or frame.f_code.co_filename not in self._files or handed_out:
            return
        self._left -= 1
        if not self._left:
            self.interrupted = True
            sys.setprofile(None)
            self._handler()
