"""Our Dealer and libzmq's ROUTER and REP, or plain sockets."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest
import zmq
from ports import LOOPBACK, free_port
from sockets.serving import Recorder, dealer, in_hub, router, server
from timing import until
from zmtp.vectors import GREETING_31, NULL, SIGNATURE, command, message, ready

from dafka.sockets import limits
from dafka.sockets.errors import DisconnectedError, EndpointError


def bound(served: zmq.Socket[bytes]) -> str:
    return served.last_endpoint.decode()


def test_messages_go_to_a_router_and_come_back():
    recorder = Recorder()
    with server(zmq.ROUTER, sndhwm=0) as served, dealer(bound(served), recorder, identity=b"me") as made:
        peer = until(lambda: made.peer)
        assert peer.socket_type == b"ROUTER"
        assert peer.version == (3, 1)
        messages = [[b"%d" % number, b"x" * (number % 700)] for number in range(3000)]
        in_hub(peer.send_many, messages)
        for expected in messages:
            assert served.recv_multipart() == [b"me", *expected]
            served.send_multipart([b"me", *expected])
        until(lambda: len(recorder.received) == 3000)
        assert recorder.all == messages


@pytest.mark.parametrize("size", [0, 255, 256, 100_000, 64 << 20])
def test_messages_of_every_size(size: int):
    recorder = Recorder()
    with server(zmq.ROUTER) as served, dealer(bound(served), recorder, identity=b"me") as made:
        peer = until(lambda: made.peer)
        body = b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)
        in_hub(peer.send, [body, b"end"])
        received = served.recv_multipart()
        assert received == [b"me", body, b"end"]
        served.send_multipart([b"me", body])
        until(lambda: recorder.received)
        assert recorder.all == [[body]]


def test_it_connects_to_our_router():
    there, here = Recorder(lambda peer, message: message), Recorder()
    with router(there) as served, dealer(served.endpoint, here, identity=b"me") as made:
        peer = until(lambda: made.peer)
        in_hub(peer.send_many, [[b"%d" % number] for number in range(5000)])
        until(lambda: len(here.received) == 5000)
    assert there.peers[0].identity == b"me"
    assert here.all == [[b"%d" % number] for number in range(5000)]


def test_it_connects_as_soon_as_somebody_listens_and_again_after_each_disconnect():
    endpoint = f"tcp://{LOOPBACK}:{free_port()}"
    recorder = Recorder()
    with dealer(endpoint, recorder, identity=b"me") as made:
        for number in range(1, 4):
            with server(zmq.ROUTER, endpoint) as served:

                def heard(served: zmq.Socket[bytes] = served, number: int = number) -> bool:
                    with suppress(AttributeError, DisconnectedError):  # there is none, or one that is closing
                        in_hub(made.peer.send, [b"%d" % number])  # type: ignore[union-attr]
                    return bool(served.poll(100))

                until(heard)
                assert served.recv_multipart() == [b"me", b"%d" % number]
            until(lambda number=number: len(recorder.left_peers) >= number)
            until(lambda: made.peer is None)
        # One more where it comes back between the end of its connection and that of the port.
        assert made.metrics()["accepted"] >= 3
    assert recorder.left_peers == recorder.peers


def test_it_speaks_2_0_with_a_server_of_2_0():
    recorder = Recorder()
    with socket.create_server((LOOPBACK, 0)) as listening:
        host, port = listening.getsockname()
        with dealer(f"tcp://{host}:{port}", recorder, identity=b"me") as made:
            connection, _ = listening.accept()
            connection.sendall(SIGNATURE + b"\x01\x06" + b"\x00\x00" + message(b"hello"))
            until(lambda: recorder.received)
            assert recorder.all == [[b"hello"]]
            in_hub(made.peer.send, [b"a", b"b"])  # type: ignore[union-attr]
            received = b""
            while not received.endswith(b"\x00\x02me" + message(b"a", b"b")):
                received += connection.recv(100)
            connection.close()


def test_a_silent_server_is_asked_and_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HEARTBEAT_TIMEOUT", 0.6)

    def pings() -> int:
        recorder = Recorder()
        with socket.create_server((LOOPBACK, 0)) as listening:
            host, port = listening.getsockname()
            with dealer(f"tcp://{host}:{port}", recorder) as made:
                connection, _ = listening.accept()
                connection.sendall(GREETING_31 + ready(b"ROUTER"))
                until(lambda: made.discarded["silent"])
                received = b""
                while piece := connection.recv(1000):
                    received += piece
                connection.close()
        assert recorder.left_peers == recorder.peers
        return received.count(command(b"\x04PING\x00\x00"))

    # A machine that stands still for so long leaves no time for any.
    assert any(1 <= pings() <= 6 for _ in range(8))


def test_a_server_that_answers_pings_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)

    def is_kept(seconds: float) -> bool:
        """Whether it is there still after some more than so many seconds, without which nothing may come."""
        monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", seconds / 40)
        monkeypatch.setattr(limits, "HEARTBEAT_TIMEOUT", seconds)
        with server(zmq.ROUTER) as served, dealer(bound(served), Recorder(), identity=b"me") as made:
            peer = until(lambda: made.peer)
            octets = made.metrics()["octets_in"]
            until(lambda: made.metrics()["octets_in"] >= octets + 60 * len(command(b"\x04PONG")))
            return made.peer is peer

    assert is_kept(2.0) or is_kept(8.0) or is_kept(30.0)  # a busy machine may stop one of both for a while


@pytest.mark.parametrize(
    ("octets", "cause"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "greeting"),
        (SIGNATURE + b"\x03\x01" + b"CURVE" + bytes(15) + bytes(32), "mechanism"),
        (GREETING_31 + ready(b"PUB"), "socket-type"),
        (GREETING_31 + command(b"\x05ERROR\x03bad"), "refused"),
        (SIGNATURE + b"\x03\x01" + NULL, "handshake-slow"),
    ],
)
def test_a_wrong_server_is_counted_and_tried_again(
    octets: bytes, cause: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 0.2 if cause == "handshake-slow" else 100.0)
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    monkeypatch.setattr(limits, "RECONNECT_SECONDS", 0.01)
    recorder = Recorder()
    with socket.create_server((LOOPBACK, 0)) as listening:
        host, port = listening.getsockname()
        with dealer(f"tcp://{host}:{port}", recorder) as made:
            for number in range(1, 4):
                connection, _ = listening.accept()
                with suppress(OSError):  # it may have been given up already
                    connection.sendall(octets)
                until(lambda number=number: made.discarded[cause] >= number)
                connection.close()
    assert recorder.peers == []


@pytest.mark.parametrize(
    "endpoint",
    ["127.0.0.1:5555", "tcp://*:5555", "tcp://127.0.0.1:*", "tcp://a:99999", "ipc:///tmp/x", "inproc://x"],
)
def test_an_endpoint_that_cannot_be_connected_to_is_refused(endpoint: str):
    with pytest.raises(EndpointError, match=r"tcp://|ports"), dealer(endpoint, Recorder()):
        pass


def test_a_name_with_several_addresses_is_tried_at_each():
    with server(zmq.ROUTER, "tcp://127.0.0.1:*") as served:
        port = bound(served).rsplit(":", 1)[1]
        with dealer(f"tcp://localhost:{port}", Recorder()) as made:  # also where localhost is ::1 first
            until(lambda: made.peer)
