"""A mesh of nodes that know each other by their keys: members, strangers, and nodes taken off the list."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zmq
from contexts import new_context
from mesh.recording import Recorder
from timing import until

from dafka import Broker, Consumer, Producer, Store, Tower
from dafka.mesh import limits, options
from dafka.mesh.endpoint import Endpoint
from dafka.protocol.beacons import WELCOME
from dafka.security import KeyFolder, KeyFolderError
from dafka.security.keys import new_keys, remove_node
from dafka.sockets import limits as sockets_limits

pytestmark = pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="keys need the transport 'zmtp'")

FAST: dict[str, Any] = {"beacon_interval": 0.1, "beacon_timeout": 3.0}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With keys of five nodes, of which ``out`` is not on the list."""
    monkeypatch.setattr("dafka.security.keys.LOOK_SECONDS", 0.1)
    monkeypatch.setattr(limits, "KEYS_SECONDS", 0.1)
    monkeypatch.setattr(sockets_limits, "TEND_SECONDS", 0.1)
    made = tmp_path / "keys"
    for node in ("tower", "producer", "store", "consumer", "out"):
        new_keys(made, node, store=node == "store")
    remove_node(made, "out")
    return made


def of(folder: Path, node: str) -> KeyFolder:
    return KeyFolder(str(folder), node)


def endpoint_at(tower: Tower, keys: KeyFolder | None) -> Endpoint:
    [found] = [
        endpoint
        for endpoint in Endpoint._open.values()
        if endpoint.options.keys == keys and endpoint.options.towers == (tower.addresses,)
    ]
    return found


def test_nodes_on_the_list_are_a_mesh(folder, tmp_path):
    values = [b"%d" % number * 20 for number in range(3000)]
    from_the_first: dict[str, Any] = {"keys": of(folder, "consumer"), "offset_reset": "earliest", **FAST}
    with (
        Tower(keys=of(folder, "tower")) as tower,
        Store(tmp_path / "data", tower=tower, keys=of(folder, "store"), **FAST),
        Consumer(["t"], tower=tower, **from_the_first) as consumer,
        Producer("t", tower=tower, keys=of(folder, "producer"), **FAST) as producer,
    ):
        for value in values:
            producer.send(value)
        producer.flush(100)  # acknowledged by the store
        with Consumer(["t"], tower=tower, **from_the_first) as late:
            for one in (consumer, late):
                found: list[bytes | None] = []
                while len(found) < len(values):
                    records = one.poll(60.0, 1000)
                    assert records
                    found += [record.value for record in records]
                assert found == values


@pytest.mark.parametrize("node", ["out", None], ids=["not on the list", "without keys"])
def test_a_stranger_hears_no_beacon_and_finds_nobody(folder, node):
    keys = None if node is None else of(folder, node)
    with (
        Tower(keys=of(folder, "tower")) as tower,
        Producer("t", tower=tower, keys=of(folder, "producer"), min_stores=0, **FAST) as producer,
        Consumer(["t"], tower=tower, keys=of(folder, "consumer"), **FAST) as consumer,
        Consumer(["t"], tower=tower, keys=keys, offset_reset="earliest", **FAST) as stranger,
    ):
        while not consumer.poll(0.1):
            producer.send(b"secret")
        until(lambda: producer.metrics()["endpoint_peers"] == 1)  # it has heard of the consumer, too
        assert not stranger.poll(1.0)
        assert stranger.metrics()["endpoint_peers"] == 0
        assert not endpoint_at(tower, keys).hears_tower
        assert producer.metrics()["endpoint_peers"] == 1


def test_a_stranger_who_knows_the_address_of_a_node_can_subscribe_to_nothing(folder):
    with (
        Tower(keys=of(folder, "tower")) as tower,
        Producer("t", tower=tower, keys=of(folder, "producer"), min_stores=0, **FAST) as producer,
        new_context() as context,
        context.socket(zmq.SUB) as spy,
    ):
        spy.linger = 0
        spy.subscribe(b"")
        spy.connect(f"tcp://127.0.0.1:{endpoint_at(tower, of(folder, 'producer')).port}")
        for number in range(20):
            producer.send(b"secret %d" % number)
        assert not spy.poll(500)


def test_a_node_that_is_taken_off_the_list_is_cut_off_and_the_others_go_on(folder):
    with (
        Tower(keys=of(folder, "tower")) as tower,
        Producer("t", tower=tower, keys=of(folder, "producer"), min_stores=0, **FAST) as producer,
        Consumer(["t"], tower=tower, keys=of(folder, "consumer"), **FAST) as consumer,
        Consumer(["t"], tower=tower, keys=of(folder, "store"), **FAST) as other,
    ):
        until(lambda: producer.metrics()["endpoint_peers"] == 2)
        for one in (consumer, other):
            while not one.poll(0.1):
                producer.send(b"before")
        remove_node(folder, "consumer")
        until(lambda: producer.metrics()["endpoint_peers"] == 1)
        until(lambda: other.metrics()["endpoint_peers"] == 1)
        while consumer.poll(0.5):
            pass
        producer.send(b"behind")
        found: list[bytes | None] = []
        while b"behind" not in found:
            found += [record.value for record in other.poll(60.0)]
        assert not consumer.poll(0.5)


def test_a_program_of_pyzmqs_joins_with_a_key_of_the_list(folder):
    server = KeyFolder(str(folder), "consumer").load()
    with (
        Tower(keys=of(folder, "tower")) as tower,
        Producer("t", tower=tower, keys=of(folder, "producer"), min_stores=0, **FAST) as producer,
        new_context() as context,
        context.socket(zmq.SUB) as beacons,
        context.socket(zmq.SUB) as records,
    ):
        for socket in (beacons, records):
            socket.linger = 0
            socket.subscribe(b"")
            socket.curve_serverkey = server.server.pair.public
            socket.curve_publickey, socket.curve_secretkey = server.own
        beacons.connect(tower.addresses[1])
        heard = beacons.recv_multipart()
        while heard == [WELCOME]:
            assert beacons.poll(60_000)
            heard = beacons.recv_multipart()
        records.connect(heard[-1].decode() if heard[-1].startswith(b"tcp") else heard[1].decode())
        while not records.poll(50):
            producer.send(b"to all who know us")
        assert b"t" in records.recv_multipart()[0]


@pytest.mark.skipif(sys.platform != "linux", reason="all of 127.0.0.0/8 is loopback on Linux alone")
@pytest.mark.parametrize("secured", [True, False], ids=["with keys", "without"])
def test_nothing_on_the_wire_of_a_whole_mesh_can_be_read(folder, tmp_path, secured):
    """Every connection is led through a recorder: those to the tower, and those between the nodes, which tell
    others an address where the recorder listens. Without keys everything is found, so it would be."""

    def keys(node: str) -> dict[str, Any]:
        return {"keys": of(folder, node)} if secured else {}

    recorders: list[Recorder] = []
    with ExitStack() as stack:
        tower = stack.enter_context(Tower(**keys("tower")))

        def record(listen: tuple[str, int], to: tuple[str, int]) -> str:
            recorders.append(Recorder(listen, to))
            stack.callback(recorders[-1].close)
            return "tcp://{}:{}".format(*recorders[-1].address)

        ports = [int(address.rpartition(":")[2]) for address in tower.addresses]
        addresses = tuple(record(("127.0.0.1", 0), ("127.0.0.1", port)) for port in ports)

        def recorded(kind: Any, argument: object, node: str, interval: float, **options: Any) -> Any:
            """With an endpoint of its own, as the options are its own."""
            mesh = {"tower": addresses, "advertise": "127.0.0.2", "beacon_interval": interval}
            made = stack.enter_context(kind(argument, beacon_timeout=3.0, **mesh, **keys(node), **options))
            [port] = [one.port for one in Endpoint._open.values() if one.options.beacon_interval == interval]
            record(("127.0.0.2", port), ("127.0.0.1", port))
            return made

        producer = recorded(Producer, "a-topic", "producer", 0.11)
        store = recorded(Store, tmp_path / "data", "store", 0.12)
        consumer = recorded(Consumer, ["a-topic"], "consumer", 0.13, offset_reset="earliest")
        for number in range(100):
            producer.send(b"the secret %d" % number)
        producer.flush(100)
        found = 0
        while found < 100:
            found += len(consumer.poll(60.0))
        octets = b"".join(recorder.octets for recorder in recorders)
        assert all(len(recorder.octets) > 500 for recorder in recorders)
        said = [b"the secret", b"a-topic", producer.address.encode(), store.address.encode(), b"tcp://"]
        assert [one for one in said if (one in octets) is secured] == []


def test_a_broker_is_a_node_of_such_a_mesh(folder, tmp_path):
    with (
        Broker(tmp_path / "data", keys=of(folder, "store")) as broker,
        Producer("t", tower=broker.tower, keys=of(folder, "producer"), min_stores=0, **FAST) as producer,
    ):
        producer.send(b"kept by the broker")
        producer.flush(100)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"keys": "keys"}, ValueError, "keys is a dafka.security.KeyFolder"),
        ({"keys": KeyFolder("/nowhere", "a")}, KeyFolderError, "/nowhere"),
        ({"keys": KeyFolder("/nowhere"), "transport": "libzmq"}, ValueError, "need the transport 'zmtp'"),
    ],
)
def test_keys_that_cannot_be_used_are_named(options, error, message):
    with Tower() as tower, pytest.raises(error, match=message):
        Producer("t", tower=tower, **options)
