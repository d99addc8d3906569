"""Transports: nodes on libzmq and on ZMTP of our own are one mesh, and behave alike."""

from __future__ import annotations

import socket
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import zmq
from contexts import new_context
from mesh.peer import ADDRESS, Peer
from timing import until
from zmtp.vectors import GREETING_31, frame, ready

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.mesh.endpoint import Endpoint, EndpointBindError
from dafka.mesh.options import TRANSPORTS, mesh_options
from dafka.protocol import commands
from dafka.protocol.beacons import NodeBeacon, encode_beacon
from dafka.protocol.framing import Framing

BOTH = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("producing", "storing", "consuming"), list(product(*[TRANSPORTS] * 3)))
def test_one_mesh(tmp_path: Path, producing: str, storing: str, consuming: str, batch: bool):
    """Each node has an endpoint of its own, as in another process. Records are consumed live and late."""
    options: dict[str, Any] = {"beacon_interval": 0.1}
    values = [b"%d" % number + b"x" * (number % 300) for number in range(3000)]
    with (
        Tower() as tower,
        Store(tmp_path, tower=tower, transport=storing, beacon_timeout=4.1, **options),
        Consumer(["t"], tower=tower, transport=consuming, offset_reset="earliest", **options) as consumer,
        Producer(
            "t", tower=tower, transport=producing, batch=batch, beacon_timeout=4.2, **options
        ) as producer,
    ):
        for value in values:
            producer.send(value)
        producer.flush(100)
        assert taken(consumer, len(values)) == values
        with Consumer(
            ["t"], tower=tower, transport=consuming, offset_reset="earliest", beacon_timeout=4.3, **options
        ) as late:
            assert taken(late, len(values)) == values


def taken(consumer: Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        records = consumer.poll(100.0, count)
        assert records, f"{len(found)} of {count} have come"
        found += [record.value for record in records]
    return found


@BOTH
@pytest.mark.parametrize("framing", Framing)
def test_with_a_plain_peer_in_both_directions(transport: str, framing: Framing):
    with (
        Tower() as tower,
        Peer(tower.addresses, framing) as peer,
        Consumer(["in"], tower=tower, transport=transport) as consumer,
        Producer("out", tower=tower, transport=transport, framing=framing, min_stores=0) as producer,
    ):
        peer.meet(b"Min")
        for sequence in range(600):
            peer.send(commands.Record(ADDRESS, b"in", sequence, b"x" * (sequence % 400)))
        found: list[Any] = []
        while len(found) < 600:
            peer.pump(0)
            found += consumer.poll(0.1, 1000)
        assert [record.value for record in found] == [b"x" * (number % 400) for number in range(600)]
        producer.send(b"perhaps too early")
        peer.receive(commands.Head)
        for number in range(600):
            producer.send(b"%d" % number)

        def heard() -> list[commands.Record]:
            return [one for one in peer.heard if isinstance(one, commands.Record) and one.topic == b"out"]

        peer.until(lambda: heard() and heard()[-1].content == b"599")
        assert [record.content for record in heard()[-600:]] == [b"%d" % number for number in range(600)]


@BOTH
def test_an_interface_that_is_not_there_cannot_be_bound(transport: str):
    with Tower() as tower, pytest.raises(EndpointBindError, match=r"203\.0\.113\.7"):
        Producer("hello", tower=tower, bind="203.0.113.7", transport=transport)


@BOTH
def test_an_interface_may_be_given_by_its_name(transport: str):
    names = [name for _, name in socket.if_nameindex()]
    if "lo" not in names:
        pytest.skip("the loopback interface has another name")
    with (
        Tower() as tower,
        Producer(
            "hello", tower=tower, bind="lo", advertise="127.0.0.1", transport=transport, min_stores=0
        ) as one,
        Consumer(["hello"], tower=tower, transport=transport) as consumer,
    ):
        until(lambda: one.send(b"x") >= 0 and consumer.poll(0.1))


@BOTH
@pytest.mark.parametrize(
    ("bind", "interface"),
    [("::1", "[::1]"), ("[::1]", "[::]"), ("::", "[::]"), ("127.0.0.1", "[::1]"), ("::1", "127.0.0.1")],
)
def test_a_mesh_on_ipv6(transport: str, bind: str, interface: str):
    """A tower and nodes, some of which may be elsewhere; peers that are left and found again too."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    options: dict[str, Any] = {"bind": bind, "transport": transport, "beacon_interval": 0.1}
    address = f"tcp://{interface}:*"
    with Tower(address, address) as tower:
        with Consumer(["t"], tower=tower, offset_reset="earliest", beacon_timeout=0.5, **options) as consumer:
            endpoint = consumer._node.endpoint
            for _ in range(2):
                with Producer("t", tower=tower, min_stores=0, beacon_timeout=4.0, **options) as producer:
                    producer.send(b"six")
                    assert taken(consumer, 1) == [b"six"]
                    (peer,) = endpoint.peers
                    assert (b"[" in peer) == (bind != "127.0.0.1")
                until(lambda: not endpoint.peers, "a producer that has gone is left")
        assert tower.bound[0].startswith(f"tcp://{interface}:")
        assert not endpoint.discarded and not tower.discarded


def test_an_unknown_transport_is_refused():
    with pytest.raises(ValueError, match="transport is 'libzmq' or 'zmtp', not 'tcp'"):
        Producer("hello", transport="tcp")


def test_connections_that_are_ended_are_counted_by_their_cause():
    """Those that are accepted, and those that are made: of a lane and of what always has room."""
    with (
        Tower() as tower,
        Consumer(["hello"], tower=tower, transport="zmtp", beacon_timeout=30.0) as consumer,
        socket.create_server(("127.0.0.1", 0)) as server,
        new_context() as context,
        context.socket(zmq.PUB) as beacons,
    ):
        endpoint = consumer._node.endpoint
        with socket.create_connection(("127.0.0.1", endpoint.port)) as stranger:
            prefix = b"\x01M" + bytes(limits.SUBSCRIPTION_OCTETS)
            stranger.sendall(GREETING_31 + ready(b"SUB") + frame(prefix))
            until(lambda: endpoint.discarded["connection-subscriptions"] == 1)
        beacons.connect(tower.addresses[0])
        beacon = encode_beacon(NodeBeacon(b"AB" * 16, b"127.0.0.1", server.getsockname()[1]))
        until(lambda: beacons.send_multipart(beacon) or endpoint.peers)
        server.settimeout(100)
        for number in range(1, 3):  # the lane, and what everything else comes through
            with server.accept()[0] as publisher:
                publisher.sendall(GREETING_31 + ready(b"XPUB") + b"\xff\xff")
                until(lambda number=number: endpoint.discarded["connection-flags"] >= number)
        assert consumer.metrics()["discarded"]["connection-subscriptions"] == 1


def test_a_peer_that_does_not_read_loses_what_finds_no_room_and_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch,
):
    """And the producer's memory does not grow with it."""
    monkeypatch.setattr(limits, "QUEUED_OCTETS", 1_000_000)
    with (
        Tower() as tower,
        Producer("hello", tower=tower, transport="zmtp", min_stores=0, beacon_timeout=30.0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        until(lambda: producer.send(b"first") >= 0 and consumer.poll(0.1))
        port = producer._node.endpoint.port
        with socket.create_connection(("127.0.0.1", port)) as stuck:
            stuck.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32))
            ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
            stuck.sendall(bytes((4, len(ready))) + ready + b"\x04\x0b\x09SUBSCRIBEM")
            until(lambda: b"M" in producer._node.endpoint._heard)
            count = 0
            while not producer.metrics()["endpoint_dropped"]:
                count += 1
                producer.send(b"%d" % count + bytes(10_000))
                if count % 100 == 0:
                    found = consumer.poll(100.0, 1000)
                    assert found
            assert producer.metrics()["endpoint_queued_octets"] < 3_000_000


@BOTH
def test_the_last_words_of_a_producer_that_closes_are_heard(transport: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "LINGER_MS", 100_000)  # this machine may be busy
    with (
        Tower() as tower,
        Consumer(["hello"], tower=tower, offset_reset="latest", transport=transport) as consumer,
    ):
        with Producer(
            "hello", tower=tower, min_stores=0, transport=transport, beacon_timeout=5.0
        ) as producer:
            until(lambda: producer.send(b"first") >= 0 and consumer.poll(0.1))
            for number in range(2000):
                producer.send(b"%d" % number)
        until(lambda: any(record.value == b"1999" for record in consumer.poll(1.0, 10_000)))


@BOTH
def test_no_socket_is_left_when_the_last_node_has_gone(transport: str):
    hub = get_hub()
    with Tower() as tower:
        options = mesh_options(tower, transport=transport)
        endpoint = hub.run(partial(Endpoint, hub, options))
        port = endpoint.port
        socket.create_connection(("127.0.0.1", port)).close()
        hub.run(endpoint._close)
        until(lambda: not listens(port))


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
