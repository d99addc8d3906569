"""Strangers at an endpoint's port: clients that say nothing, or something else, or too much."""

from __future__ import annotations

import gc
import socket
import struct
from contextlib import ExitStack, closing, suppress

import pytest
from ports import LOOPBACK
from timing import SECONDS, until

from dafka.hub.hub import get_hub
from dafka.overlay import Endpoint, limits
from dafka.overlay.node import limits as node_limits
from dafka.overlay.wire.frames import FrameReader
from dafka.sockets import limits as socket_limits


@pytest.fixture
def endpoint():
    with Endpoint(listen=f"{LOOPBACK}:0") as one:
        yield one


def stranger(endpoint):
    host, _, port = endpoint.address.rpartition(":")
    return closing(socket.create_connection((host, int(port)), timeout=SECONDS))


def connections(endpoint):
    return get_hub().run(lambda: len(endpoint._carrier._links))


def test_strangers_who_say_nothing_do_not_keep_peers_out(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 20)
    monkeypatch.setattr(limits, "HANDSHAKE_LEAST_SECONDS", 0.05)
    with ExitStack() as stack, Endpoint() as peer:
        for _ in range(20):
            stack.enter_context(stranger(endpoint))
        until(lambda: connections(endpoint) >= 20)
        peer.peer_nosync(endpoint.address, retry=0.05)
        assert peer.await_peer(endpoint.id, SECONDS)


def test_a_handshake_that_never_ends_is_ended(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 0.2)
    with stranger(endpoint) as one:
        one.sendall(struct.pack(">I", 1000) + b"\x06ZEEK")
        while one.recv(1000):
            pass
    until(lambda: connections(endpoint) == 0)


def test_octets_of_strangers_are_freed_with_them_not_with_the_next_collection_of_garbage(endpoint):
    def held():
        readers = [one for one in gc.get_objects() if type(one) is FrameReader]
        return sum(len(one._partial) + len(one._octets) for one in readers)

    gc.collect()
    gc.disable()
    try:
        with ExitStack() as stack:
            for _ in range(5):
                one = stack.enter_context(stranger(endpoint))
                one.sendall(struct.pack(">I", limits.HANDSHAKE_OCTETS) + b"\x0a" + bytes(500_000))
            until(lambda: held() > 2_500_000)
        until(lambda: connections(endpoint) == 0)
        until(lambda: held() < 500_000)
    finally:
        gc.enable()


def test_handshakes_of_tls_are_bounded_in_number_and_honest_ones_have_their_time(monkeypatch):
    monkeypatch.setattr(node_limits, "HANDSHAKES", 10)
    monkeypatch.setattr(node_limits, "HANDSHAKE_LEAST_SECONDS", 0.05)
    with Endpoint(listen=f"{LOOPBACK}:0", tls="anonymous") as endpoint, ExitStack() as stack:
        silent = [stack.enter_context(stranger(endpoint)) for _ in range(30)]
        with Endpoint(tls="anonymous") as peer:
            peer.peer_nosync(endpoint.address, retry=0.05)
            assert peer.await_peer(endpoint.id, SECONDS)
        assert get_hub().run(lambda: len(endpoint._carrier._doors._greetings)) <= 10
        assert silent[0].recv(1) == b""  # the oldest had to go


def test_octets_of_all_strangers_together_are_bounded(monkeypatch, endpoint):
    monkeypatch.setattr(socket_limits, "RECEIVED_OCTETS", 1_000_000)
    monkeypatch.setattr(socket_limits, "RECEIVED_FAIR_OCTETS", 10_000)
    monkeypatch.setattr(node_limits, "MESSAGE_SECONDS", 0.3)
    with ExitStack() as stack:
        many = [stack.enter_context(stranger(endpoint)) for _ in range(20)]
        for one in many:
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.send(struct.pack(">I", limits.HANDSHAKE_OCTETS) + b"\x0a" + bytes(400_000))
        links = endpoint._carrier._links
        until(lambda: links.received.waiting)
        assert links.received.used <= 1_000_000 + limits.HANDSHAKE_OCTETS
        with Endpoint() as peer:  # its messages are small
            assert peer.peer(endpoint.address, timeout=SECONDS)
        until(lambda: connections(endpoint) < 20)  # a connection that holds up others is too slow


def test_the_connection_with_most_octets_waiting_is_closed_first(monkeypatch):
    monkeypatch.setattr(node_limits, "ALL_LINKS_OCTETS", 8_000_000)
    with Endpoint(listen=f"{LOOPBACK}:0", versions=(1, 1)) as endpoint, ExitStack() as stack:
        small, large = (stack.enter_context(stranger(endpoint)) for _ in range(2))
        until(lambda: connections(endpoint) == 2)

        def fill():
            links = endpoint._carrier._links
            one, other = links
            links.send(one, bytes(3_000_000))
            links.send(other, bytes(6_000_000))
            return one.queued, other.queued

        assert get_hub().run(fill) == (3_000_000, 0)
        until(lambda: connections(endpoint) == 1)
        assert small.recv(1)
        with suppress(ConnectionError):
            while large.recv(1 << 20):
                pass
