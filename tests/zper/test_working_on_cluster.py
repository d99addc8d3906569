"""Working on Cluster: "By connecting to one of ZPController, client can get node and peer information"."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
import zmq
from ports import LOOPBACK, free_port
from timing import until
from zper.clients import INVALID_COMMAND, OK, identity, raw

from dafka import Broker
from dafka.zper import ZperOptions
from dafka.zper.clients.cluster import Cluster
from dafka.zper.cluster import limits, messages
from dafka.zper.cluster.messages import Node


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Three nodes; the second and the third name the first, and the first the second."""
    monkeypatch.setattr(limits, "INTERVAL", 0.05)
    monkeypatch.setattr(limits, "LOST_AFTER", 0.5)
    with ExitStack() as stack:
        brokers = []
        second = f"tcp://{LOOPBACK}:{free_port()}"  # so that the first can name it
        for number, quorum in enumerate([[1], [0], [0]]):
            ports = [one.zper.controller_address for one in brokers]
            named = tuple(second if one == 1 else ports[one] for one in quorum)
            bind = second if number == 1 else "tcp://127.0.0.1:*"
            options = ZperOptions(controller_bind=bind, controller_quorum=named, flush_interval=1)
            brokers.append(stack.enter_context(Broker(tmp_path / str(number), zper=options)))
        yield brokers


@pytest.mark.parametrize("kind", [zmq.REQ, zmq.DEALER])
@pytest.mark.parametrize("command", [[b"NODES"], [b"PEERS"], [b"TOPICS"], [b"TOPICS", b"none"]])
def test_a_client_gets_json_in_one_frame_behind_the_status(clients, kind, command):
    with Broker(zper=ZperOptions()) as broker:
        sock = clients.connect(kind, broker.zper.controller_address, identity("any"))
        sock.send_multipart(command)
        status, document = sock.recv_multipart()
        assert status == OK
        assert command[0].decode().lower() in json.loads(document)


@pytest.mark.parametrize("command", [[b"ELECT"], [b"NODES", b"x"], [b"NODE", b"{}"], [b"NODE", b"[" * 5000]])
def test_another_command_is_answered_invalid_command_and_counted(clients, command):
    with Broker(zper=ZperOptions()) as broker:
        sock = clients.connect(zmq.REQ, broker.zper.controller_address, identity("any"))
        sock.send_multipart(command)
        assert sock.recv_multipart() == [INVALID_COMMAND]
        assert broker.zper.discarded["zper-command"] == 1


def test_a_request_that_is_too_large_ends_its_connection_and_no_other(clients):
    with Broker(zper=ZperOptions()) as broker:
        hostile = clients.connect(zmq.DEALER, broker.zper.controller_address, identity("a"))
        sock = clients.connect(zmq.REQ, broker.zper.controller_address, identity("b"))
        hostile.send_multipart([b"NODE", b" " * 100_000])
        until(
            lambda: broker.zper.discarded.get("zper-message-size", 0) > 0, what=lambda: broker.zper.discarded
        )
        sock.send(b"NODES")
        assert sock.recv_multipart()[0] == OK


def test_nodes_that_strangers_claim_are_bounded(clients, monkeypatch):
    monkeypatch.setattr(limits, "NODES", 3)
    with Broker(zper=ZperOptions()) as broker:
        sock = clients.connect(zmq.DEALER, broker.zper.controller_address, identity("a"))
        for number in range(10):
            node = Node(f"node{number}", 1, 1, {}, 0, {})
            sock.send_multipart(messages.question(node, messages.Have()))
            assert sock.recv_multipart()[0] == OK
        with Cluster(broker.zper.controller_address) as cluster:
            assert len(cluster.nodes()) == 1 + 3


def test_all_nodes_are_known_with_where_their_servers_listen(three):
    for broker in three:
        with Cluster(broker.zper.controller_address) as cluster:
            expected = {one.zper.writer_address for one in three}
            if broker is three[1]:
                expected = {
                    three[0].zper.writer_address,
                    three[1].zper.writer_address,
                }  # the third names the first
            elif broker is three[2]:
                expected = {three[0].zper.writer_address, three[2].zper.writer_address}

            def known(cluster=cluster, expected=expected):
                states = {one["binds"]["writer"]: one["state"] for one in cluster.nodes()}
                return states == dict.fromkeys(expected, "up")

            until(known)
            assert cluster.nodes()[0]["binds"] == dict(broker.zper.addresses)


def test_peers_are_those_of_the_configuration(three):
    with Cluster(three[2].zper.controller_address) as cluster:
        until(lambda: cluster.peers()[0]["node"] is not None)
        (peer,) = cluster.peers()
        assert (peer["address"], peer["connected"]) == (three[0].zper.controller_address, True)


def test_topics_are_told_with_their_first_position_and_end(three, clients):
    sock = clients.req(three[1].zper.writer_address, "events", 2)
    sock.send(b"hello")
    sock.recv()
    end = len(raw(b"hello"))
    with Cluster(three[0].zper.controller_address) as cluster:
        node = until(
            lambda: [
                one["id"] for one in cluster.nodes() if one["binds"]["writer"] == three[1].zper.writer_address
            ]
        )[0]
        told = {"topic": "events", "node": node, "first": 0, "end": end}
        until(lambda: cluster.topics("events") == [told])  # at first it may be told as empty
        assert cluster.topics("other") == []


def test_a_node_that_is_silent_is_listed_as_lost(three):
    with Cluster(three[0].zper.controller_address) as cluster:
        until(lambda: len(cluster.nodes()) == 3)
        gone = three[1].zper.writer_address
        three[1].stop()

        def states():
            return {one["binds"]["writer"]: one["state"] for one in cluster.nodes()}

        other = three[2].zper.writer_address
        until(lambda: (states()[gone], states()[other]) == ("lost", "up"))
        three[1].start()
        until(lambda: states()[gone] == "up")
