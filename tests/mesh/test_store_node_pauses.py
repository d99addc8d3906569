"""A store's node does what its role decides in a tick some at a time, until it leaves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gevent
from broker.pausing import at_pause

from dafka.hub.hub import get_hub
from dafka.mesh.store_node import StoreNode
from dafka.protocol.commands import Fetch, Head
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import Limits
from dafka.roles.store import StoreRole

TOPIC, ADDRESSES = b"t", [b"%d" % number * 32 for number in range(6)]


class Endpoint:
    """An endpoint that keeps what is published."""

    def __init__(self) -> None:
        self.stores = KnownStores()
        self.published: list[Any] = []

    def publish(self, node: StoreNode, outputs: list[Any]) -> None:
        self.published += [one.partition for one in outputs if isinstance(one, Fetch)]

    def resume(self, node: StoreNode) -> None:
        pass

    def detach(self, node: StoreNode) -> None:
        pass


def node_with_lost_fetches(endpoint: Endpoint) -> StoreNode:
    nothing: Any = SimpleNamespace(path="log")
    node = StoreNode(get_hub(), endpoint, nothing, nothing, b"5" * 32)  # type: ignore[arg-type]
    node.role = StoreRole(b"5" * 32, limits=Limits(due_at_once=2))
    node.role.tick(0.0)
    for one in ADDRESSES:
        node.role.receive(0.0, Head(one, TOPIC, 0))
    return node


def ticked(node: StoreNode) -> None:
    get_hub().run(lambda: gevent.spawn(node.tick, 1.3).join(100))


def test_very_many_fetches_are_repeated_in_pieces(monkeypatch):
    endpoint = Endpoint()
    node, seen = node_with_lost_fetches(endpoint), list[int]()
    happened = at_pause(monkeypatch, "tick", lambda: seen.append(len(endpoint.published)))
    ticked(node)
    assert happened() and seen == [2]
    assert sorted(endpoint.published) == ADDRESSES


def test_a_node_that_leaves_meanwhile_says_nothing_more(monkeypatch):
    endpoint = Endpoint()
    node = node_with_lost_fetches(endpoint)
    happened = at_pause(monkeypatch, "tick", node.close)
    ticked(node)
    assert happened() and len(endpoint.published) == 2
