"""Peers that are wrong, half-open, too many or mad; and what they do to the others: nothing."""

from __future__ import annotations

import logging
import random
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import forking
import pytest
import zmq
from ports import LOOPBACK, free_port
from sockets.bystanders import alive, echo, is_closed
from sockets.serving import Recorder, client, in_hub, plain, router
from timing import until
from zmtp.vectors import GREETING_31, SIGNATURE, command, frame, greeting_2, message, ready

from dafka.hub.hub import get_hub
from dafka.sockets import limits, listening
from dafka.sockets.router import Router
from dafka.zmtp import limits as zmtp_limits


@pytest.mark.parametrize(
    ("octets", "cause"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "greeting"),
        (b"\x00\x00\x00\x23\x00\x12\x00\x04", "greeting"),
        (SIGNATURE + b"\x03\x01CURVE" + bytes(15 + 32), "mechanism"),
        (GREETING_31 + ready(b"SUB"), "socket-type"),
        (GREETING_31 + message(b"too early"), "handshake"),
        (GREETING_31 + command(b"\x05ERROR\x02no"), "refused"),
        (GREETING_31 + ready(b"DEALER") + b"\xff\xff", "flags"),
        (GREETING_31 + ready(b"DEALER") + b"\x02" + b"\x7f" * 8, "message-size"),
        (greeting_2(2), "socket-type"),
    ],
)
def test_a_wrong_peer_is_disconnected_counted_and_named_in_the_log(
    octets: bytes, cause: str, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING, "dafka.sockets"), router(echo()) as served, alive(served):
        with plain(served.endpoint) as wrong:
            wrong.sendall(octets)
            assert is_closed(wrong)
            host, port = wrong.getsockname()
        assert served.discarded == {cause: 1}
    assert f"{host}:{port}" in caplog.text


@pytest.mark.parametrize(
    "octets", [b"", b"\xff", SIGNATURE, SIGNATURE + b"\x03", GREETING_31, greeting_2(5)[:-1]]
)
def test_a_half_open_handshake_times_out(octets: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    recorder = echo()
    with router(recorder) as served, alive(served):
        with monkeypatch.context() as soon, plain(served.endpoint) as half:
            soon.setattr(limits, "HANDSHAKE_SECONDS", 0.2)
            half.sendall(octets)
            assert is_closed(half)
        assert served.discarded == {"handshake-slow": 1}


def test_an_established_peer_may_be_silent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    with router(echo()) as served, alive(served):
        with monkeypatch.context() as soon:
            soon.setattr(limits, "HANDSHAKE_SECONDS", 0.1)
            time.sleep(0.3)
        assert not served.discarded


def test_many_half_open_handshakes_end_the_oldest_of_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "HANDSHAKES", 20)
    monkeypatch.setattr(limits, "HANDSHAKE_LEAST_SECONDS", 0.05)
    with router(echo()) as served, ExitStack() as stack, alive(served):
        half = [stack.enter_context(plain(served.endpoint)) for _ in range(60)]
        until(lambda: served.discarded["handshakes"] == 40)
        assert all(is_closed(one) for one in half[:40])
        half[-1].sendall(GREETING_31 + ready(b"DEALER", b"last"))
        until(lambda: served.peer(b"last"))


def test_connections_beyond_the_limit_are_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "CONNECTIONS", 5)
    with router(echo()) as served, ExitStack() as stack:
        good = [stack.enter_context(plain(served.endpoint)) for _ in range(5)]
        for one in good:
            one.sendall(GREETING_31 + ready(b"DEALER"))
        until(lambda: served.metrics()["peers"] == 5)
        with plain(served.endpoint) as more:
            assert is_closed(more)
        assert served.discarded["connections"] == 1
        good.pop().close()
        until(lambda: served.metrics()["connections"] == 4)
        with plain(served.endpoint) as more:
            more.sendall(GREETING_31 + ready(b"DEALER", b"more"))
            until(lambda: served.peer(b"more"))


def test_a_message_that_never_ends_is_refused():
    with router(echo(), max_message=1 << 20) as served, alive(served), plain(served.endpoint) as endless:
        endless.sendall(GREETING_31 + ready(b"DEALER"))
        with pytest.raises(OSError):
            while True:
                endless.sendall(frame(b"x" * 1000, more=True) * 50)
                assert served.metrics()["received_octets"] < 2 << 20
        assert served.discarded == {"message-size": 1}


def test_a_message_of_many_empty_frames_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zmtp_limits, "MESSAGE_FRAMES", 1000)
    with router(echo()) as served, alive(served), plain(served.endpoint) as endless:
        endless.sendall(GREETING_31 + ready(b"DEALER") + frame(b"", more=True) * 2000)
        assert is_closed(endless)
        assert served.discarded == {"message-frames": 1}


def test_a_newer_peer_takes_over_an_identity():
    recorder = echo()
    with router(recorder) as served, plain(served.endpoint) as old:
        old.sendall(GREETING_31 + ready(b"DEALER", b"me"))
        first = until(lambda: served.peer(b"me"))
        with client(zmq.DEALER, served.endpoint, b"me") as new:
            new.send(b"hello")
            assert new.recv() == b"hello"
            assert is_closed(old)
            until(lambda: recorder.left_peers == [first])
            assert served.peer(b"me") is recorder.peers[1]
            assert served.discarded == {"handover": 1}
            new.send(b"again")
            assert new.recv() == b"again"
        until(lambda: served.peer(b"me") is None)


def test_peers_that_die_are_forgotten():
    recorder = echo()
    with router(recorder) as served:
        for number in range(20):
            dying = plain(served.endpoint)
            dying.sendall(GREETING_31 + ready(b"DEALER", b"%d" % number) + frame(b"x" * 200)[:100])
            until(lambda number=number: served.peer(b"%d" % number))
            if number % 2:
                dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            dying.close()
        until(lambda: served.metrics()["connections"] == 0)
        assert served.metrics()["received_octets"] == 0
        until(lambda: len(recorder.left_peers) == 20)
        assert not served.discarded


SENDING = """
import sys, zmq
with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
    dealer.identity = sys.argv[2].encode()
    dealer.connect(sys.argv[1])
    number = 0
    while True:
        dealer.send_multipart([b"%d" % number, b"x" * (number % 5000)])
        number += 1
"""


def test_whole_messages_of_killed_clients_arrive_in_order():
    recorder = Recorder()
    with router(recorder) as served:
        clients = [
            forking.Popen([sys.executable, "-c", SENDING, served.endpoint, f"client-{number}"])
            for number in range(4)
        ]
        try:
            for number, process in enumerate(clients):
                until(lambda number=number: len(recorder.messages_of.get(b"client-%d" % number, ())) > 500)
                process.kill()
        finally:
            for process in clients:
                process.kill()
                process.wait()
        until(lambda: len(recorder.left_peers) == 4)
        assert served.metrics()["received_octets"] == 0
    for messages in recorder.messages_of.values():
        assert messages == [[b"%d" % number, b"x" * (number % 5000)] for number in range(len(messages))]


def test_a_client_reconnects_to_a_router_that_comes_back():
    port = free_port()
    with in_hub_closing(lambda: Router(get_hub(), listening.bind(LOOPBACK, port), handler=echo())) as served:
        endpoint = served.endpoint
        dealer = zmq.Context.instance().socket(zmq.DEALER)
        dealer.linger, dealer.rcvtimeo, dealer.identity, dealer.reconnect_ivl = 0, 100_000, b"me", 10
        dealer.connect(endpoint)
        dealer.send(b"1")
        assert dealer.recv() == b"1"
    try:
        with in_hub_closing(lambda: Router(get_hub(), listening.bind(LOOPBACK, port), handler=echo())):

            def answered() -> bool:
                dealer.send(b"2")  # lost, if it has not noticed yet that the first one has gone
                return bool(dealer.poll(200))

            until(answered)
            assert dealer.recv() == b"2"
    finally:
        dealer.close()


@contextmanager
def in_hub_closing(make: Callable[[], Router]) -> Iterator[Router]:
    """A router, closed in the end."""
    made: Router = in_hub(make)
    try:
        yield made
    finally:
        in_hub(made.close)


def test_an_error_of_the_handler_ends_its_peer_alone(caplog: pytest.LogCaptureFixture):
    def answer(peer: object, message: list[bytes]) -> list[bytes]:
        if message == [b"fail"]:
            raise ZeroDivisionError("of the handler")
        return message

    with router(Recorder(answer)) as served, alive(served), plain(served.endpoint) as failing:
        failing.sendall(GREETING_31 + ready(b"DEALER") + message(b"fail"))
        assert is_closed(failing)
        assert served.discarded == {"internal": 1}
    assert "of the handler" in caplog.text


def test_a_handler_that_sends_to_one_that_has_left_is_told_in_the_log(caplog: pytest.LogCaptureFixture):
    with plain_pair() as (recorder, served, gone, sender):
        gone.close()
        until(lambda: recorder.left_peers)
        sender.sendall(message(b"forward"))
        assert is_closed(sender)
        assert served.discarded == {"internal": 1}
    assert "'gone'" in caplog.text
    assert "has disconnected" in caplog.text


@contextmanager
def plain_pair() -> Iterator[tuple[Recorder, Router, socket.socket, socket.socket]]:
    """A router that forwards all that one of two clients sends to the other."""
    recorder = Recorder()

    def forward(_: object, message: list[bytes]) -> None:
        recorder.peers[0].send(message)

    recorder.answer = forward
    with router(recorder) as served, plain(served.endpoint) as gone, plain(served.endpoint) as sender:
        gone.sendall(GREETING_31 + ready(b"DEALER", b"gone"))
        until(lambda: recorder.peers)
        sender.sendall(GREETING_31 + ready(b"DEALER", b"sender"))
        yield recorder, served, gone, sender


def test_the_default_timeout_of_the_program_ends_no_connection():
    socket.setdefaulttimeout(0.1)
    try:
        with router(echo()) as served, client(zmq.DEALER, served.endpoint, b"me") as dealer:
            for _ in range(2):
                dealer.send(b"hello")
                assert dealer.recv() == b"hello"
                time.sleep(0.3)
            assert served.metrics()["accepted"] == served.metrics()["connections"] == 1
    finally:
        socket.setdefaulttimeout(None)


def test_a_router_that_waits_for_handshakes_closes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "HANDSHAKES", 1)
    before = set(listening._open)
    with router(echo()) as served, plain(served.endpoint), plain(served.endpoint) as waiting:
        until(lambda: served.metrics()["accepted"] == 2)
        in_hub(served.close)
        assert is_closed(waiting)
    until(lambda: set(listening._open) <= before)


@pytest.mark.parametrize("identity", [b"", b"me"], ids=["zmtp-3", "zmtp-2"])
def test_heartbeats_of_libzmq_are_answered(identity: bytes):
    def is_kept(seconds: float) -> bool:
        """Whether one connection outlives several times so many seconds; without answers it would not."""
        limit = int(1000 * seconds)
        with (
            router(echo()) as served,
            client(
                zmq.DEALER,
                served.endpoint,
                identity,
                heartbeat_ivl=50,
                heartbeat_timeout=limit,
                heartbeat_ttl=limit,
            ) as dealer,
        ):
            for _ in range(4):
                time.sleep(0.4 * seconds)
                dealer.send(b"still here")
                assert dealer.recv() == b"still here"
            return served.metrics()["accepted"] == 1

    assert is_kept(1.5) or is_kept(6.0) or is_kept(24.0)  # a busy machine may stop one of both for a while


def test_a_peer_that_is_silent_for_longer_than_it_said_is_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.02)
    with router(echo()) as served, alive(served), plain(served.endpoint) as silent:
        silent.sendall(GREETING_31 + ready(b"DEALER") + command(b"\x04PING\x00\x03"))
        assert is_closed(silent)
        assert served.discarded == {"silent": 1}


def test_pings_of_a_peer_that_reads_no_answers_take_no_memory():
    with router(echo()) as served, alive(served), plain(served.endpoint) as flooding:
        flooding.sendall(GREETING_31 + ready(b"DEALER"))
        ping = command(b"\x04PING\x00\x00" + b"x" * 16)
        for _ in range(300):
            flooding.sendall(ping * 1000)
        assert served.metrics()["queued_octets"] < 2 * limits.QUEUED_OCTETS


def test_mutated_streams_do_not_affect_others():
    dice = random.Random(11)
    good = [
        GREETING_31 + ready(b"DEALER", b"x") + message(b"a", b"b" * 300) * 5 + command(b"\x04PING\x00\x00"),
        greeting_2(5, b"x") + message(b"a", b"b" * 300) * 5,
    ]
    with router(echo(), max_message=1 << 20) as served, alive(served):
        for _ in range(400):
            wrong = bytearray(dice.choice(good))
            for _ in range(dice.randrange(1, 6)):
                place = dice.randrange(len(wrong))
                if dice.random() < 0.7:
                    wrong[place] = dice.randrange(256)
                else:
                    del wrong[place : place + dice.randrange(1, 20)]
            with plain(served.endpoint) as bad, suppress(OSError):  # it may be closed already
                bad.sendall(wrong)
        until(lambda: served.metrics()["connections"] == 1)
        assert "internal" not in served.discarded
        assert served.metrics()["received_octets"] == 0
        assert served.metrics()["queued_octets"] == 0
