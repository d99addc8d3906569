"""The loop of the hub: a timer of NaN seconds is refused, and all others end."""

from __future__ import annotations

import gevent
import gevent.event
import pytest

from dafka.hub.hub import get_hub

NAN = float("nan")

WAITS = {
    "sleep": lambda: gevent.sleep(NAN),
    "event": lambda: gevent.event.Event().wait(NAN),
    "result": lambda: gevent.event.AsyncResult().get(timeout=NAN),
    "timeout": lambda: gevent.Timeout(NAN).start(),
    "spawn_later": lambda: gevent.spawn_later(NAN, print),
    "join": lambda: gevent.joinall([gevent.spawn(gevent.sleep, 0.01)], timeout=NAN),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_wait_of_nan_seconds_is_refused(wait):
    with pytest.raises(ValueError, match="not nan"):
        get_hub().run(wait)


def test_other_timers_end_after_one_was_refused():
    def wait() -> int:
        greens = []
        for number in range(40):
            if number % 10 == 5:
                with pytest.raises(ValueError, match="nan"):
                    gevent.get_hub().loop.timer(NAN).start(print)
            greens.append(gevent.spawn_later(0.001 * (40 - number), int))
        return len(gevent.joinall(greens, timeout=60))

    assert get_hub().run(wait) == 40
