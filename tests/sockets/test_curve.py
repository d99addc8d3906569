"""CURVE between our sockets and libzmq's, as servers and as clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
import zmq
from contexts import new_context
from ports import LOOPBACK
from sockets.serving import Recorder, in_hub, router
from timing import each_time, no_long_turn, until
from zmq.utils import z85

from dafka.hub.hub import get_hub
from dafka.sockets import limits, listening
from dafka.sockets.publisher import Publisher
from dafka.sockets.subscriber import Subscriber
from dafka.zmtp.curve import CurveClient, CurveServer, Pair


def pair() -> Pair:
    public, secret = zmq.curve_keypair()
    return Pair(z85.decode(public), z85.decode(secret))


SERVER, CLIENT, STRANGER = pair(), pair(), pair()


def of_server(*known: Pair) -> dict[str, Any]:
    keys = {one.public for one in known or (CLIENT,)}
    return {"mechanism": lambda check: CurveServer(check, SERVER, keys.__contains__)}


def of_client(own: Pair = CLIENT) -> dict[str, Any]:
    return {"mechanism": lambda check: CurveClient(check, SERVER.public, own)}


@contextmanager
def publisher(**options: Any) -> Iterator[Publisher]:
    hub = get_hub()
    made = hub.run(lambda: Publisher(hub, listening.bind(LOOPBACK, 0), **options))
    try:
        yield made
    finally:
        in_hub(made.close)


@contextmanager
def subscriber(endpoint: str, recorder: Recorder, **options: Any) -> Iterator[Subscriber]:
    hub = get_hub()
    made = hub.run(lambda: Subscriber(hub, handler=recorder, **options))
    in_hub(made.subscribe, b"")
    in_hub(made.connect, endpoint)
    try:
        yield made
    finally:
        in_hub(made.close)


@contextmanager
def theirs(kind: int, own: Pair = CLIENT, *, serves: bool = False) -> Iterator[zmq.Socket[bytes]]:
    with new_context() as context, context.socket(kind) as made:
        made.linger, made.rcvtimeo = 0, 100_000
        if serves:
            made.curve_server = True
            made.curve_secretkey = SERVER.secret
        else:
            made.curve_serverkey = SERVER.public
            made.curve_publickey, made.curve_secretkey = own
        yield made


MESSAGES = [[b"%d" % number, b"x" * size] for number, size in enumerate([0, 1, 200, 255, 256, 5000, 70_000])]


def test_a_subscriber_of_libzmqs_at_our_publisher():
    with publisher(**of_server()) as served, theirs(zmq.SUB) as sub:
        sub.connect(served.endpoint)
        sub.subscribe(b"")
        until(lambda: in_hub(served.has_subscribers, b"0"))
        in_hub(served.send_many, MESSAGES)
        assert [sub.recv_multipart() for _ in MESSAGES] == MESSAGES


def test_our_subscriber_at_a_publisher_of_libzmqs():
    recorder = Recorder()
    with theirs(zmq.XPUB, serves=True) as xpub:
        port = xpub.bind_to_random_port(f"tcp://{LOOPBACK}")
        with subscriber(f"tcp://{LOOPBACK}:{port}", recorder, **of_client()):
            assert xpub.recv() == b"\x01"
            for message in MESSAGES:
                xpub.send_multipart(message)
            until(lambda: len(recorder.received) == len(MESSAGES))
            assert recorder.all == MESSAGES
            assert recorder.peers[0].key == SERVER.public


def test_a_dealer_of_libzmqs_at_our_router():
    recorder = Recorder(lambda peer, message: [b"to", *message])
    with router(recorder, **of_server()) as served, theirs(zmq.DEALER) as dealer:
        dealer.connect(served.endpoint)
        for message in MESSAGES:
            dealer.send_multipart(message)
            assert dealer.recv_multipart() == [b"to", *message]
        assert recorder.peers[0].key == CLIENT.public


def test_messages_of_many_megabytes_hold_up_nobody():
    body = bytes(30_000_000)
    recorder = Recorder(lambda peer, message: message)

    @each_time
    def exchange() -> None:
        with router(recorder, **of_server()) as served, theirs(zmq.DEALER) as dealer:
            hub = get_hub()
            dealer.connect(served.endpoint)
            dealer.send(b"first")
            assert dealer.recv() == b"first"
            hub.run(hub.turns.reset)
            dealer.send(body)
            assert dealer.recv() == body
            no_long_turn(hub.turns.longest_cpu, 0.02)

    exchange()


@pytest.mark.parametrize("own", [STRANGER, None], ids=["a key that is not on the list", "no key"])
def test_a_stranger_of_libzmqs_hears_nothing(own):
    with publisher(**of_server()) as served, new_context() as context, context.socket(zmq.SUB) as sub:
        sub.linger, sub.rcvtimeo = 0, 200
        if own is not None:
            sub.curve_serverkey = SERVER.public
            sub.curve_publickey, sub.curve_secretkey = own
        sub.connect(served.endpoint)
        sub.subscribe(b"")
        # A client without a key leaves by itself.
        until(lambda: served.discarded["key"] if own else served.metrics()["accepted"])
        until(lambda: not served.metrics()["connections"])
        in_hub(served.send, [b"secret"])
        with pytest.raises(zmq.Again):
            sub.recv()
        assert not in_hub(served.has_subscribers, b"secret")


def test_a_peer_that_is_taken_off_the_list_is_disconnected(monkeypatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    known = {CLIENT.public}
    recorder = Recorder()
    keys = {"mechanism": lambda check: CurveServer(check, SERVER, known.__contains__)}
    with publisher(**keys) as served, subscriber(served.endpoint, recorder, **of_client()):
        until(lambda: in_hub(served.has_subscribers, b"x"))
        known.clear()
        until(lambda: recorder.left_peers and served.discarded["key"])
        until(lambda: not in_hub(served.has_subscribers, b"x"))


def test_a_recording_of_the_wire_shows_nothing_of_what_was_said():
    recorded = bytearray()
    recorder = Recorder()
    with (
        publisher(**of_server()) as served,
        recording(served.endpoint, recorded) as endpoint,
        subscriber(endpoint, recorder, **of_client()) as made,
    ):
        in_hub(made.subscribe, b"a topic that is secret")
        until(lambda: in_hub(served.has_subscribers, b"a topic that is secret"))
        in_hub(served.send, [b"a topic that is secret", b"a value that is secret" * 100])
        until(lambda: recorder.received)
    assert b"CURVE" in recorded and len(recorded) > 2500
    assert b"secret" not in recorded and CLIENT.public not in recorded and b"SUB" not in recorded


@contextmanager
def recording(endpoint: str, recorded: bytearray) -> Iterator[str]:
    """An address whose connection is passed on, and written down."""
    host, port = endpoint.removeprefix("tcp://").split(":")

    def passes(source: socket.socket, target: socket.socket) -> None:
        while octets := source.recv(65536):
            recorded.extend(octets)
            target.sendall(octets)
        target.shutdown(socket.SHUT_WR)

    with closing(socket.create_server((LOOPBACK, 0))) as port_of_its_own:

        def accept() -> None:
            with port_of_its_own.accept()[0] as one, socket.create_connection((host, int(port))) as other:
                back = threading.Thread(target=quietly, args=(passes, other, one))
                back.start()
                quietly(passes, one, other)
                back.join()

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"tcp://{LOOPBACK}:{port_of_its_own.getsockname()[1]}"
        thread.join()


def quietly(passes: Any, source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        passes(source, target)
