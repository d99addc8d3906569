"""Arbitrary octets and mutated commands into every socket of every node.

Nothing is raised in the hub, nothing grows without bound, what is discarded is counted, and good nodes work
afterwards. A seed that fails is in the test's name.
"""

from __future__ import annotations

import logging
import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import zmq
from contexts import new_context
from crc32c import crc32c
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.protocol import commands
from dafka.protocol.batch import CRC_END, CRC_START
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.beacons import NodeBeacon, TowerBeacon, encode_beacon
from dafka.protocol.framing import Framing, encode
from dafka.roles.limits import DEFAULT_LIMITS

MESSAGES = 4000
STRANGER = b"0123456789ABCDEF0123456789ABCDEF"
IDS = [b"M", b"H", b"F", b"G", b"D", b"E", b"W", b"L", b"K", b"T", b"C", b"N"]


class Attacker:
    """Sockets without a node: the test decides what they send."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._context = new_context()

    def publisher(self) -> tuple[zmq.Socket[bytes], str]:
        made = self._context.socket(zmq.XPUB)
        made.setsockopt(zmq.SNDHWM, 0)
        made.setsockopt(zmq.XPUB_VERBOSE, 1)
        return made, f"tcp://127.0.0.1:{made.bind_to_random_port('tcp://127.0.0.1')}"

    def connected(self, kind: int, address: str) -> zmq.Socket[bytes]:
        made = self._context.socket(kind)
        made.setsockopt(zmq.SNDHWM, 0)
        made.connect(address)
        return made

    def octets(self, longest: int) -> bytes:
        return self.random.randbytes(self.random.randrange(longest + 1))

    def mutated(self, frames: list[bytes]) -> list[bytes]:
        """The frames with some octets changed, left out or added, or a frame more or less."""
        chance = self.random
        changed = []
        for position, frame in enumerate(frames):
            octets = bytearray(frame)
            for _ in range(chance.randrange(3)):
                # The first two octets stay, or nobody would be subscribed to it.
                place = chance.randrange(min(len(octets), 0 if position else 2), len(octets) + 1)
                action = chance.randrange(4)
                if action == 0:
                    octets[place:place] = chance.randbytes(chance.choice([1, 4, 300]))
                elif action == 1:
                    del octets[place : place + chance.choice([1, 8, 40])]
                else:
                    octets[place : place + 1] = chance.randbytes(1)
            changed.append(bytes(octets))
        if chance.random() < 0.1:
            changed.append(self.octets(50))
        if chance.random() < 0.1 and len(changed) > 1:
            del changed[-1]
        return changed

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture(params=[1, 2, 3])
def attacker(request: pytest.FixtureRequest) -> Iterator[Attacker]:
    attacker = Attacker(request.param)
    yield attacker
    attacker.close()


@contextmanager
def nothing_raised(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.WARNING):
        yield
    ours = [record for record in caplog.records if record.name.startswith("dafka")]  # kafka-python logs, too
    errors = [record for record in ours if record.levelno >= logging.ERROR or record.exc_info]
    assert not errors, errors[0].getMessage() + str(errors[0].exc_info)


def check_that_good_nodes_work(tower: object, store: Store) -> None:
    with (
        Producer("good", tower=tower) as producer,
        Consumer(["good"], tower=tower, offset_reset="earliest") as consumer,
    ):
        for number in range(200):
            producer.send(b"%d" % number)
        producer.flush(100)
        assert [int(next(consumer).value) for _ in range(200)] == list(range(200))
        assert store.heads()[b"good", producer.address] == 199


def settled(read: object) -> None:
    """Wait until a number stops changing."""
    last = None
    until(lambda: get_hub().run(lambda: True))
    while last != (last := read()):  # type: ignore[operator]
        time.sleep(0.2)


def some_content(attacker: Attacker) -> bytes:
    """Raw octets, a record batch, or one with octets changed and a checksum that is right again."""
    chance = attacker.random
    if chance.random() < 0.5:
        return attacker.octets(60)
    records = [
        (number, b"key", attacker.octets(20), [("name", b"")]) for number in range(chance.randint(1, 9))
    ]
    codec = chance.choice([None, None, "gzip", "lz4"])
    batch = bytearray(encode_batch(records, base_offset=chance.choice([0, 5, 2**62]), compression=codec))
    for _ in range(chance.choice([0, 1, 3])):
        batch[chance.choice([*range(8), *range(21, len(batch))])] = chance.randrange(256)
    batch[CRC_START:CRC_END] = crc32c(bytes(batch[CRC_END:])).to_bytes(4, "big")
    return bytes(batch)


def some_command(attacker: Attacker, recipients: list[bytes]) -> commands.Command:
    chance = attacker.random
    recipient = chance.choice(recipients)
    topic = chance.choice([b"hello", b"hell", b"other", attacker.octets(40), b"\0\x01", b""])
    address = chance.choice([STRANGER, attacker.octets(32), b""])
    sequence = chance.choice([0, 1, 7, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
    content = some_content(attacker)
    return chance.choice(
        [
            commands.Record(address, topic, sequence, content),
            commands.DirectRecord(recipient, address, topic, sequence, content),
            commands.Fetch(recipient, address, topic, sequence, chance.choice([0, 1, 2**32 - 1])),
            commands.Ack(recipient, topic, sequence, address),
            commands.Head(address, topic, sequence),
            commands.DirectHead(recipient, address, topic, sequence),
            commands.GetHeads(topic, address),
            commands.ConsumerHello(recipient, address, (topic, attacker.octets(300))),
            commands.StoreHello(recipient, address),
            commands.Trimmed(recipient, address, topic, sequence),
            commands.Claim(recipient, address, topic, sequence, chance.random() < 0.5),
            commands.End(recipient, address, topic, sequence, address, chance.randrange(4), sequence, 0, 3),
        ]
    )


def test_records_and_commands(attacker, caplog, tmp_path):
    publisher, endpoint = attacker.publisher()
    with (
        nothing_raised(caplog),
        Tower() as tower,
        Store(tmp_path / "storedb", tower=tower) as store,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Producer("hello", tower=tower, min_stores=0, batch=True) as batches,
        Producer("hello", tower=tower) as stored,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        beacons = attacker.connected(zmq.PUB, tower.addresses[0])
        port = int(endpoint.rpartition(":")[2])

        def met() -> bool:
            beacons.send_multipart(encode_beacon(NodeBeacon(STRANGER, b"127.0.0.1", port)))
            return bool(publisher.poll(50))

        until(met)
        producer.send(b"value")
        batches.send(b"value")
        stored.send(b"value")
        stored.flush(100)
        nodes = (store, producer, batches, stored, consumer)
        everyone = [node.address.encode() for node in nodes]
        for _ in range(MESSAGES):
            kind = attacker.random.randrange(3)
            if kind == 0:
                first = attacker.random.choice(IDS) + attacker.octets(80)
                frames = [first, *(attacker.octets(80) for _ in range(attacker.random.randrange(5)))]
            else:
                command = some_command(attacker, everyone)
                frames = encode(command, attacker.random.choice(list(Framing)))
                if kind == 1:
                    frames = attacker.mutated(frames)
            publisher.send_multipart(frames)
        until(lambda: sum(store.metrics()["discarded"].values()) > MESSAGES // 10)
        settled(lambda: sum(store.metrics()["discarded"].values()))
        check_that_good_nodes_work(tower, store)
        metrics = store.metrics()
        assert metrics["endpoint_local_items"] < limits.LOCAL_ITEMS
        assert metrics["partitions"] <= DEFAULT_LIMITS.partitions
        assert metrics["serve_requests"] <= limits.SERVE_REQUESTS
        assert consumer.metrics()["inbox_records"] <= limits.ROOM_RECORDS
        assert {producer.address, batches.address} <= {
            record.partition for record in consumer.poll(1.0, 10**6)
        }
        assert len(metrics["discarded"]) <= limits.CAUSES


def test_subscriptions(attacker, caplog, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "HEARD_PREFIXES", 500)
    with (
        nothing_raised(caplog),
        Tower() as tower,
        Store(tmp_path / "storedb", tower=tower) as store,
        Consumer(["hello"], tower=tower),
    ):
        endpoint = store._node.endpoint
        subscriber = attacker.connected(zmq.XSUB, f"tcp://127.0.0.1:{endpoint.port}")
        for _ in range(MESSAGES):
            octet = attacker.random.choice([b"\1", b"\1", b"\1", b"\0", b"\2", b""])
            prefix = attacker.random.choice([*IDS, b""]) + attacker.octets(
                attacker.random.choice([4, 32, 255, 400])
            )
            subscriber.send(octet + prefix)
        until(lambda: endpoint._heard.overflown)
        settled(lambda: store.metrics()["endpoint_commands_out"])
        assert len(endpoint._heard) <= 500
        check_that_good_nodes_work(tower, store)


def test_a_huge_subscription_costs_its_sender_the_connection(caplog, tmp_path):
    """ZeroMQ keeps subscriptions in a tree as deep as they are long and takes it down by recursion."""
    with (
        nothing_raised(caplog),
        Tower() as tower,
        Store(tmp_path / "storedb", tower=tower) as store,
    ):
        for address in (f"tcp://127.0.0.1:{store._node.endpoint.port}", tower.addresses[1]):
            with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 100) as raw:
                raw.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
                ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 3) + b"SUB"
                raw.sendall(bytes((4, len(ready))) + ready)
                with suppress(OSError):  # it may be closed in the middle of this
                    raw.sendall(b"\x02" + struct.pack(">Q", 1_000_002) + b"\x01M" + b"x" * 1_000_000)
                with suppress(ConnectionError):
                    while raw.recv(4096):
                        pass
        check_that_good_nodes_work(tower, store)


def test_beacons_to_a_tower(attacker, caplog, tmp_path):
    with nothing_raised(caplog), Tower() as tower, Store(tmp_path / "storedb", tower=tower) as store:
        beacons = attacker.connected(zmq.PUB, tower.addresses[0])
        listening = attacker.connected(zmq.XSUB, tower.addresses[1])
        for _ in range(100):
            listening.send(attacker.random.choice([b"\1", b"\0", b"\2", b""]) + attacker.octets(300))
        listening.send(b"\1B")
        host = b"127.0.0.1"

        def heard() -> bool:
            beacons.send_multipart(encode_beacon(NodeBeacon(STRANGER, host, 9)))
            return bool(listening.poll(50))

        until(heard)
        before = sum(tower.discarded.values())
        for _ in range(MESSAGES):
            valid = encode_beacon(NodeBeacon(attacker.octets(32), attacker.octets(10), 9))
            frames = attacker.random.choice(
                [valid, attacker.mutated(valid), [b"B", *(attacker.octets(9) for _ in range(4))], [b"B"]]
            )
            beacons.send_multipart(frames)
        until(lambda: sum(tower.discarded.values()) > before + MESSAGES // 4)
        check_that_good_nodes_work(tower, store)


def test_beacons_from_a_tower(attacker, caplog, tmp_path):
    from_tower, subscribe_from = attacker.publisher()
    _, publish_to = attacker.publisher()
    with nothing_raised(caplog), Tower() as good:
        tower = [good.addresses, (publish_to, subscribe_from)]
        with Store(tmp_path / "storedb", tower=tower) as store:
            until(lambda: from_tower.poll(50))
            for number in range(MESSAGES):
                endpoint = attacker.random.choice(
                    [
                        b"tcp://",
                        b"tcp://127.0.0.1:99999",
                        b"tcp://127.0.0.1:0",
                        b"tcp://999.1.1.1:5",
                        b"tcp://[::1]:7",
                        b"tcp://*:5",
                        b"tcp://127.0.0.1:5;127.0.0.1:6",
                        b"inproc://x",
                        b"tcp://\xff\xfe:5",
                        b"tcp://nowhere.invalid:%d" % (1 + number % 9),
                        b"tcp://127.0.0.1:%d" % (1 + number % 7),
                        b"tcp://" + attacker.octets(20),
                    ]
                )
                valid = encode_beacon(TowerBeacon(b"%032X" % (number % 300), endpoint))
                frames = attacker.random.choice([valid, valid, attacker.mutated(valid), [b"W"], [b"B"]])
                from_tower.send_multipart(frames)
            until(lambda: sum(store.metrics()["discarded"].values()) > MESSAGES // 4)
            assert "peer-endpoint" in store.metrics()["discarded"]
            assert store.metrics()["endpoint_peers"] <= 300
            check_that_good_nodes_work(tower, store)
