"""Addresses of hosts that have a quota by their name, as in Kafka looked up once: when the quota is altered,
and when the broker starts."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

import gevent
import gevent.socket

from dafka.broker.quotas.entities import address

LOOKUP_SECONDS = 10.0
"""How long a name is looked up."""

LOOKUPS_SECONDS = 60.0
"""How long all names of a request, or of a broker that starts, are looked up; the others have no address."""


class Hosts:
    """The names that were looked up, and their addresses as sockets write them."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def address(self, name: str) -> str:
        """The address of an entity of this name; "" if none is known."""
        return address(name) or self._found.get(name, "")

    def look_up(self, names: Iterable[str]) -> None:
        """Look up those that are no addresses. Waits as a green thread, while the hub does other things."""
        ends = time.monotonic() + LOOKUPS_SECONDS
        for name in dict.fromkeys(names):
            if address(name):
                continue
            left = ends - time.monotonic()
            found = _looked_up(name, min(left, LOOKUP_SECONDS)) if left > 0 else ""
            if found:
                self._found[name] = found
            else:
                self._found.pop(name, None)

    def forget(self, name: str) -> None:
        """It has no quota any more."""
        self._found.pop(name, None)


def _looked_up(name: str, seconds: float) -> str:
    """A host's first address, one of IPv4 if it has any, as Java chooses; "" if it has none."""
    found = []
    with gevent.Timeout(seconds, False):
        try:
            found = gevent.socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)
        except (OSError, UnicodeError, ValueError):
            return ""
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return address(found[0][4][0]) if found else ""
