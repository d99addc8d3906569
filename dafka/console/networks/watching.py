"""Watching a mesh: an observer that is there while somebody looks, and the picture that it makes.

Heard messages are taken when a browser asks, in the console's thread; the hub only queues it, and drops the
oldest if that becomes too much. Nothing is left in the mesh when nobody looks any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gevent

from dafka.console import limits
from dafka.console.networks.picture import Picture
from dafka.console.networks.visit import Visit
from dafka.mesh.observer import Observer, Seen
from dafka.mesh.options import EndpointOptions

_HEARD = [bytes([octet]) for octet in b"HKFTWLCG"]  # all but records
_TURN = 500  # of what was heard, before others of the console's thread go on
_FIRST_SECONDS = 1.0  # that the first look waits for what the mesh says


class Source(NamedTuple):
    """A mesh to look at. ``own``: names of addresses that are known."""

    options: EndpointOptions
    own: dict[bytes, str] = {}  # noqa: RUF012 - never changed


class MeshWatch:
    """``source()`` says which mesh; None while there is none."""

    def __init__(self, source: Callable[[], Source | None]) -> None:
        self._source = source
        self._visit = Visit(self._join, self._ask)
        self._picture = Picture()
        self._began = 0.0
        self._keyed = False
        self._greeted: set[bytes] = set()

    def look(self) -> Picture | None:
        """The picture as it is now; None if there is no mesh. Raises OSError and DafkaError."""
        with self._visit.look() as observer:
            if observer is None:
                return None
            seen = observer.seen()
            self._picture.see(seen)
            self._greet(observer, seen)
            for number, heard in enumerate(observer.poll(0.0)):
                self._picture.hear(heard)
                if not number % _TURN:
                    gevent.sleep(0)
            if self._began and time.monotonic() - self._began > limits.MESH_ASKING_SECONDS:
                self._began = 0.0
                observer.stop_asking()
            self._picture.count(time.time())
            return self._picture

    def metrics_of(self, address: bytes) -> dict[str, Any] | None:
        """The metrics of a node in this process."""
        with self._visit.joined() as observer:
            return None if observer is None else observer.metrics_of(address)

    def close(self) -> None:
        """Leave the mesh."""
        self._visit.close()

    def _join(self) -> Observer | None:
        source = self._source()
        if source is None:
            return None
        self._picture = Picture(source.own)
        self._keyed = source.options.keys is not None
        self._greeted = set()
        return Observer(_HEARD, options=source.options)

    def _ask(self, observer: Observer) -> None:
        """Ask the stores what they have, and wait for the first answers."""
        observer.ask_heads()
        self._began = time.monotonic()
        gevent.sleep(_FIRST_SECONDS)

    def _greet(self, observer: Observer, seen: Seen) -> None:
        """Ask consumers for their topics, which they tell by themselves only when they join. With keys only a
        store may ask."""
        if self._keyed:
            return
        consumers = {prefix[1:] for prefix in seen.prefixes if prefix[:1] == b"L"} - seen.here.keys()
        for consumer in sorted(consumers - self._greeted)[: limits.MESH_NODES]:
            observer.greet(consumer)
        self._greeted = consumers
