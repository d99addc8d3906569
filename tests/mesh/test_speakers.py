"""Who may say what: every message under its own address and under another's, by what the list says of who."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zmq
from mesh.forgeries import FORGERIES, README, TOPIC, Forgery, prefixes, with_table
from mesh.peer import Peer
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import options
from dafka.mesh.address import InvalidAddressError
from dafka.mesh.endpoint import Endpoint
from dafka.mesh.node import Node
from dafka.mesh.observer import Observer
from dafka.mesh.options import mesh_options
from dafka.mesh.speakers import CAUSE, Speakers
from dafka.protocol.beacons import NodeBeacon, encode_beacon
from dafka.protocol.commands import Ack, Command, Head, Trimmed
from dafka.protocol.runs import Run
from dafka.security import KeyFolder, KeyFolderError
from dafka.security.keys import Allowed, new_keys, remove_node

pytestmark = pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="keys need the transport 'zmtp'")

FAST: dict[str, Any] = {"beacon_interval": 0.1, "beacon_timeout": 3.0}
PLAIN = b"FEDCBA9876543210FEDCBA9876543210"


def keys_in(folder: Path, *, plain: bool) -> Path:
    for node in ("tower", "victim", "other", "node", "out"):
        new_keys(folder, node, store=node == "victim")  # CONSUMER-HELLOs are said to stores alone
    new_keys(folder, "store", store=True)
    if plain:
        new_keys(folder, "plain", plain=True)
    remove_node(folder, "out")
    return folder


class Voice:
    """A node that says whatever it is told to, over a real connection and with its own key."""

    def __init__(self, tower: Tower, keys: KeyFolder) -> None:
        self._hub = get_hub()
        self._node = Node()
        options = mesh_options(tower, keys=keys, **FAST)
        self.endpoint = self._hub.run(Endpoint.shared, self._hub, options)
        self._hub.run(self.endpoint.attach, self._node)

    def say(self, *messages: Run | Command) -> None:
        self._hub.run(self.endpoint.publish, self._node, messages)

    def meet(self, wanted: list[bytes]) -> None:
        until(lambda: all(prefix in self.endpoint._heard for prefix in wanted))

    def close(self) -> None:
        self._hub.run(self.endpoint.detach, self._node)


class Mesh(NamedTuple):
    """A tower, a listener to everything, and a speaker; ``other``: the address of a silent node."""

    folder: Path
    tower: Tower
    victim: Observer
    address: bytes
    other: bytes
    node: Voice
    store: Voice

    def hears(self, speak: Callable[[], object], message: Run | Command) -> bool:
        """Whether the victim hears a message, or drops it because of its sender."""
        self.victim.poll(0.0)
        dropped = self.victim.discarded.get(CAUSE, 0)
        heard: list[object] = []
        speak()
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            heard += [one for _, one, _ in self.victim.poll(0.05)]
            if message in heard:
                return True
            if self.victim.discarded.get(CAUSE, 0) > dropped:
                return False
        raise AssertionError(f"{message} was neither heard nor dropped")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    folder = keys_in(tmp_path_factory.mktemp("mesh") / "keys", plain=True)

    def of(node: str) -> KeyFolder:
        return KeyFolder(str(folder), node)

    address = of("victim").address("victim").encode()
    with ExitStack() as stack:
        tower = stack.enter_context(Tower(keys=of("tower")))
        victim = Observer(prefixes(address), tower=tower, keys=of("victim"), **FAST)
        stack.callback(victim.close)
        node, store = Voice(tower, of("node")), Voice(tower, of("store"))
        for voice in (node, store):
            stack.callback(voice.close)
            voice.meet(prefixes(address))
        yield Mesh(folder, tower, victim, address, of("other").address("x").encode(), node, store)


def test_the_table_of_the_document_is_the_one_that_is_tried_here():
    assert with_table(README.read_text()) == README.read_text(), "python -m tests.mesh.forgeries"


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.name)
def test_under_another_nodes_address(mesh: Mesh, forgery: Forgery):
    message = forgery.says(mesh.address, mesh.other, mesh.other)
    assert mesh.hears(lambda: mesh.node.say(message), message) is forgery.node
    assert mesh.hears(lambda: mesh.store.say(message), message) is forgery.store


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.name)
def test_under_its_own_address_a_node_says_what_is_not_a_stores(mesh: Mesh, forgery: Forgery):
    own = KeyFolder(str(mesh.folder), "node").address("own").encode()
    message = forgery.says(mesh.address, own, own)
    only_stores = forgery.name in ("ACK", "STORE-HELLO", "END of a store")
    assert mesh.hears(lambda: mesh.node.say(message), message) is not only_stores


def test_a_node_that_proves_no_key_speaks_under_addresses_of_nobodys_key_if_the_list_has_such(mesh: Mesh):
    mine, others, ack = Head(PLAIN, TOPIC, 3), Head(mesh.other, TOPIC, 3), Ack(mesh.address, TOPIC, 3, PLAIN)
    plain = Peer(mesh.tower.addresses, address=PLAIN, keys=KeyFolder(str(mesh.folder), "plain").load())
    try:
        plain.meet(*prefixes(mesh.address))
        assert mesh.hears(lambda: plain.send(mine), mine)
        assert not mesh.hears(lambda: plain.send(others), others)
        assert not mesh.hears(lambda: plain.send(ack), ack)  # the list does not call it a store
    finally:
        plain.close()
    assert not mesh.hears(lambda: mesh.node.say(mine), mine)  # which is not this one's either


def test_a_beacon_under_another_nodes_address_is_not_told(mesh: Mesh):
    with KeyFolder(str(mesh.folder), "node").context() as context, context.socket(zmq.PUB) as socket:
        socket.linger = 0
        socket.connect(mesh.tower.addresses[0])
        dropped = mesh.tower.discarded.get(CAUSE, 0)
        peers = mesh.victim._node.endpoint.peers

        def forge() -> bool:
            socket.send_multipart(encode_beacon(NodeBeacon(mesh.other, b"127.0.0.1", 9)))
            return mesh.tower.discarded.get(CAUSE, 0) >= dropped + 3

        until(forge)
        assert mesh.victim._node.endpoint.peers == peers


def test_a_list_without_programs_that_prove_no_key_lets_none_speak(tmp_path):
    folder = keys_in(tmp_path / "keys", plain=False)
    victim_keys, node = KeyFolder(str(folder), "victim"), KeyFolder(str(folder), "node")
    with Tower(keys=KeyFolder(str(folder), "tower")) as tower:
        victim = Observer([b"H" + TOPIC], tower=tower, keys=victim_keys, **FAST)
        thief = Peer(tower.addresses, address=node.address("t").encode(), keys=node.load())
        try:
            endpoint = victim._node.endpoint
            until(lambda: thief.pump(0.02) or endpoint.peers)  # the beacon is its own: it is on the list
            until(lambda: thief.pump(0.02) or refused_by(endpoint))
            thief.send(Head(thief.address, TOPIC, 3))
            for _ in range(10):
                thief.pump(0.02)
            assert not victim.poll(0.2)
        finally:
            thief.close()
            victim.close()


def refused_by(endpoint: Endpoint) -> int:
    return endpoint._transport.subscriber.discarded.get("key", 0)  # type: ignore[attr-defined]


def test_a_node_that_was_taken_off_the_list_is_not_listened_to_where_others_know_its_address(mesh: Mesh):
    """It has the pair that all nodes show; but it proves a key that is not on the list."""
    out = Voice(mesh.tower, KeyFolder(str(mesh.folder), "out"))
    try:
        endpoint = mesh.victim._node.endpoint
        refused = refused_by(endpoint)
        link = f"tcp://127.0.0.1:{out.endpoint.port}"
        get_hub().run(endpoint._transport.subscriber.connect, link)
        until(lambda: refused_by(endpoint) > refused)
        get_hub().run(endpoint._transport.subscriber.disconnect, link)
    finally:
        out.close()


def test_a_node_that_is_not_a_store_cannot_make_itself_known_as_one(mesh: Mesh):
    speakers = Speakers(Allowed(mesh.folder / "allowed"))
    node, store = (KeyFolder(str(mesh.folder), name).load().own.public for name in ("node", "store"))
    own = KeyFolder(str(mesh.folder), "node").address("own").encode()
    assert speakers.may_subscribe(store, b"W" + mesh.other) and speakers.may_subscribe(
        store, b"T" + mesh.other
    )
    assert not speakers.may_subscribe(node, b"W" + own) and not speakers.may_subscribe(
        node, b"T" + mesh.other
    )
    assert speakers.may_subscribe(node, b"T" + own)  # as consumers do
    assert speakers.may_subscribe(node, b"Q" + own + b":9100")  # as those that serve metrics do
    assert not speakers.may_subscribe(node, b"Q" + mesh.other + b":9100")
    assert speakers.may_subscribe(node, b"M")


def test_forgeries_among_real_nodes_lose_and_change_nothing(tmp_path):
    folder = keys_in(tmp_path / "keys", plain=False)

    def of(node: str) -> dict[str, Any]:
        return {"keys": KeyFolder(str(folder), node), **FAST}

    with (
        Tower(keys=of("tower")["keys"]) as tower,
        Producer("t", tower=tower, **of("other")) as producer,
        Consumer(["t"], tower=tower, offset_reset="earliest", **of("victim")) as consumer,
    ):
        address = producer.address.encode()
        voice = Voice(tower, of("node")["keys"])
        try:
            voice.meet([b"Mt", b"Ht", b"K" + address, b"T" + consumer.address.encode()])
            for number in range(100):
                producer.send(b"%d" % number)
            voice.say(
                Ack(
                    address, TOPIC, 99, voice_address := KeyFolder(str(folder), "node").address("s").encode()
                ),
                Run(None, address, TOPIC, 100, [b"forged"]),
                Head(address, TOPIC, 200),
                Trimmed(consumer.address.encode(), address, TOPIC, 90, address),
                Trimmed(consumer.address.encode(), address, TOPIC, 90, voice_address),
            )
            until(lambda: producer.metrics()["discarded"].get(CAUSE, 0) >= 1)
            until(lambda: consumer.metrics()["discarded"].get(CAUSE, 0) >= 4)
            assert producer.metrics()["unacknowledged"] == 100
            producer.send(b"real")
            with Store(tmp_path / "data", tower=tower, **of("store")):
                producer.flush(100)
                found: list[bytes | None] = []
                while b"real" not in found:
                    found += [record.value for record in consumer.poll(60.0)]
            assert found == [*(b"%d" % number for number in range(100)), b"real"]
            assert not consumer.gaps
        finally:
            voice.close()


def test_an_address_given_to_a_node_with_keys_must_be_its_own(tmp_path):
    folder = keys_in(tmp_path / "keys", plain=False)
    keys = KeyFolder(str(folder), "node")
    with Tower(keys=keys) as tower:
        with pytest.raises(KeyFolderError, match=r"take keys.address\('NAME'\)"):
            Producer("t", tower=tower, keys=keys, address="AB" * 16)
        with pytest.raises(InvalidAddressError):
            Consumer(["t"], tower=tower, keys=keys, address="short")
        with Producer("t", tower=tower, keys=keys, address=keys.address("pose"), min_stores=0) as producer:
            assert producer.address == keys.address("pose") != keys.address("other")


def test_refused_clients_are_in_the_audit_log_once_for_each_kind(tmp_path, caplog):
    folder = keys_in(tmp_path / "keys", plain=False)
    node = KeyFolder(str(folder), "node").load()
    speakers = Speakers(node.server.allows)
    from dafka.protocol.runs import Inbound, RunReader

    inbound = RunReader().read([])._replace(commands=[Ack(PLAIN, TOPIC, 1), Head(PLAIN, TOPIC, 1)])
    with caplog.at_level("WARNING", logger="dafka.audit"):
        for _ in range(3):
            left: Inbound = speakers.heard(node.own.public, inbound)
            assert not left.commands and left.discarded[CAUSE] == 2
    assert len([record for record in caplog.records if record.name == "dafka.audit"]) == 2
