"""SIGHUP of a service: files are read again, as daemons do; a terminal that is closed ends it as Ctrl-C does.

The kernel and shells send the same signal for both. After a hangup the process has no terminal any more, so
that is looked at.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def on_hangup(read_again: Callable[[], object]) -> None:
    """Call ``read_again()`` for each SIGHUP, or raise KeyboardInterrupt if the terminal has gone.

    A process that was started with SIGHUP ignored, as by nohup, outlives its terminal.
    """
    if not hasattr(signal, "SIGHUP"):
        return
    ends_with_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()

    def handle(*_: object) -> None:
        if ends_with_terminal and not _has_terminal():
            raise KeyboardInterrupt
        read_again()

    signal.signal(signal.SIGHUP, handle)


def _has_terminal() -> bool:
    """Whether the process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True
