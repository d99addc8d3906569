"""Messages for people while a broker does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENCE = 2.0  # seconds after which a person wonders


@contextmanager
def told_of_silence(servers: str, patience: float, say: Callable[[str], object]) -> Iterator[None]:
    """Tell once that ``servers`` have not answered yet, if the block takes long, and until when it goes on.

    The block waits ``patience`` seconds at most. ``say`` is called in a thread of its own.
    """
    until = time.strftime("%H:%M:%S", time.localtime(time.time() + patience))
    text = f"no answer from {servers} yet; trying until {until}, {patience:g} s in all"
    timer = threading.Timer(SILENCE, say, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
