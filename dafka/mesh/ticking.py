"""The ticks of an endpoint's nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gevent

from dafka.hub.hub import Hub
from dafka.mesh import limits
from dafka.mesh.node import Node


class Ticking:
    """Calls ``tick`` of every node at its interval; ``call(tick, now)`` does it, ``done`` follows each round.

    Slice by slice, evenly over the interval: ten thousand HEADs at once would hold up the rest.
    """

    def __init__(self, hub: Hub, call: Callable[[Any, Any], Any], done: Callable[[], object]) -> None:
        self._hub = hub
        self._call = call
        self._done = done
        self._nodes: dict[float, dict[Node, None]] = {}  # by their interval
        self._greens: dict[float, gevent.Greenlet] = {}

    @property
    def intervals(self) -> list[float]:
        """The intervals in use, in seconds."""
        return list(self._nodes)

    def add(self, node: Node) -> None:
        """Tick a node from now on."""
        interval = node.tick_interval
        nodes = self._nodes.get(interval)
        if nodes is None:
            nodes = self._nodes[interval] = {}
            self._greens[interval] = self._hub.keep(self._tick, interval, nodes)
        nodes[node] = None

    def remove(self, node: Node) -> None:
        """Tick it no longer."""
        self._nodes.get(node.tick_interval, {}).pop(node, None)

    def close(self) -> None:
        """End."""
        current = gevent.getcurrent()
        for green in self._greens.values():
            if green is not current:
                green.kill(block=False)
        self._nodes.clear()
        self._greens.clear()

    def _tick(self, interval: float, ticked: dict[Node, None]) -> None:
        while ticked and self._nodes.get(interval) is ticked:
            nodes = list(ticked)
            size = limits.TICKED_AT_ONCE
            pause = interval / -(-len(nodes) // size)
            for start in range(0, len(nodes), size):
                gevent.sleep(pause)
                now = time.monotonic()
                for node in nodes[start : start + size]:
                    if node in ticked:
                        self._call(node.tick, now)
            self._done()
        if self._nodes.get(interval) is ticked:
            del self._nodes[interval], self._greens[interval]
