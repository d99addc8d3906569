"""The session of a WebSocket client with libbroker, replayed on sockets: the server says the same octets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from overlay.vectors import Vector, named, vectors
from overlay.websocket.test_recorded_forms import ours
from overlay.websocket.test_server import raw, url
from ports import LOOPBACK
from timing import SECONDS
from websockets.sync.client import connect

from dafka.overlay import Endpoint
from dafka.overlay.values import Count

SERVER = "88888888-8888-4888-8888-888888888888"
CLIENT, THIS, OTHER = "client->server", "server->client", "server->other-client"
LOCAL = "ws-session/06"
"""What the program of the server has published."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(id=SERVER, websocket=f"{LOOPBACK}:0") as one:
        yield one


def exactly(one: socket.socket, size: int) -> bytes:
    octets = b""
    while len(octets) < size:
        more = one.recv(size - len(octets))
        assert more, "the server has closed the connection"
        octets += more
    return octets


def head(one: socket.socket) -> list[str]:
    octets = b""
    while not octets.endswith(b"\r\n\r\n"):
        octets += exactly(one, 1)
    return octets.decode().split("\r\n")


def frame(one: socket.socket) -> bytes:
    octets = exactly(one, 2)
    if octets[1] == 126:
        octets += exactly(one, 2)
    size = octets[1] if octets[1] < 126 else int.from_bytes(octets[2:], "big")
    return octets + exactly(one, size)


def rows(*sessions: str) -> list[Vector]:
    return [one for one in vectors() if one.session in sessions]


def check(row: Vector, octets: bytes) -> None:
    """``octets``: the frame of ours that stands where libbroker's was recorded."""
    if '"ack"' not in row.meaning:
        assert octets == row.octets, row.name
        return
    texts = [json.loads(some[2:]) for some in (octets, row.octets)]
    assert texts[0].pop("version") != texts[1].pop("version")
    assert texts[0] == texts[1]


def test_a_session_with_every_type_and_every_error(endpoint):
    with connect(url(endpoint)) as other, closing(raw(endpoint)) as client:
        other.send('["/t"]')
        assert "ack" in other.recv(SECONDS)
        client.sendall(named("ws-session/01").octets)
        recorded = named("ws-session/02").octets.decode().split("\r\n")
        answer = head(client)
        assert answer[0].split()[1] == recorded[0].split()[1] == "101"
        assert {one for one in recorded if one.startswith("Sec-WebSocket-Accept")} <= set(answer)
        compared = 0
        for row in rows("ws-session", "ws-data", "ws-error")[2:]:
            if not row.octets:
                assert frame(client)[0] == 0x88, "ours says why it closes, libbroker does not"
                assert client.recv(1) == b""
                break
            if row.direction == CLIENT:
                client.sendall(row.octets)
            elif row.direction == THIS:
                if row.name == LOCAL:
                    endpoint.publish("/client/local", Count(1))
                check(row, frame(client))
                compared += 1
            else:
                assert other.recv(SECONDS) == ours(row.octets.decode()), row.name
                compared += 1
        assert compared == 59


def test_another_path_is_refused_with_the_same_words(endpoint):
    with closing(raw(endpoint)) as client:
        client.sendall(named("ws-wrong-path/01").octets)
        recorded = named("ws-wrong-path/02").octets.decode()
        answer = head(client)
        assert answer[0].split()[1] == recorded.split()[1] == "400"
        body = recorded.partition("\r\n\r\n")[2]
        assert exactly(client, len(body)).decode() == body
