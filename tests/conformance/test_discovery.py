"""Node Discovery and Presence, Interconnection Model: real nodes, and towers of plain sockets."""

from __future__ import annotations

import re

import zmq
from conformance.plain import ADDRESS, PlainTower, received
from contexts import new_context

from dafka import Consumer, Producer, Tower

QUICK = {"beacon_interval": 0.1, "beacon_timeout": 0.5}


def test_a_node_publishes_its_presence_at_regular_intervals():
    """Each dafka node SHALL publish its presence at regular intervals to the tower(s).

    "The node sends a node beacon consisting of 4 message frames. The message type 'B', the node's UUID and
    the IP address and port at which other peers can reach this node."
    """
    with PlainTower() as tower, Consumer(tower=tower.addresses, **QUICK):
        tower.until(lambda: len(tower.beacons) >= 4)
        kind, address, host, port = tower.beacons[0][1]
        assert (kind, host) == (b"B", b"127.0.0.1")
        assert re.fullmatch(rb"[0-9A-F]{32}", address)
        assert port.isdigit()
        assert all(frames == tower.beacons[0][1] for _, frames in tower.beacons)


def test_a_tower_answers_a_node_beacon_with_a_tower_beacon():
    """When a tower receives a node beacon it SHALL publish an appropriate tower beacon consisting of 3
    message frames. The message type 'B', the node's UUID and the tcp endpoint where other nodes connect to.
    """
    with (
        Tower() as tower,
        new_context() as context,
        context.socket(zmq.PUB) as publisher,
        context.socket(zmq.SUB) as subscriber,
    ):
        subscriber.subscribe(b"B")
        subscriber.connect(tower.addresses[1])
        publisher.connect(tower.addresses[0])
        for _ in range(100):  # the first ones are sent before the tower has subscribed
            publisher.send_multipart([b"B", ADDRESS, b"10.1.2.3", b"4567"])
            if subscriber.poll(50):
                break
        assert subscriber.recv_multipart() == [b"B", ADDRESS, b"tcp://10.1.2.3:4567"]


def test_a_node_talks_to_towers_through_a_publisher_and_a_subscriber():
    """Each node SHALL create a ZeroMQ PUB and a ZeroMQ SUB socket to communicate with the towers hereinafter
    called beacon publisher and beacon subscriber socket respectivally.
    """
    with PlainTower() as tower, Consumer(tower=tower.addresses, **QUICK):
        tower.until(lambda: tower.beacons and b"B" in tower.subscriptions)


def test_a_node_is_connected_to_every_tower_it_was_given():
    """The beacon publisher socket SHALL be connected to at least one tower's SUB socket and the beacon
    subscriber socket SHALL be connected to at least one tower's PUB socket.
    """
    with (
        PlainTower() as one,
        PlainTower() as other,
        Consumer(tower=[one.addresses, other.addresses], **QUICK),
    ):
        for tower in (one, other):
            tower.until(lambda tower=tower: tower.beacons and b"B" in tower.subscriptions)


def test_the_publisher_is_bound_to_an_address_that_others_reach():
    """Each node SHALL create a ZeroMQ XPUB socket hereinafter called publisher socket and bind it to an
    address that can be reached by the other nodes.
    """
    with (
        PlainTower() as tower,
        Producer("hello", tower=tower.addresses, min_stores=0, head_interval=0.1, **QUICK) as producer,
    ):
        tower.until(lambda: tower.beacons)
        _, _, host, port = tower.beacons[0][1]
        peer = tower.subscriber(b"tcp://%s:%s" % (host, port))
        producer.send(b"anything")
        received(peer, b"Hhello")


def test_the_address_is_sent_to_all_towers_at_a_regular_interval():
    """The node SHALL send this address at a regular interval to all connected towers."""
    with (
        PlainTower() as one,
        PlainTower() as other,
        Consumer(tower=[one.addresses, other.addresses], **QUICK),
    ):
        for tower in (one, other):
            tower.until(lambda tower=tower: len(tower.beacons) >= 4)
        assert {tuple(frames) for _, frames in one.beacons} == {tuple(frames) for _, frames in other.beacons}


def test_records_come_through_a_second_subscriber():
    """Each node SHALL create a second ZeroMQ SUB socket hereinafter called subscriber socket."""
    with PlainTower() as tower, Consumer(["hello"], tower=tower.addresses, **QUICK):
        publisher, endpoint = tower.publisher()
        tower.until(lambda: tower.tell(ADDRESS, endpoint) or publisher.poll(20))
        heard = {received(publisher, b"")[0] for _ in range(7)}
        # Its subscriptions at nodes, without the beacons that it wants from towers.
        assert {b"\x01Mhello", b"\x01Hhello"} <= heard
        assert b"\x01B" not in heard


def test_a_node_connects_to_the_publisher_of_a_node_it_discovers():
    """When a node discovers another node, it SHALL connect this socket, to the other nodes publisher socket.
    """
    with PlainTower() as tower, Consumer(["hello"], tower=tower.addresses, **QUICK):
        publisher, endpoint = tower.publisher()
        assert not publisher.poll(0)
        tower.until(lambda: tower.tell(ADDRESS, endpoint) or publisher.poll(20))
        assert received(publisher, b"\x01")


def test_a_node_disconnects_from_a_peer_that_is_silent_for_the_timeout():
    """A node MAY disconnect its subscriber socket if the peer has failed to respond within some time (see
    Heartbeating).
    """
    with PlainTower() as tower, Consumer(["hello"], tower=tower.addresses, **QUICK):
        publisher, endpoint = tower.publisher()
        tower.until(lambda: tower.tell(ADDRESS, endpoint) or publisher.poll(20))
        silent: list[bytes] = []

        def is_left() -> bool:
            while publisher.poll(0):
                silent.append(publisher.recv())
            return b"\x00Mhello" in silent

        tower.until(is_left)  # the tower lives on, the peer is not heard of any more
