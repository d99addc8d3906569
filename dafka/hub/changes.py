"""Green threads that wait for a condition look at it again after each change."""

from __future__ import annotations

import gevent.event


class Changes:
    """Wakes every green thread that waits, each time something has changed. Hub side.

    ::

        while not there_is_room():
            self._room.wait()

    With ``clear()`` and ``wait()`` on an :class:`gevent.event.Event` that several green threads share,
    wake-ups get lost: while an event wakes its waiters it ignores ``set()``, so the first one of them, which
    has looked and waits again, does not hear of what the second one changes. Here each change wakes those
    that wait by then, with an event of its own. A change before :meth:`wait` is not kept: look first, then
    wait, without giving way in between.
    """

    def __init__(self) -> None:
        self._next: gevent.event.Event | None = None  # set by the next change; None: nobody waits

    def tell(self) -> None:
        """Something has changed. Does not wait."""
        waiting, self._next = self._next, None
        if waiting is not None:
            waiting.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the next change, at most ``timeout`` seconds; whether it came."""
        if self._next is None:
            self._next = gevent.event.Event()
        return bool(self._next.wait(timeout))
