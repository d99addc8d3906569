"""The ticks of an endpoint's nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import gevent

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.mesh import limits
from dafka.mesh.node import Node


class Ticking:
    """Calls ``tick`` of every node at its interval; ``call(tick, now)`` does it, ``done`` follows each round.

    Slice by slice, evenly over the interval: ten thousand HEADs at once would hold up the rest. A node is
    passed over while it sleeps (:attr:`~dafka.mesh.node.Node.sleeps_until`).
    """

    def __init__(self, hub: Hub, call: Callable[[Any, Any], Any], done: Callable[[], object]) -> None:
        self._hub = hub
        self._call = call
        self._done = done
        self._nodes: dict[float, dict[Node, None]] = {}  # by their interval
        self._listened: dict[float, set[bytes]] = {}  # topics that somebody has subscribed to, by interval
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

    def rouse(self, topic: bytes) -> None:
        """Have the nodes that send of ``topic`` told that somebody listens; of all topics if it is empty.

        In the next round, once for all who have come until then: there may be many of both.
        """
        for interval in self._nodes:
            topics = self._listened.setdefault(interval, set())
            topics.add(topic if len(topics) < limits.LISTENED_TOPICS else b"")

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
            now = time.monotonic()
            topics = self._listened.pop(interval, None)
            if topics is not None:
                self._rouse(ticked, topics, now)
            nodes = [node for node in ticked if node.sleeps_until <= now + interval]
            size = limits.TICKED_AT_ONCE
            pause = interval / max(1, -(-len(nodes) // size))
            for start in range(0, max(1, len(nodes)), size):
                gevent.sleep(pause)
                now = time.monotonic()
                # A node with very many partitions has some milliseconds to do.
                for node in Pace().over(nodes[start : start + size], every=1):
                    if node in ticked:
                        self._call(node.tick, now)
            self._done()
        if self._nodes.get(interval) is ticked:
            del self._nodes[interval], self._greens[interval]

    def _rouse(self, nodes: Iterable[Node], topics: set[bytes], now: float) -> None:
        for node in Pace().over(list(nodes)):
            topic = node.listened_topic
            if topic is not None and (topic in topics or b"" in topics) and not node.left:
                self._call(node.roused, now)
