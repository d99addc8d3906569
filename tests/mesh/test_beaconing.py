"""Beaconing: the beacons of a node to its towers, and which of the peers that these name it connects to."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
import zmq
from contexts import new_context

from dafka.hub.hub import get_hub
from dafka.mesh import beaconing as module
from dafka.mesh import limits
from dafka.mesh.beaconing import Beaconing
from dafka.mesh.counting import Discards
from dafka.mesh.options import EndpointOptions
from dafka.protocol.beacons import WELCOME, NodeBeacon, TowerBeacon, decode_beacon, encode_beacon

PORT = 4321


class Links:
    """What a node is connected to."""

    tells_reached = True

    def __init__(self) -> None:
        self.peers: list[str] = []
        self.there: set[str] = set()

    def connect(self, peer: str) -> None:
        self.peers.append(peer)

    def disconnect(self, peer: str) -> None:
        self.peers.remove(peer)
        self.there.discard(peer)

    def is_reached(self, peer: str) -> bool:
        return peer in self.there

    def reached(self, peer: str) -> None:
        self.there.add(peer)


class Node:
    """The beaconing of a node, and a tower that says what a test has it say."""

    def __init__(self, interval: float = 0.1) -> None:
        self.context: zmq.Context[Any] = new_context()
        self.takes, self.gives = self.context.socket(zmq.SUB), self.context.socket(zmq.XPUB)
        self.takes.subscribe(b"")
        self.gives.setsockopt(zmq.XPUB_WELCOME_MSG, WELCOME)
        pair = [
            f"tcp://127.0.0.1:{one.bind_to_random_port('tcp://127.0.0.1')}"
            for one in (self.takes, self.gives)
        ]
        self.links, self.discarded = Links(), Discards()
        options = EndpointOptions(towers=((pair[0], pair[1]),), beacon_interval=interval, beacon_timeout=0.5)
        hub = get_hub()
        self.beaconing: Beaconing = hub.run(
            Beaconing,
            hub,
            options,
            PORT,
            self.links,  # type: ignore[arg-type]
            lambda: None,
            self.discarded,
        )
        for _ in (b"B", WELCOME):
            assert self.gives.poll(20_000)
            self.gives.recv()

    def heard(self) -> NodeBeacon:
        """The node's next beacon."""
        assert self.takes.poll(20_000)
        beacon = decode_beacon(self.takes.recv_multipart())
        assert isinstance(beacon, NodeBeacon)
        return beacon

    def tell(self, *endpoints: bytes, address: bytes = b"AB" * 16) -> None:
        for endpoint in endpoints:
            self.gives.send_multipart(encode_beacon(TowerBeacon(address, endpoint)))

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 100
        while not condition():
            assert time.monotonic() < deadline
            get_hub().run(self.beaconing.read)
            time.sleep(0.005)

    def close(self) -> None:
        get_hub().run(self.beaconing.close)
        self.context.destroy(linger=0)


@pytest.fixture
def node() -> Iterator[Node]:
    one = Node()
    yield one
    one.close()


def test_a_node_repeats_its_id_and_endpoint(node):
    first, second = node.heard(), node.heard()
    assert first == second
    assert first.port == PORT


def test_a_node_rests_while_there_is_nothing_to_say() -> None:
    """What ZeroMQ tells the socket of its beacons, once a tower subscribes, would keep the loop turning."""
    node = Node(interval=1000)
    descriptor: int = get_hub().run(lambda: node.beaconing._out._get(zmq.FD))  # type: ignore[assignment]
    node.until(lambda: not select.select([descriptor], [], [], 0)[0])
    node.close()


def test_one_that_is_closed_while_it_rests_says_nothing_more(monkeypatch):
    """Its time to go on may have come before it is killed."""
    node = Node(interval=1000)

    def rest(_: float) -> None:
        node.beaconing.close()
        monkeypatch.setattr(node.beaconing._role, "tick", lambda now: [NodeBeacon(b"AB" * 16, b"", PORT)])

    monkeypatch.setattr(module.gevent, "sleep", rest)
    get_hub().run(node.beaconing._tick)
    node.context.destroy(linger=0)


def test_a_tower_is_heard_once_it_has_said_anything(node):
    node.until(lambda: node.beaconing.heard)  # it has been welcomed


def test_a_peer_is_connected_to_once_and_left_when_it_is_silent(node):
    node.tell(b"tcp://127.0.0.1:5001", b"tcp://127.0.0.1:5001")
    node.until(lambda: node.links.peers == ["tcp://127.0.0.1:5001"])
    assert node.beaconing.target_of(b"AB" * 16) == "tcp://127.0.0.1:5001"

    def another() -> bool:
        node.tell(b"tcp://127.0.0.1:5002", address=b"CD" * 16)
        return node.links.peers == ["tcp://127.0.0.1:5002"]

    node.until(another)
    assert node.beaconing.target_of(b"AB" * 16) is None


def test_a_peer_that_moves_is_followed(node):
    node.tell(b"tcp://127.0.0.1:5001", b"tcp://127.0.0.1:5002")
    node.until(lambda: node.links.peers == ["tcp://127.0.0.1:5002"])


def test_its_own_beacon_is_not_a_peer(node):
    node.tell(b"tcp://127.0.0.1:5001", address=node.heard().address)
    node.tell(b"tcp://127.0.0.1:5002")
    node.until(lambda: node.links.peers)
    assert node.links.peers == ["tcp://127.0.0.1:5002"]


@pytest.mark.parametrize(
    "endpoint",
    [
        b"ipc:///tmp/x",
        b"tcp://127.0.0.1",
        b"tcp://127.0.0.1:0",
        b"tcp://127.0.0.1:65536",
        b"tcp://127.0.0.256:5001",
        b"tcp://127.1:5001",
        b"tcp://a b:5001",
        b"",
    ],
)
def test_anything_but_a_place_of_a_peer_is_counted_and_left_alone(node, endpoint):
    node.tell(endpoint)
    node.tell(b"tcp://127.0.0.1:5002", address=b"CD" * 16)
    node.until(lambda: node.links.peers)
    assert node.links.peers == ["tcp://127.0.0.1:5002"]
    assert sum(node.discarded.values()) == 1


def test_anything_but_a_beacon_is_counted(node):
    node.gives.send_multipart([b"B", b"x"])
    node.gives.send_multipart(encode_beacon(NodeBeacon(b"AB" * 16, b"127.0.0.1", 5001)))
    node.until(lambda: sum(node.discarded.values()) == 2)
    assert node.links.peers == []


def test_the_name_of_a_host_is_looked_up_beside_the_hub(node, monkeypatch):
    def look_up(host: str, port: int, *_: object) -> list[Any]:
        assert host == "peer.example"
        return [(None, None, None, None, ("127.0.0.9", port))]

    monkeypatch.setattr(module.sockets, "getaddrinfo", look_up)
    node.tell(b"tcp://peer.example:5001")
    node.until(lambda: node.links.peers == ["tcp://127.0.0.9:5001"])


def test_a_name_that_is_not_found_is_looked_up_again(node, monkeypatch):
    looked_up = []

    def look_up(host: str, port: int, *_: object) -> list[Any]:
        looked_up.append(host)
        if len(looked_up) == 1:
            raise OSError("not found")
        return [(None, None, None, None, ("127.0.0.9", port))]

    monkeypatch.setattr(module.sockets, "getaddrinfo", look_up)
    monkeypatch.setattr(module.limits, "LOOKUP_PAUSE", 0.05)
    node.tell(b"tcp://peer.example:5001")
    node.until(lambda: node.links.peers == ["tcp://127.0.0.9:5001"])
    assert node.discarded["peer-lookup"] == 1


def test_a_peer_of_two_names_that_was_lost_is_expected_once_either_is_told(node, monkeypatch):
    places = [(None, None, None, "", ("127.0.0.1", 5001))]
    monkeypatch.setattr(module.sockets, "getaddrinfo", lambda *_: places)
    monkeypatch.setattr(node.beaconing._role, "_timeout", 1000.0)  # the tower counts as there
    monkeypatch.setattr(limits, "EXPECT_SECONDS", 1000.0)  # nothing but a beacon wakes who waits
    place, names = "tcp://127.0.0.1:5001", [b"tcp://one.example:5001", b"tcp://other.example:5001"]
    node.tell(names[0], address=b"AB" * 16)
    node.tell(names[1], address=b"CD" * 16)
    node.until(lambda: list(node.beaconing.peers.values()) == [place, place])
    for name, address in zip(names, (b"AB" * 16, b"CD" * 16), strict=True):
        now = time.monotonic()
        waiting = get_hub().run(gevent.spawn, node.beaconing.expect, place, now, now)
        get_hub().run(gevent.sleep, 0)
        assert not waiting.dead
        node.tell(name, address=address)
        node.until(lambda waiting=waiting: waiting.dead)
