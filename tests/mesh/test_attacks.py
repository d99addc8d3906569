"""Strangers who would use up a node's memory: its size stays, and other nodes go on meanwhile.

DAFKA_TEST_INVENTED_PEERS is how many peers one of them invents (100000; here fewer).
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import zmq
from contexts import new_context
from mesh.children import MESH, Child, Children
from mesh.peer import Peer
from timing import until
from zmtp.vectors import GREETING_31, frame, ready

from dafka import Consumer, Producer, Tower
from dafka.mesh import options
from dafka.protocol.beacons import NodeBeacon, encode_beacon
from dafka.roles.limits import DEFAULT_LIMITS
from dafka.zmtp.commands import encode_command

pytestmark = [
    pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc"),
    pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="libzmq has no such bounds"),
]

INVENTED = int(os.environ.get("DAFKA_TEST_INVENTED_PEERS", "3000"))
SUBSCRIPTIONS = 3000
GROWTH = 64e6  # octets: all of it may leave so much behind


@pytest.fixture
def store(tower: Tower, tmp_path: Path) -> Iterator[Child]:
    with Children() as children:
        yield children.store(tmp_path / "storedb", [tower.addresses])


@pytest.fixture
def tower() -> Iterator[Tower]:
    with Tower() as tower:
        yield tower


def memory(node: Child) -> int:
    """Octets that are in the machine's memory."""
    pages = int(Path(f"/proc/{node.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _descriptors(node: Child) -> int:
    return len(os.listdir(f"/proc/{node.process.pid}/fd"))


class Traffic:
    """A producer whose records the store acknowledges and a consumer gets."""

    def __init__(self, producer: Producer, consumer: Consumer) -> None:
        self._producer, self._consumer, self._sent = producer, consumer, 0

    def flows(self) -> None:
        for number in range(self._sent, self._sent + 100):
            self._producer.send(b"%d" % number)
        self._producer.flush(100)
        assert [int(next(self._consumer).value) for _ in range(100)] == [*range(self._sent, self._sent + 100)]
        self._sent += 100


def test_attackers_leave_memory_and_other_nodes_as_they_were(tower: Tower, store: Child) -> None:
    with (
        Peer(tower.addresses) as peer,
        Producer("hello", tower=tower, **MESH) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest", **MESH) as consumer,
    ):
        traffic = Traffic(producer, consumer)
        traffic.flows()
        # All nodes of this process are behind one address; the other one is the store's.
        here = producer._node.endpoint.port
        peer.until(lambda: len(_others(peer, here)) == 1)
        (endpoint,) = _others(peer, here)
        before = memory(store)

        _subscribe_at_length(endpoint)
        traffic.flows()
        _say_without_end(tower)
        traffic.flows()
        with _invented_peers(tower) as still_coming:
            while still_coming():
                traffic.flows()
                assert len(producer._node.endpoint.peers) <= DEFAULT_LIMITS.unreached + 10
                assert _descriptors(store) < DEFAULT_LIMITS.unreached + 100
        traffic.flows()
        assert store.process.poll() is None
        until(lambda: producer._node.endpoint.peers == {endpoint}, "invented peers are let go")
        traffic.flows()
        until(lambda: memory(store) - before < GROWTH, "the store is as large as before")


def _others(peer: Peer, port: int) -> set[bytes]:
    return {endpoint for endpoint in peer.connected if not endpoint.endswith(b":%d" % port)}


def _subscribe_at_length(endpoint: bytes) -> None:
    """Many subscriptions: as long as they may be, and then one that is longer."""
    host, port = endpoint.removeprefix(b"tcp://").split(b":")
    with socket.create_connection((host.decode(), int(port)), timeout=100) as attacker:
        attacker.sendall(GREETING_31 + ready(b"SUB"))
        for number in range(SUBSCRIPTIONS):
            attacker.sendall(encode_command(b"SUBSCRIBE", b"M%0499d" % number))
        with suppress(OSError):
            attacker.sendall(encode_command(b"SUBSCRIBE", b"M" + bytes(60_000)))
        _is_closed(attacker)


def _say_without_end(tower: Tower) -> None:
    """A publisher whose message never ends, to the first node that connects."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        new_context() as context,
        context.socket(zmq.PUB) as beacons,
    ):
        server.settimeout(0.1)
        beacons.connect(tower.addresses[0])
        beacon = encode_beacon(NodeBeacon(b"AB" * 16, b"127.0.0.1", server.getsockname()[1]))
        attacker = None
        while attacker is None:
            beacons.send_multipart(beacon)
            with suppress(TimeoutError):
                attacker, _ = server.accept()
        with attacker:
            attacker.settimeout(100)
            attacker.sendall(GREETING_31 + ready(b"XPUB"))
            endless = frame(b"M" + bytes(9), more=True) * 10_000
            with pytest.raises(OSError):  # it is disconnected
                while True:
                    attacker.sendall(endless)


@contextmanager
def _invented_peers(tower: Tower) -> Iterator[Callable[[], bool]]:
    """Beacons of nodes that there are not, as fast as the tower takes them: whether more are to come."""

    def invent() -> None:
        with new_context() as context, context.socket(zmq.XPUB) as beacons:
            beacons.setsockopt(zmq.SNDHWM, 0)
            beacons.setsockopt(zmq.LINGER, -1)  # the tower stays until it has heard all of them
            beacons.connect(tower.addresses[0])
            beacons.recv()  # the tower's subscription: from now on it hears all of them
            for number in range(INVENTED):
                host, port = b"127.77.%d.%d" % divmod(number % 65_536, 256), 9 + number // 65_536
                beacons.send_multipart(encode_beacon(NodeBeacon(b"%032X" % number, host, port)))

    before = tower.metrics()["beacons_in"]
    thread = threading.Thread(target=invent, daemon=True)
    thread.start()
    yield lambda: tower.metrics()["beacons_in"] - before < INVENTED
    thread.join()


def _is_closed(attacker: socket.socket) -> None:
    with suppress(ConnectionError):
        while attacker.recv(65_536):
            pass
