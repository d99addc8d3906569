"""Watching an overlay: an endpoint of the console that is there while somebody looks, and asks for all
peerings. It passes nothing on and publishes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dafka.console import limits
from dafka.console.networks.visit import Visit
from dafka.overlay.node.endpoint import Endpoint
from dafka.overlay.topology import Observer, as_json

_ANSWER_SECONDS = 1.0  # that peers may take to answer; silent ones are shown all the same


class OverlayWatch:
    """``join()`` makes the endpoint, which the watch closes."""

    def __init__(self, join: Callable[[], Endpoint]) -> None:
        self._visit = Visit(join, lambda endpoint: endpoint.await_routes(_ANSWER_SECONDS))

    def look(self) -> dict[str, Any] | None:
        """The overlay as it is now; None if the watch is closed meanwhile. Raises OSError and DafkaError."""
        with self._visit.look() as endpoint:
            return None if endpoint is None else _shown(endpoint)

    def close(self) -> None:
        """Leave the overlay."""
        self._visit.close()


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
