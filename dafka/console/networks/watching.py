"""Watching a mesh: an observer that is there while somebody looks, and the picture that it makes.

What was heard is taken when a browser asks, in the console's thread; the hub only queues it, and drops the
oldest if that becomes too much. Nothing is left in the mesh when nobody looks any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
from gevent.lock import BoundedSemaphore

from dafka.console import limits
from dafka.console.networks.picture import Picture
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
        self._observer: Observer | None = None
        self._picture = Picture()
        self._looking = BoundedSemaphore(1)
        self._looked = 0.0
        self._began = 0.0
        self._ending: Any = None
        self._keyed = False
        self._greeted: set[bytes] = set()

    def look(self) -> Picture | None:
        """The picture as it is now; None if there is no mesh. Raises OSError and DafkaError."""
        with self._looking:
            self._looked = time.monotonic()
            if self._observer is None:
                source = self._source()
                if source is None:
                    return None
                self._begin(source)
            observer = self._observer
            assert observer is not None
            seen = observer.seen()
            self._picture.see(seen)
            self._greet(observer, seen)
            for number, heard in enumerate(observer.poll(0.0)):
                self._picture.hear(heard)
                if not number % _TURN:
                    gevent.sleep(0)
            if self._began and self._looked - self._began > limits.MESH_ASKING_SECONDS:
                self._began = 0.0
                observer.stop_asking()
            self._picture.count(time.time())
            return self._picture

    def _greet(self, observer: Observer, seen: Seen) -> None:
        """Consumers tell their topics when they come, and who looks later has to ask. With keys only a store
        may."""
        if self._keyed:
            return
        consumers = {prefix[1:] for prefix in seen.prefixes if prefix[:1] == b"L"} - seen.here.keys()
        for consumer in sorted(consumers - self._greeted)[: limits.MESH_NODES]:
            observer.greet(consumer)
        self._greeted = consumers

    def metrics_of(self, address: bytes) -> dict[str, Any] | None:
        """Of a node in this process."""
        with self._looking:
            return None if self._observer is None else self._observer.metrics_of(address)

    def close(self) -> None:
        """Leave the mesh."""
        if self._ending is not None:
            self._ending.kill(block=False)
            self._ending = None
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.close()

    def _begin(self, source: Source) -> None:
        self._picture = Picture(source.own)
        self._keyed = source.options.keys is not None
        self._greeted = set()
        self._observer = observer = Observer(_HEARD, options=source.options)
        observer.ask_heads()
        self._began = time.monotonic()
        self._ending = gevent.spawn(self._end_when_idle)
        gevent.sleep(_FIRST_SECONDS)

    def _end_when_idle(self) -> None:
        while (left := self._looked + limits.MESH_IDLE_SECONDS - time.monotonic()) > 0:
            gevent.sleep(left)
        with self._looking:
            self._ending = None
            self.close()
