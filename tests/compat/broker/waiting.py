"""Waiting for what no descriptor tells of."""

from __future__ import annotations

import time
from collections.abc import Callable

from compat.broker import Endpoint

WAIT = 100  # seconds, for what takes milliseconds


def until(condition: Callable[[], object]) -> None:
    """Wait until it is true."""
    ends = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < ends, "it never happens"
        time.sleep(0.002)


def wanted(endpoint: Endpoint, *topics: str) -> None:
    """Wait until an endpoint has heard that its peers want these topics, and no others."""
    until(lambda: sorted(map(str, endpoint.peer_subscriptions())) == sorted(topics))
