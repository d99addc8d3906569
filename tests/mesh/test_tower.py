"""The tower, as nodes see it that are written with plain sockets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import zmq
from contexts import new_context
from timing import until

from dafka import Tower
from dafka.mesh import tower as tower_module
from dafka.mesh.tower import TowerBindError, first_interface, reachable
from dafka.protocol.beacons import WELCOME, NodeBeacon, TowerBeacon, decode_beacon, encode_beacon

ADDRESS, LAST = b"AB" * 16, b"EF" * 16


class Node:
    """A node's two beacon sockets."""

    def __init__(self, context: zmq.Context[Any], tower: Tower) -> None:
        publish_to, subscribe_from = tower.addresses
        self.out = context.socket(zmq.PUB)
        self.out.connect(publish_to)
        self.heard = context.socket(zmq.SUB)
        self.heard.subscribe(b"B")
        self.heard.subscribe(WELCOME)
        self.heard.connect(subscribe_from)

    def receive(self) -> list[bytes]:
        assert self.heard.poll(100_000)
        return self.heard.recv_multipart()

    def meet(self) -> None:
        """Wait for the welcome, and until the tower hears what is said."""
        assert self.receive() == [WELCOME]
        while not self.heard.poll(50):
            self.say(NodeBeacon(b"CD" * 16, b"127.0.0.1", 1))
        self.say(NodeBeacon(LAST, b"127.0.0.1", 1))
        while decode_beacon(self.receive()).address != LAST:
            pass

    def say(self, beacon: NodeBeacon) -> None:
        self.out.send_multipart(encode_beacon(beacon))


@pytest.fixture
def tower() -> Iterator[Tower]:
    with Tower() as one:
        yield one


@pytest.fixture
def node(tower: Tower) -> Iterator[Node]:
    context: zmq.Context[Any] = new_context()
    one = Node(context, tower)
    one.meet()
    yield one
    context.destroy(linger=0)


def test_everybody_is_told_where_a_node_is_that_node_included(tower, node):
    node.say(NodeBeacon(ADDRESS, b"10.0.0.7", 4000))
    assert decode_beacon(node.receive()) == TowerBeacon(ADDRESS, b"tcp://10.0.0.7:4000")


def test_a_node_that_does_not_know_its_host_is_where_it_was_heard_from(tower, node):
    node.say(NodeBeacon(ADDRESS, b"", 4000))
    assert decode_beacon(node.receive()) == TowerBeacon(ADDRESS, b"tcp://127.0.0.1:4000")


def test_anything_but_a_beacon_of_a_node_is_counted_and_told_to_nobody(tower, node):
    before = tower.metrics()["beacons_out"]
    node.out.send_multipart([b"B", b"what is this"])
    node.out.send_multipart(encode_beacon(TowerBeacon(ADDRESS, b"tcp://10.0.0.7:4000")))
    until(lambda: sum(tower.discarded.values()) == 2)
    assert tower.discarded["not-a-node-beacon"] == 1
    assert tower.metrics()["discarded"] == tower.discarded
    assert tower.metrics()["beacons_out"] == before


def test_beacons_are_counted(tower, node):
    before = tower.metrics()
    node.say(NodeBeacon(ADDRESS, b"10.0.0.7", 4000))
    node.receive()
    after = tower.metrics()
    assert after["beacons_in"] == before["beacons_in"] + 1
    assert after["beacons_out"] == before["beacons_out"] + 1


def test_many_beacons_at_once_are_all_told(tower, node, monkeypatch):
    monkeypatch.setattr(tower_module.limits, "ROUND_MESSAGES", 7)
    wanted = {b"%032X" % number for number in range(100)}
    for address in wanted:
        node.say(NodeBeacon(address, b"10.0.0.7", 4000))
    while wanted:
        told = decode_beacon(node.receive())
        assert isinstance(told, TowerBeacon)
        wanted.discard(told.address)


def test_its_addresses_are_free_again_when_it_is_closed():
    with Tower() as one:
        addresses = one.addresses
        assert one.bound == addresses
        assert repr(one) == f"<Tower {addresses[0]} {addresses[1]}>"
    deadline = time.monotonic() + 100
    while True:
        try:
            other = Tower(*addresses)
            break
        except TowerBindError:  # ZeroMQ closes sockets in the background
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with other:
        assert other.addresses == addresses


def test_an_address_that_is_taken_is_named_and_the_other_one_not_kept():
    with Tower() as tower, pytest.raises(TowerBindError, match=tower.addresses[1]):
        Tower("tcp://127.0.0.1:*", tower.addresses[1])


def test_arguments_of_another_kind_are_named():
    for wrong in (None, 5, b"tcp://127.0.0.1:*"):
        with pytest.raises(TypeError, match="publish_to is an address such as"):
            Tower(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="subscribe_from is an address such as"):
            Tower(subscribe_from=wrong)  # type: ignore[arg-type]
    with pytest.raises(TowerBindError, match="cannot bind"):
        Tower("\udc80")
    with pytest.raises(ValueError, match=r"keys is a dafka\.security\.KeyFolder, not 'keys'"):
        Tower(keys="keys")  # type: ignore[arg-type]


def test_every_interface_is_reached_by_one_of_them():
    assert reachable("tcp://0.0.0.0:5556") == reachable("tcp://[::]:5556") == "tcp://127.0.0.1:5556"
    assert reachable("tcp://0.0.0.0:5556", "10.0.0.1") == "tcp://10.0.0.1:5556"
    assert reachable("tcp://10.0.0.2:5556", "10.0.0.1") == "tcp://10.0.0.2:5556"


def test_a_machine_without_a_network_is_its_own_only_one(monkeypatch):
    class Nowhere:
        def __enter__(self) -> Nowhere:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def connect(self, address: object) -> None:
            raise OSError("network is unreachable")

    assert first_interface().count(".") == 3
    monkeypatch.setattr(tower_module.sockets, "socket", lambda *_: Nowhere())
    assert first_interface() == "127.0.0.1"
