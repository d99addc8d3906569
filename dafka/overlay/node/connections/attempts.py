"""Waiting for the outcome of an attempt to connect to an address."""

from __future__ import annotations

import gevent
import gevent.event

Where = tuple[str, int]


class Attempts:
    """Hub side."""

    def __init__(self) -> None:
        self._waiting: dict[Where, list[gevent.event.AsyncResult]] = {}

    def expect(self, where: Where) -> gevent.event.AsyncResult:
        """The next outcome; to be given to :meth:`wait`."""
        result = gevent.event.AsyncResult()
        self._waiting.setdefault(where, []).append(result)
        return result

    def wait(self, where: Where, result: gevent.event.AsyncResult, timeout: float | None) -> bool:
        """Whether the two are peers; False after ``timeout`` seconds."""
        try:
            return bool(result.get(timeout=timeout))
        except gevent.Timeout:
            return False
        finally:
            waiting = self._waiting.get(where, [])
            if result in waiting:
                waiting.remove(result)
                if not waiting:
                    del self._waiting[where]

    def resolve(self, where: Where, outcome: bool) -> None:
        """An attempt has an outcome."""
        for result in self._waiting.pop(where, []):
            result.set(outcome)

    def close(self) -> None:
        """Resolve all waiting results: nothing is attempted any more."""
        for where in list(self._waiting):
            self.resolve(where, False)
