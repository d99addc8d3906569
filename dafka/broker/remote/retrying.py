"""How often, and with which pauses, a request is repeated that brokers refuse for the moment."""

from __future__ import annotations

from collections.abc import Iterator

import gevent

from dafka.broker.remote.limits import RETRIES, RETRY_BACKOFF


def attempts() -> Iterator[bool]:
    """Begin one attempt after the other, with a pause before each but the first; whether it is the last."""
    for left in range(RETRIES, -1, -1):
        yield left == 0
        if left:
            gevent.sleep(RETRY_BACKOFF)
