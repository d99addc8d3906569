"""Ctrl-C while modules are imported: nothing has begun that needs cleaning up, and nothing is to be said."""

from __future__ import annotations

import signal


class EndedByCtrlC:
    """Ctrl-C in the block ends the process at once and silently.

    Not where another handler is installed, the process was started with SIGINT ignored, or in another thread.
    """

    def __enter__(self) -> None:
        self._changed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._changed:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            except ValueError:  # in another thread than the main one
                self._changed = False

    def __exit__(self, *exc_info: object) -> None:
        if self._changed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
