"""The event loop of the hub, which refuses a timer of NaN seconds.

libev keeps timers in a heap. NaN compares with nothing, so one timer of it takes the order out of that heap,
and timers of others stay in it when their time has come. Times are checked where they enter
(:mod:`dafka.hub.waits`); this is for one that was forgotten, and costs 0.15 microseconds for a timer.
"""

from __future__ import annotations

from typing import Any

from gevent.hub import Hub, set_hub


def begin_loop() -> Any:
    """Give the calling thread such a loop, before it uses gevent for the first time; returns it."""
    hub = _HubOfNumbers()
    set_hub(hub)
    return hub.loop


class _HubOfNumbers(Hub):  # type: ignore[misc]
    @property
    def loop_class(self) -> type:
        return _of_numbers(super().loop_class)


def _of_numbers(loop: Any) -> type:
    class LoopOfNumbers(loop):  # type: ignore[misc]
        def timer(self, after: float, *args: Any, **kwargs: Any) -> Any:
            if after != after:
                raise ValueError("a time to wait is a number of seconds, not nan")
            return super().timer(after, *args, **kwargs)

    return LoopOfNumbers
