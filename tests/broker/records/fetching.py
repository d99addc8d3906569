"""Fetches under way, for tests of what they wait for."""

from __future__ import annotations

import gevent
from broker.clients import MEGABYTE


def spawn_fetch(client, wanted, *, max_wait=100.0, min_bytes=1, max_bytes=50 * MEGABYTE, **options):
    """A fetch under way as a green thread of the hub, parked if there is nothing; ``get()`` it in the hub."""

    def start():
        green = gevent.spawn(
            client.core.fetch,
            wanted,
            max_wait=max_wait,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            **options,
        )
        gevent.sleep(0)
        return green

    return client.connection.hub.run(start)


def outcome(client, green):
    return client.connection.hub.run(green.get, timeout=100)
