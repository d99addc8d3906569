"""Looking again and again, in a thread of its own: a broker that does not answer holds up nothing but it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dafka.broker.looking.watching import Look


class Looker:
    """Calls ``tell`` with each look, or with the error that came in its place, every ``interval`` seconds."""

    def __init__(
        self, look: Callable[[], Look], interval: float, tell: Callable[[Look | Exception], object]
    ) -> None:
        self._look = look
        self._interval = interval
        self._tell = tell
        self._ended = threading.Event()
        self._going_on = threading.Event()
        self._going_on.set()
        self._thread = threading.Thread(target=self._run, name="looker", daemon=True)

    def start(self) -> None:
        """Begin with a look."""
        self._thread.start()

    @property
    def paused(self) -> bool:
        """Whether it does not look for now."""
        return not self._going_on.is_set()

    def pause(self, paused: bool) -> None:
        """Look no more, or again."""
        if paused:
            self._going_on.clear()
        else:
            self._going_on.set()

    def end(self) -> None:
        """Begin no further look. One that waits for a broker is not waited for: its thread is a daemon."""
        self._ended.set()
        self._going_on.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                found: Look | Exception = self._look()
            except Exception as error:  # an odd answer may raise anything: the next look may be better
                found = error
            if not self._ended.is_set():
                self._tell(found)
            self._ended.wait(max(self._interval - (time.monotonic() - began), 0.0))
            self._going_on.wait()
