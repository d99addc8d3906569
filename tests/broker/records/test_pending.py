"""Appends that wait for their commit."""

from __future__ import annotations

import gevent
import pytest

from dafka.broker.limits import PENDING_BYTES, WIDE_PRODUCE
from dafka.broker.records.pending import PendingAppends
from dafka.hub.hub import get_hub


def test_it_counts_bytes_and_appends():
    pending = PendingAppends()
    pending.add(10)
    pending.add(PENDING_BYTES)
    assert (pending.bytes, pending.count) == (PENDING_BYTES + 10, 2)
    assert (pending.too_large, pending.too_many) == (True, False)
    pending.settle(PENDING_BYTES)
    assert (pending.bytes, pending.count, pending.too_large) == (10, 1, False)
    for _ in range(WIDE_PRODUCE):
        pending.add(0)
    assert pending.too_many


@pytest.mark.parametrize("size", [PENDING_BYTES + 1, 1])
def test_draining_waits_until_all_is_settled(size: int):
    def drain() -> list[str]:
        pending, seen = PendingAppends(), []
        pending.add(size)
        pending.add(1)
        green = gevent.spawn(lambda: (pending.drain(), seen.append("drained")))
        gevent.sleep(0)
        pending.settle(size)
        gevent.sleep(0)
        gevent.sleep(0)
        seen.append("one left")
        pending.settle(1)
        green.join(100)
        return seen

    assert get_hub().run(drain) == ["one left", "drained"]
