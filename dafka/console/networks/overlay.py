"""Watching an overlay: an endpoint of the console that is there while somebody looks, and asks who is peered
with whom. It passes nothing on and publishes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent.lock import BoundedSemaphore

from dafka.console import limits
from dafka.overlay.node.endpoint import Endpoint
from dafka.overlay.topology import Observer, as_json

_ANSWER_SECONDS = 1.0  # that peers may take to answer; who does not is shown all the same


class OverlayWatch:
    """``join()`` makes the endpoint, which the watch closes."""

    def __init__(self, join: Callable[[], Endpoint]) -> None:
        self._join = join
        self._endpoint: Endpoint | None = None
        self._looking = BoundedSemaphore(1)
        self._looked = 0.0
        self._ending: Any = None

    def look(self) -> dict[str, Any]:
        """The overlay as it is now. Raises OSError and DafkaError."""
        with self._looking:
            self._looked = time.monotonic()
            if self._endpoint is None:
                self._endpoint = self._join()
                self._ending = gevent.spawn(self._end_when_idle)
                self._endpoint.await_routes(_ANSWER_SECONDS)
            return _shown(self._endpoint)

    def close(self) -> None:
        """Leave the overlay."""
        if self._ending is not None:
            self._ending.kill(block=False)
            self._ending = None
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            endpoint.close()

    def _end_when_idle(self) -> None:
        while (left := self._looked + limits.MESH_IDLE_SECONDS - time.monotonic()) > 0:
            gevent.sleep(left)
        with self._looking:
            self._ending = None
            self.close()


def _shown(endpoint: Endpoint) -> dict[str, Any]:
    me = endpoint.id
    with Observer(endpoint) as observer:
        observer.find_all(_ANSWER_SECONDS)
        graph = observer.graph
    peers = {one.id: one for one in endpoint.peers() if one.id is not None}
    paths = endpoint.paths()
    shown = as_json(graph, me)
    ids = {str(one): one for one in graph.nodes}
    nodes = []
    for node in shown["nodes"][: limits.MESH_SHOWN]:
        id = ids[node["id"]]
        peer, ways = peers.get(id), paths.get(id, [])
        nodes.append(
            {
                "id": node["id"],
                "wants": None if node["prefixes"] is None else node["prefixes"][: limits.MESH_TOPICS],
                "address": None if peer is None else peer.address,
                "status": None if peer is None else peer.status,
                "direct": peer is not None and peer.status == "peered",
                "paths": [[str(hop) for hop in hops] for hops in ways[: limits.OVERLAY_PATHS]],
            }
        )
    known = {node["id"] for node in nodes}
    connecting = [one.address for one in endpoint.peers() if one.id is None and one.address is not None]
    return {
        "id": str(me),
        "nodes": nodes,
        "total_nodes": len(shown["nodes"]),
        "links": [link for link in shown["links"] if known.issuperset(link)][: limits.OVERLAY_LINKS],
        "connecting": connecting,
    }
