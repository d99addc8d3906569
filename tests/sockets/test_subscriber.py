"""Our Subscriber and libzmq's PUB and XPUB, our Publisher, or plain sockets."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

import gevent.event
import pytest
import zmq
from ports import LOOPBACK, free_port
from sockets.serving import Recorder, in_hub, publisher, server, subscriber, until
from zmtp.vectors import GREETING_30, GREETING_31, NULL, SIGNATURE, command, message, ready

from dafka.hub.hub import get_hub
from dafka.sockets import limits
from dafka.sockets.errors import EndpointError
from dafka.sockets.peer import Peer
from dafka.sockets.shared import Bounds


def xpub(**options: Any) -> Any:
    return server(zmq.XPUB, xpub_verbose=1, sndhwm=0, **options)


def bound(served: zmq.Socket[bytes]) -> str:
    return served.last_endpoint.decode()


def subscriptions(served: zmq.Socket[bytes], *wanted: bytes) -> None:
    """Wait for these, in any order."""
    left = list(wanted)
    while left:
        left.remove(served.recv())


def test_messages_come_from_all_publishers_once_each_in_order():
    recorder = Recorder()
    with xpub() as one, publisher() as two, subscriber(recorder, bound(one), two.endpoint) as made:
        in_hub(made.connect, bound(one))  # again
        in_hub(made.subscribe, b"a")
        subscriptions(one, b"\x01a")
        until(lambda: two.metrics()["subscriptions"] == 1)
        messages = [[b"a%d" % number, b"x" * (number % 700)] for number in range(2000)]
        for frames in messages:
            one.send_multipart([b"b"])
            one.send_multipart(frames)
        in_hub(two.send_many, messages)
        until(lambda: len(recorder.received) == 4000)
        by_peer: dict[Peer, list[list[bytes]]] = {}
        for peer, frames in recorder.received:
            by_peer.setdefault(peer, []).append(frames)
        assert list(by_peer.values()) == [messages, messages]
        assert {peer.socket_type for peer in by_peer} == {b"XPUB", b"PUB"}
        assert made.metrics()["peers"] == 2


@pytest.mark.parametrize("size", [0, 255, 256, 100_000, 64 << 20])
def test_messages_of_every_size(size: int):
    recorder = Recorder()
    with xpub() as served, subscriber(recorder, bound(served), max_message=65 << 20) as made:
        in_hub(made.subscribe, b"")
        subscriptions(served, b"\x01")
        body = b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)
        served.send_multipart([b"", body, b"end"])
        until(lambda: recorder.received)
        assert recorder.all == [[b"", body, b"end"]]


def test_subscriptions_add_up_and_are_told_to_whoever_is_connected_later():
    recorder = Recorder()
    with subscriber(recorder) as made:
        for prefix in (b"a", b"a", b"b", b"c"):
            in_hub(made.subscribe, prefix)
        in_hub(made.unsubscribe, b"c")
        with xpub() as served:
            in_hub(made.connect, bound(served))
            subscriptions(served, b"\x01a", b"\x01b")
            in_hub(made.unsubscribe, b"a")
            in_hub(made.unsubscribe, b"b")
            in_hub(made.unsubscribe, b"b")  # no more than was subscribed to
            in_hub(made.unsubscribe, b"a")
            assert [served.recv(), served.recv()] == [b"\x00b", b"\x00a"]


@pytest.mark.parametrize(
    ("greeting", "subscribe", "cancel"),
    [
        (GREETING_31, command(b"\x09SUBSCRIBEa"), command(b"\x06CANCELa")),
        (GREETING_30, message(b"\x01a"), message(b"\x00a")),
    ],
)
def test_subscriptions_of_both_forms(greeting: bytes, subscribe: bytes, cancel: bytes):
    with socket.create_server((LOOPBACK, 0)) as listening:
        host, port = listening.getsockname()
        with subscriber(Recorder(), f"tcp://{host}:{port}") as made:
            in_hub(made.subscribe, b"a")
            connection = listening.accept()[0]
            connection.settimeout(100)
            connection.sendall(greeting + ready(b"PUB"))
            expected = read_until(connection, subscribe)
            assert b"SUB" in expected[64:]
            in_hub(made.unsubscribe, b"a")
            read_until(connection, cancel)
            connection.close()


def read_until(connection: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        octets = connection.recv(1000)
        assert octets, received
        received += octets
    return received


def test_thousands_of_subscriptions_and_changes_meanwhile():
    with publisher() as served, subscriber(Recorder()) as made:
        names = [b"%d" % number for number in range(5000)]
        in_hub(lambda: [made.subscribe(name) for name in names])
        in_hub(made.connect, served.endpoint)
        until(lambda: served.metrics()["subscriptions"])
        in_hub(lambda: [made.unsubscribe(name) for name in names[:2500]])
        in_hub(made.subscribe, b"last")
        until(lambda: in_hub(served.has_subscribers, b"last"))
        until(lambda: served.metrics()["subscriptions"] == 2501)


def test_it_connects_as_soon_as_somebody_listens_and_again_after_each_disconnect():
    endpoint = f"tcp://{LOOPBACK}:{free_port()}"
    recorder = Recorder()
    with subscriber(recorder, endpoint) as made:
        in_hub(made.subscribe, b"")
        for number in range(1, 4):
            with xpub(endpoint=endpoint) as served:
                subscriptions(served, b"\x01")
                served.send(b"%d" % number)
                until(lambda number=number: recorder.all[-1:] == [[b"%d" % number]])
            until(lambda number=number: len(recorder.left_peers) >= number)
        # One more where it comes back between the end of its connection and that of the port.
        assert made.metrics()["accepted"] >= 3


def test_one_whose_messages_wait_is_not_read_and_others_are(monkeypatch: pytest.MonkeyPatch):
    """So TCP holds the publisher back: its messages are in the kernel's buffers and in its own queue."""
    monkeypatch.setattr(limits, "HANDLED_MESSAGES", 10)
    gate = Gate()
    with publisher() as slow, publisher() as quick, subscriber(gate, slow.endpoint, quick.endpoint) as made:
        in_hub(made.subscribe, b"")
        for served in (slow, quick):
            until(lambda served=served: served.metrics()["subscriptions"] == 1)
        body = b"x" * 10_000
        for number in range(3000):
            in_hub(slow.send, [b"slow", b"%d" % number, body])
            if slow.metrics()["dropped"]:
                break
        else:
            pytest.fail("nothing held the publisher back")
        in_hub(quick.send_many, [[b"quick"]] * 500)
        until(lambda: gate.count(b"quick") == 500)
        assert gate.count(b"slow") == 0
        assert made.metrics()["received_octets"] < 1_000_000
        in_hub(gate.open.set)
        until(lambda: gate.count(b"slow") >= number)
        assert gate.count(b"slow") == number


class Gate(Recorder):
    """Holds up what begins with ``slow``."""

    def __init__(self) -> None:
        super().__init__()
        self.open = get_hub().run(__import__("gevent.event").event.Event)

    def count(self, first: bytes) -> int:
        return sum(frames[0] == first for frames in self.all)

    def messages(self, peer: Peer, messages: list[list[bytes]]) -> None:
        if messages[0][0] == b"slow":
            self.open.wait()
        super().messages(peer, messages)


def test_one_that_is_left_is_heard_as_long_as_it_goes_on():
    recorder = Recorder()
    with xpub() as served, subscriber(recorder, bound(served)) as made:
        in_hub(made.subscribe, b"")
        subscriptions(served, b"\x01")
        in_hub(recorder.hold.clear)
        served.send(b"sent before")
        until(lambda: recorder.waiting)
        in_hub(made.disconnect, bound(served), 0.5)
        served.send(b"on its way")
        time.sleep(0.8)  # longer than it has to be quiet: its messages wait here
        in_hub(recorder.hold.set)
        until(lambda: len(recorder.received) == 2)
        assert served.recv() == b"\x00"
        until(lambda: recorder.left_peers)
        assert made.metrics()["connections"] == 0


def test_one_that_is_back_before_it_was_left_is_connected_to_anew_and_once():
    recorder = Recorder()
    with publisher() as served, subscriber(recorder, served.endpoint) as made:
        in_hub(made.subscribe, b"")
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(made.disconnect, served.endpoint, 60.0)
        in_hub(made.connect, served.endpoint)
        wanted = {"accepted": 2, "connections": 1, "subscriptions": 1}  # the old connection has gone
        until(lambda: served.metrics().items() >= wanted.items())
        in_hub(served.send, [b"once"])
        until(lambda: recorder.all == [[b"once"]])


def test_it_is_left_for_good():
    recorder = Recorder()
    with publisher() as served, subscriber(recorder, served.endpoint, "tcp://127.0.0.1:1") as made:
        in_hub(made.subscribe, b"")
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(made.disconnect, served.endpoint)
        in_hub(made.disconnect, "tcp://127.0.0.1:1")
        in_hub(made.disconnect, "tcp://127.0.0.1:2")  # never connected
        until(lambda: served.metrics()["connections"] == 0)
        assert made.metrics()["connections"] == 0


@pytest.mark.parametrize("kind", [b"PUSH", b"ROUTER", b"SUB"])
def test_other_sockets_are_refused(kind: bytes):
    with socket.create_server((LOOPBACK, 0)) as listening:
        host, port = listening.getsockname()
        with subscriber(Recorder(), f"tcp://{host}:{port}") as made:
            connection = listening.accept()[0]
            connection.sendall(GREETING_31 + ready(kind))
            until(lambda: made.discarded["socket-type"])
            connection.close()


@pytest.mark.parametrize(
    "wrong", [b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(60), SIGNATURE + b"\x03\x00" + NULL[12:]]
)
def test_a_wrong_greeting_is_tried_again_after_pauses(wrong: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 0.1)
    with socket.create_server((LOOPBACK, 0)) as listening:
        host, port = listening.getsockname()
        listening.settimeout(100)
        with subscriber(Recorder(), f"tcp://{host}:{port}"):
            for _ in range(3):
                connection = listening.accept()[0]
                connection.settimeout(100)
                with suppress(ConnectionError):  # it may have been given up already
                    connection.sendall(wrong)
                    while connection.recv(1000):
                        pass
                connection.close()


def test_a_publisher_that_does_not_read_its_subscriptions_is_connected_to_anew():
    recorder = Recorder()
    with socket.create_server((LOOPBACK, 0)) as listening:
        host, port = listening.getsockname()
        bounds = Bounds(told=100_000)
        with subscriber(recorder, f"tcp://{host}:{port}", bounds=bounds) as made:
            connection = listening.accept()[0]
            connection.sendall(GREETING_31 + ready(b"PUB"))
            until(lambda: recorder.peers)
            for number in range(100_000):
                in_hub(made.subscribe, b"%d" % number + b"x" * 1000)
                in_hub(made.unsubscribe, b"%d" % number + b"x" * 1000)
                if made.discarded["unread"]:
                    break
            assert listening.accept()
            connection.close()


def test_a_message_too_large_ends_its_connection_before_it_has_come():
    with xpub() as served, subscriber(Recorder(), bound(served), max_message=1000) as made:
        in_hub(made.subscribe, b"")
        subscriptions(served, b"\x01")
        served.send_multipart([b"x" * 600, b"x" * 600])
        until(lambda: made.discarded["message-size"])


def test_a_silent_publisher_is_asked_and_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HEARTBEAT_TIMEOUT", 5.0)  # a machine may stand still for some time
    with socket.create_server((LOOPBACK, 0)) as listening:
        host, port = listening.getsockname()
        with subscriber(Recorder(), f"tcp://{host}:{port}") as made:
            connection = listening.accept()[0]
            connection.settimeout(100)
            connection.sendall(GREETING_31 + ready(b"PUB"))
            read_until(connection, command(b"\x04PING\x00\x00"))
            until(lambda: made.discarded["silent"])
            connection.close()


@pytest.mark.parametrize("wrong", ["tcp://*:5", "ipc://here", "127.0.0.1:5555", "tcp://127.0.0.1:99999"])
def test_an_invalid_endpoint_is_refused(wrong: str):
    with subscriber(Recorder()) as made, pytest.raises(EndpointError):
        in_hub(made.connect, wrong)


def test_ipv6():
    recorder = Recorder()
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    with xpub(endpoint="tcp://[::1]:*", ipv6=1) as served, subscriber(recorder, bound(served)) as made:
        in_hub(made.subscribe, b"")
        subscriptions(served, b"\x01")
        served.send(b"six")
        until(lambda: recorder.all == [[b"six"]])


class Counting:
    """A taker that takes one-frame messages of three octets."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def take(self, buffer: bytes, position: int, most: int, cut: int) -> tuple[int, int]:
        taken = 0
        while taken < most and buffer[position : position + 2] == b"\x00\x03" and position + 5 <= len(buffer):
            self.found.append(buffer[position + 2 : position + 5])
            position += 5
            taken += 1
        return position, taken


def test_a_taker_takes_in_bulk_and_the_handler_is_told_each_time():
    recorder = Recorder()
    takers: list[Counting] = []

    def make() -> Counting:
        takers.append(Counting())
        return takers[-1]

    with xpub() as served, subscriber(recorder, bound(served), make_taker=make) as made:
        in_hub(made.subscribe, b"")
        subscriptions(served, b"\x01")
        for number in range(500):
            served.send(b"%03d" % number)
        served.send(b"end")
        served.send(b"other")
        until(lambda: recorder.all == [[b"other"]])
        (taker,) = takers
        assert taker.found == [*(b"%03d" % number for number in range(500)), b"end"]
        assert recorder.peers[0].taker is taker
        assert made.metrics()["messages_in"] == 502


def test_a_publisher_that_was_lost_is_connected_to_again_when_it_is_expected_and_not_before():
    asked: list[tuple[str, float, float]] = []
    pauses: list[float] = []
    comes_back = gevent.event.Event()

    def expect(endpoint: str, began: float, lost: float) -> None:
        pauses.append(time.monotonic() - lost)
        asked.append((endpoint, began, lost))
        comes_back.wait()

    begun = time.monotonic()
    with xpub() as first, subscriber(Recorder(), bound(first), expect=expect) as made:
        endpoint = bound(first)
        until(lambda: made.metrics()["peers"] == 1)
        time.sleep(limits.RECONNECT_SECONDS)  # a connection that has lasted needs no pause
        closed = time.monotonic()
        first.close()
        until(lambda: asked)
        [(name, began, lost)] = asked
        assert name == endpoint
        assert begun <= began < closed <= lost <= time.monotonic()
        assert pauses[0] < limits.RECONNECT_SECONDS / 2
        port = int(endpoint.rpartition(":")[2])
        with socket.create_server((LOOPBACK, port)) as stranger:
            stranger.settimeout(0)
            with pytest.raises(BlockingIOError):
                stranger.accept()
            stranger.settimeout(100)
            in_hub(comes_back.set)
            connection, _ = stranger.accept()
            connection.close()
