"""A connection that is made again and again: the pauses between the attempts."""

from __future__ import annotations

from types import SimpleNamespace

import gevent
import pytest
from ports import free_port
from sockets.serving import LOOPBACK, Recorder, dealer
from timing import until

from dafka.sockets import connecting, limits


def test_pauses_double_up_to_a_bound_and_are_shortened_by_chance(monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        gevent.sleep(0.001)

    monkeypatch.setattr(connecting, "gevent", SimpleNamespace(sleep=sleep, getcurrent=gevent.getcurrent))
    with dealer(f"tcp://{LOOPBACK}:{free_port()}", Recorder()):
        until(lambda: len(pauses) >= 40)
    pause, shares = limits.RECONNECT_SECONDS, []
    for slept in pauses[:40]:
        pause = min(2 * pause, limits.RECONNECT_MOST_SECONDS)
        shares.append(slept / pause)
    assert all(0.5 <= share <= 1 for share in shares)
    assert max(shares) - min(shares) > 0.2
