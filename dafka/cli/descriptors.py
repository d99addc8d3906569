"""How many files and connections a daemon may have open at the same time."""

from __future__ import annotations

import resource
from contextlib import suppress

MOST = 65536


def take_descriptors() -> None:
    """Let this process have as many as the system allows it, of 65536. On most systems a process has 1024
    unless it asks for more, and a connection takes one. Java's programs do the same."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return
    with suppress(OSError, ValueError):  # macOS has a lower limit that it does not tell of
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
