"""The links of an overlay, gathered by asking each peer for its neighbours."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, NamedTuple

from dafka.hub.waits import bounded_wait
from dafka.overlay.node.endpoint import Endpoint
from dafka.overlay.node.errors import Empty
from dafka.overlay.node.types import EndpointId, Message
from dafka.overlay.wire.links import ANSWER, links_of
from dafka.protocol.errors import MalformedMessage

_AGAIN = 1.0  # seconds until a peer that has not answered is asked again


class Node(NamedTuple):
    """``prefixes`` is None for a peer that does not answer, as those of libbroker."""

    id: EndpointId
    prefixes: tuple[str, ...] | None


class Graph(NamedTuple):
    """Links are pairs of ids, the smaller one first."""

    nodes: dict[EndpointId, Node]
    links: set[tuple[EndpointId, EndpointId]]

    def neighbours(self, id: EndpointId) -> list[EndpointId]:
        return sorted(other for link in self.links if id in link for other in link if other != id)


class Observer:
    """Finds out the topology around ``endpoint``, and notices new nodes. Nothing goes from its graph."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.graph = Graph({endpoint.id: Node(endpoint.id, ())}, set())
        self._endpoint = endpoint
        self._answers = endpoint.subscribe(ANSWER)
        self._asked: dict[EndpointId, float] = {}
        self._mute: set[EndpointId] = set()

    @property
    def silent(self) -> list[EndpointId]:
        """The nodes that have not answered, but for peers of libbroker, which never do."""
        unknown = (id for id, node in self.graph.nodes.items() if node.prefixes is None)
        return [id for id in unknown if id not in self._mute]

    def look(self, seconds: float = 0.0) -> None:
        """Ask those who are new or silent, and wait so long for an answer."""
        for peer in self._endpoint.peers():
            if peer.id is not None:
                self._add(peer.id)
                if peer.status == "peered":
                    self.graph.links.add(_link(self._endpoint.id, peer.id))
        for id in self.silent:
            if time.monotonic() - self._asked.get(id, float("-inf")) > _AGAIN:
                self._asked[id] = time.monotonic()
                if not self._endpoint.ask_links(id):
                    self._mute.add(id)
        with suppress(Empty):
            for answer in [self._answers.get(seconds if self.silent else 0.0), *self._answers.poll()]:
                self._hear(answer)

    def find_all(self, timeout: float) -> None:
        """Ask everybody who is reachable, until all have answered or for ``timeout`` seconds."""
        ends = time.monotonic() + bounded_wait(timeout)
        while True:
            self.look(max(min(_AGAIN / 4, ends - time.monotonic()), 0.0))
            if not self.silent or time.monotonic() >= ends:
                return

    def close(self) -> None:
        self._answers.close()

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _add(self, id: EndpointId) -> None:
        self.graph.nodes.setdefault(id, Node(id, None))

    def _hear(self, answer: Message) -> None:
        try:
            links = links_of(answer.value)
        except MalformedMessage:
            return
        prefixes = tuple(prefix.decode("utf-8", "backslashreplace") for prefix in links.filter)
        self.graph.nodes[answer.sender] = Node(answer.sender, prefixes)
        for other in map(EndpointId, links.neighbours):
            self._add(other)
            self.graph.links.add(_link(answer.sender, other))


def gather(endpoint: Endpoint, timeout: float) -> Graph:
    """Ask everybody who is reachable, until all have answered or for ``timeout`` seconds."""
    with Observer(endpoint) as observer:
        observer.find_all(timeout)
        return observer.graph


def as_json(graph: Graph, me: EndpointId) -> dict[str, Any]:
    """Without this node, which is there only to look."""
    nodes = [
        {"id": str(id), "prefixes": None if node.prefixes is None else list(node.prefixes)}
        for id, node in sorted(graph.nodes.items())
        if id != me
    ]
    links = [[str(one), str(other)] for one, other in sorted(graph.links) if me not in (one, other)]
    return {"nodes": nodes, "links": links}


def _link(one: EndpointId, other: EndpointId) -> tuple[EndpointId, EndpointId]:
    return (one, other) if one < other else (other, one)
