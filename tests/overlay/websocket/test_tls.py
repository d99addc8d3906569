"""TLS without a network, in whatever pieces its octets come."""

from __future__ import annotations

import ssl

import pytest
from overlay.websocket.certificates import client_context, server_context

from dafka.overlay.websocket.tls import Tls


def pair() -> tuple[Tls, Tls]:
    return Tls(client_context(), "localhost"), Tls(server_context())


def shake_hands(client: Tls, server: Tls, size: int = 10_000) -> None:
    client.receive(b"")
    octets = [client.take_output(), b""]
    sides = [server, client]
    while any(octets):
        for index, side in enumerate(sides):
            here, octets[index] = octets[index], b""
            for begin in range(0, len(here), size):
                assert side.receive(here[begin : begin + size]) == b""
            octets[1 - index] += side.take_output()


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_handshake_and_octets_in_both_directions(size):
    client, server = pair()
    shake_hands(client, server, size)
    assert client.is_open
    assert server.is_open
    for one, other in ((client, server), (server, client)):
        one.send(b"x" * 100_000)
        one.send(b"")
        octets = one.take_output()
        assert (
            b"".join(other.receive(octets[i : i + 1000]) for i in range(0, len(octets), 1000))
            == b"x" * 100_000
        )


def test_a_server_of_another_name_is_refused_and_told():
    client, server = Tls(client_context(), "example.org"), Tls(server_context())
    client.receive(b"")
    server.receive(client.take_output())
    with pytest.raises(ssl.SSLCertVerificationError):
        client.receive(server.take_output())
    with pytest.raises(ssl.SSLError):
        server.receive(client.take_output())


@pytest.mark.parametrize("octets", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(100_000)])
def test_anything_but_tls_is_an_error(octets):
    with pytest.raises(ssl.SSLError):
        Tls(server_context()).receive(octets)
