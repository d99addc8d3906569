"""Routes: which nodes of this process hear what.

A message goes to the nodes that have subscribed to its exact ZeroMQ topic or to its ID octet alone: a
subscription of ZeroMQ also brings everything that merely starts with it. Some nodes want to know who
subscribes to a HELLO, which tells them that a consumer or a store has turned up.
"""

from __future__ import annotations

from dafka.mesh.node import Node

_HELLOS = (b"C", b"G", b"L", b"W")  # the ID octets of subscriptions that nodes ask for


class Routes:
    """The nodes of an endpoint and their subscriptions."""

    def __init__(self) -> None:
        self._nodes: dict[Node, set[bytes]] = {}  # each with its subscriptions
        self._prefixes: dict[bytes, dict[Node, None]] = {}
        self._greeters: dict[bytes, dict[Node, None]] = {}  # nodes that ask for subscriptions, by ID octet
        self._hellos: dict[bytes, dict[bytes, None]] = {octet: {} for octet in _HELLOS}

    @property
    def all(self) -> dict[Node, set[bytes]]:
        """The nodes with their subscriptions."""
        return dict(self._nodes)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    def __len__(self) -> int:
        """How many prefixes somebody has subscribed to."""
        return len(self._prefixes)

    def __contains__(self, prefix: bytes) -> bool:
        return prefix in self._prefixes

    # -- nodes ----------------------------------------------------------------------------------

    def attach(self, node: Node) -> list[bytes]:
        """A node joins; the subscriptions of others that it asks for."""
        self._nodes.setdefault(node, set())
        asked: list[bytes] = []
        for octet in _octets(node.hello_ids):
            self._greeters.setdefault(octet, {})[node] = None
            asked += self._hellos.get(octet, ())
        return asked

    def detach(self, node: Node) -> None:
        """A node has left, and has no subscriptions any more."""
        for octet in _octets(node.hello_ids):
            self._greeters.get(octet, {}).pop(node, None)
        self._nodes.pop(node, None)

    def of(self, node: Node) -> set[bytes]:
        """The subscriptions of a node, which change with it."""
        return self._nodes.get(node, set())

    def greeters(self, prefix: bytes) -> list[Node]:
        """The nodes that want to know of a subscription to ``prefix``."""
        return list(self._greeters.get(prefix[:1], ()))

    # -- subscriptions --------------------------------------------------------------------------

    def subscribe(self, node: Node, prefix: bytes) -> bool:
        """Also :meth:`attach`\\ es the node. Whether it had not subscribed to ``prefix`` before."""
        own = self._nodes.setdefault(node, set())
        if prefix in own:
            return False
        own.add(prefix)
        self._prefixes.setdefault(prefix, {})[node] = None
        if prefix[:1] in self._hellos:
            self._hellos[prefix[:1]][prefix] = None
        return True

    def unsubscribe(self, node: Node, prefix: bytes) -> bool:
        """Whether the node had subscribed to ``prefix``."""
        nodes = self._prefixes.get(prefix, {})
        if node not in nodes:
            return False
        self._nodes[node].discard(prefix)
        del nodes[node]
        if not nodes:
            del self._prefixes[prefix]
            self._hellos.get(prefix[:1], {}).pop(prefix, None)
        return True

    # -- messages -------------------------------------------------------------------------------

    def with_ids(self, ids: bytes) -> list[bytes]:
        """The prefixes that begin with one of these ID octets."""
        wanted = set(_octets(ids))
        return [prefix for prefix in self._prefixes if prefix[:1] in wanted]

    def receivers(self, topic: bytes) -> list[Node]:
        """The nodes that hear a message of this ZeroMQ topic, each once."""
        exact, general = self._prefixes.get(topic), self._prefixes.get(topic[:1])
        if not general or exact is general:
            return list(exact or ())
        return [*(exact or ()), *(node for node in general if not exact or node not in exact)]

    def has_others(self, topic: bytes, origin: Node | None) -> bool:
        """Whether a node other than ``origin`` hears a message of this topic."""
        for prefix in (topic, topic[:1]):
            nodes = self._prefixes.get(prefix)
            if nodes and (len(nodes) > 1 or origin not in nodes):
                return True
        return False


def _octets(ids: bytes) -> list[bytes]:
    return [ids[position : position + 1] for position in range(len(ids))]
