"""Strangers at an endpoint's port: whoever connects and says nothing, or something else, or too much."""

from __future__ import annotations

import gc
import socket
import struct
from contextlib import ExitStack, closing

import pytest
from timing import SECONDS, until

from dafka.hub.hub import get_hub
from dafka.overlay import Endpoint, limits
from dafka.overlay.wire.frames import FrameReader


@pytest.fixture
def endpoint():
    with Endpoint(listen="127.0.0.1:0") as one:
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


def test_what_strangers_have_sent_is_gone_with_them_not_with_the_next_collection_of_garbage(endpoint):
    def held():
        readers = [one for one in gc.get_objects() if isinstance(one, FrameReader)]
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
