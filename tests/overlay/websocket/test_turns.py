"""With hostile and slow clients the hub's turns stay short and its memory bounded."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, closing

import pytest
from overlay.websocket.test_connections import REQUEST, frame
from overlay.websocket.test_server import PATIENCE, count, metrics, raw, subscribed
from ports import LOOPBACK
from timing import each_time, short_turns, until
from websockets.frames import Opcode

from dafka.overlay import Endpoint
from dafka.overlay.websocket import limits

MOST = limits.MESSAGE_OCTETS - 100


def filled(begin: str, element: str, end: str) -> bytes:
    """As many elements as a message may hold."""
    times = (MOST - len(begin) - len(end)) // (len(element) + 1)
    return (begin + ",".join([element] * times) + end).encode()


VECTOR = '{"topic":"/t","@data-type":"vector","data":['
LARGE = {
    "null": filled("[", "null", "]"),
    "arrays": filled("[", "[]", "]"),
    "objects": filled("[", '{"a":1}', "]"),
    "numbers": filled("[", "1e9", "]"),
    "digits": b"1" * MOST,
    "blanks": b" " * MOST,
    "brackets": b"[" * MOST,
    "escapes": b'"' + b"\\n" * (MOST // 2 - 1) + b'"',
    "values": filled(VECTOR, '{"@data-type":"count","data":1}', "]}"),
    "times": filled(VECTOR, '{"@data-type":"timestamp","data":"2022-04-10T07:00:00.123456789"}', "]}"),
    "text": b'{"topic":"/t","@data-type":"string","data":"' + b"x" * (MOST - 60) + b'"}',
}


@pytest.fixture
def endpoint():
    with Endpoint(websocket=f"{LOOPBACK}:0") as one:
        yield one


def opened(endpoint, prefixes: bytes = b"[]") -> socket.socket:
    one = raw(endpoint)
    one.sendall(REQUEST + b"\r\n" + frame(Opcode.TEXT, prefixes))
    octets = b""
    while b'"ack"' not in octets:
        octets += one.recv(4096)
    return one


@pytest.mark.parametrize("name", LARGE)
@each_time
def test_a_large_message_makes_no_long_turn_and_others_are_served_meanwhile(endpoint, name):
    with (
        closing(opened(endpoint)) as client,
        subscribed(endpoint, "/t") as other,
        subscribed(endpoint) as third,
        short_turns(),
    ):
        client.sendall(frame(Opcode.TEXT, LARGE[name]))
        third.send(count("/t", 1))
        while other.recv(PATIENCE) != count("/t", 1):
            pass
        client.sendall(frame(Opcode.PING, b"done"))
        answers = b""
        while b"\x8a\x04done" not in answers:
            answers += client.recv(65536)


FLOODS = {
    "pings": (b"", frame(Opcode.PING, b"") * 20_000),
    "empty fragments": (frame(Opcode.TEXT, b"", fin=False), frame(Opcode.CONT, b"", fin=False) * 20_000),
    "values": (b"", frame(Opcode.TEXT, count("/nobody", 1).encode()) * 2000),
    "rubbish": (b"", frame(Opcode.TEXT, b"x") * 5000),
}


@pytest.mark.parametrize("name", FLOODS)
@each_time
def test_a_flood_makes_no_long_turn_and_others_are_served_meanwhile(endpoint, name):
    begin, flood = FLOODS[name]
    with (
        closing(opened(endpoint)) as client,
        subscribed(endpoint, "/t") as other,
        subscribed(endpoint) as third,
        short_turns(),
    ):
        reading = threading.Thread(target=client.recv, args=(1_000_000, socket.MSG_WAITALL), daemon=True)
        reading.start()
        client.sendall(begin + flood)
        for number in range(20):
            third.send(count("/t", number))
            assert other.recv(PATIENCE) == count("/t", number)
        assert metrics(endpoint)["received_octets"] < 200_000
        client.shutdown(socket.SHUT_RDWR)
        reading.join(PATIENCE)


@each_time
def test_a_large_value_for_a_client_makes_no_long_turn(endpoint):
    with subscribed(endpoint, "/t") as client, short_turns():
        endpoint.publish("/t", [[number] for number in range(20_000)])
        assert len(client.recv(PATIENCE)) > limits.MESSAGE_OCTETS


@each_time
def test_hundreds_of_clients_that_come_and_go_at_once_make_no_long_turn(endpoint):
    with short_turns():
        with ExitStack() as stack:
            some = [stack.enter_context(closing(raw(endpoint))) for _ in range(200)]
            for one in some:
                one.sendall(REQUEST + b"\r\n" + frame(Opcode.TEXT, b'["/t"]'))
            until(lambda: metrics(endpoint)["clients"] == 200)
        until(lambda: metrics(endpoint)["connections"] == 0)


@each_time
def test_a_burst_for_many_clients_makes_no_long_turn(endpoint):
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(closing(opened(endpoint, b'["/t"]')))
        with short_turns():
            endpoint.publish_batch([("/t", number) for number in range(2000)])
            until(lambda: metrics(endpoint)["queued_octets"] > 0)
