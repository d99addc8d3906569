"""Handshakes of CURVE by strangers: fuzzed, half-open by the thousand, and listed nodes meanwhile."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress

import zmq
from descriptors import descriptors
from sockets.bystanders import is_closed
from sockets.serving import plain
from sockets.test_curve import CLIENT, SERVER, of_server, publisher, theirs
from timing import until

from dafka.hub.hub import get_hub
from dafka.sockets import limits
from dafka.zmtp.connection import Connection, Options
from dafka.zmtp.curve import CurveClient


def client() -> Connection:
    def make(check):
        return CurveClient(check, SERVER.public, CLIENT)

    return Connection(Options((b"SUB",), accepts=False, mechanism=make))


def exchange(side: Connection, connection: socket.socket, steps: int, chance: random.Random | None) -> None:
    """Some steps of a handshake, with octets changed by ``chance``."""
    for _ in range(steps):
        octets = bytearray(side.take_output())
        for _ in range(0 if chance is None else chance.randint(0, 2)):
            if octets:
                octets[chance.randrange(len(octets))] ^= 1 << chance.randrange(8)
        connection.sendall(octets)
        received = connection.recv(65536)
        if not received:
            return
        with suppress(Exception):
            side.receive(received)


def hears(served) -> None:
    """A client of libzmq's on the list hears what is published."""
    with theirs(zmq.SUB) as known:
        known.connect(served.endpoint)
        known.subscribe(b"")

        def published() -> bool:
            get_hub().run(served.send, [b"for those on the list"])
            return bool(known.poll(20))

        until(published)


def test_fuzzed_commands_are_refused_and_disturb_nobody_else():
    chance = random.Random(11)
    with publisher(**of_server()) as served:
        for _ in range(200):
            with plain(served.endpoint) as stranger, suppress(OSError):
                stranger.settimeout(0.05)
                exchange(client(), stranger, 3, chance)
        hears(served)
        assert "internal" not in served.discarded


def test_thousands_of_half_open_connections_leave_room_for_listed_nodes(monkeypatch):
    """They have said a greeting and a HELLO."""
    monkeypatch.setattr(limits, "HANDSHAKES", 200)
    monkeypatch.setattr(limits, "HANDSHAKE_LEAST_SECONDS", 0.2)
    with descriptors(2500), publisher(**of_server()) as served, ExitStack() as opened:
        half = []
        for _ in range(1000):
            half.append(opened.enter_context(plain(served.endpoint)))
            with suppress(OSError):
                exchange(client(), half[-1], 2, None)
        hears(served)
        assert is_closed(half[0])
        assert served.metrics()["connections"] <= 201 and served.metrics()["received_octets"] < 1 << 20
        # On a busy machine many are over their time before they are too many.
        assert served.discarded["handshakes"] + served.discarded["handshake-slow"] >= 700


def test_slow_ones_end(monkeypatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 0.3)
    with publisher(**of_server()) as served, plain(served.endpoint) as slow:
        exchange(client(), slow, 2, None)
        assert is_closed(slow)
        assert served.discarded == {"handshake-slow": 1}
