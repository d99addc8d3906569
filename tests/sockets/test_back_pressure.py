"""Peers that send faster than is handled, or do not read: memory is bounded, and others are not held up."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import pytest
import zmq
from sockets.serving import Recorder, client, in_hub, later, plain, router, sending
from timing import until
from zmtp.vectors import GREETING_31, frame, message, ready

from dafka.sockets import limits
from dafka.sockets.errors import DisconnectedError
from dafka.sockets.peer import Peer

MB = 1 << 20


class HoldsOne(Recorder):
    """Waits with the messages of the peer that is called ``slow``."""

    def messages(self, peer: Peer, messages: list[list[bytes]]) -> None:
        if peer.identity == b"slow":
            super().messages(peer, messages)
        else:
            self.received += [(peer, message) for message in messages]


def test_a_peer_whose_messages_wait_is_not_read_and_others_are():
    recorder = HoldsOne()
    in_hub(recorder.hold.clear)
    with (
        router(recorder) as served,
        client(zmq.DEALER, served.endpoint, b"slow", sndhwm=100, sndbuf=65536) as slow,
        client(zmq.DEALER, served.endpoint, b"quick") as quick,
    ):
        sent = 0
        slow.sndtimeo = 300
        with pytest.raises(zmq.Again):
            while sent < 10_000:
                slow.send(b"x" * 10_000)
                sent += 1
        assert served.metrics()["received_octets"] < MB
        for number in range(1000):
            quick.send(b"%d" % number)
        until(lambda: len(recorder.received) == 1000)
        in_hub(recorder.hold.set)
        until(lambda: len(recorder.received) == 1000 + sent)  # nothing was lost
        until(lambda: served.metrics()["received_octets"] == 0)


def test_a_peer_that_does_not_read_makes_its_sender_wait_and_nobody_else():
    recorder = Recorder()
    with (
        router(recorder) as served,
        plain(served.endpoint) as stuck,
        client(zmq.DEALER, served.endpoint, b"reader") as reader,
    ):
        stuck.sendall(GREETING_31 + ready(b"DEALER", b"stuck"))
        peer = until(lambda: served.peer(b"stuck"))
        outcome: list[BaseException] = []

        def stream() -> None:
            try:
                while True:
                    in_hub(peer.send_many, [[b"x" * 1000]] * 100)
            except DisconnectedError as error:
                outcome.append(error)

        streaming = later(stream)
        until(lambda: peer.queued > limits.QUEUED_OCTETS // 2)
        queued = -1
        while queued != peer.queued:
            queued = peer.queued
            time.sleep(0.1)
        assert queued <= limits.QUEUED_OCTETS
        other = until(lambda: served.peer(b"reader"))
        for _ in range(100):
            in_hub(other.send, [b"y" * 10_000])
            assert reader.recv() == b"y" * 10_000
        stuck.close()
        streaming.join(100)
        assert outcome
        until(lambda: served.metrics()["queued_octets"] == 0)


@pytest.mark.parametrize("size", [3, 1000, 100_000, 3_000_000])
def test_messages_sent_together_are_queued_within_the_limit(size: int):
    recorder = Recorder()
    with router(recorder) as served, plain(served.endpoint) as stuck:
        stuck.sendall(GREETING_31 + ready(b"DEALER", b"stuck"))
        peer = until(lambda: served.peer(b"stuck"))
        messages = [[b"x" * size]] * (50_000_000 // (size + 9))
        green = sending(peer, messages)
        until(lambda: peer.queued)
        ends = time.monotonic() + 0.3
        while time.monotonic() < ends:
            assert served.metrics()["queued_octets"] <= limits.QUEUED_OCTETS + max(size, 1000)
        assert not green.ready()


def test_a_reader_that_pauses_gets_everything_in_order():
    recorder = Recorder()
    with (
        router(recorder) as served,
        client(zmq.PULL, served.endpoint, b"reader", rcvhwm=10, rcvbuf=65536) as pull,
    ):
        peer = until(lambda: served.peer(b"reader"))
        messages = [[b"%d" % number, b"x" * 5000] for number in range(5000)]
        streaming = later(in_hub, peer.send_many, messages)
        until(lambda: peer.queued > limits.QUEUED_OCTETS // 2)
        assert [pull.recv_multipart() for _ in messages] == messages
        streaming.join(100)


def test_a_message_larger_than_the_queue_is_sent():
    recorder = Recorder()
    with router(recorder) as served, client(zmq.DEALER, served.endpoint, b"reader") as dealer:
        peer = until(lambda: served.peer(b"reader"))
        for _ in range(3):
            in_hub(peer.send, [b"x" * (3 * limits.QUEUED_OCTETS)])
        for _ in range(3):
            assert len(dealer.recv()) == 3 * limits.QUEUED_OCTETS


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECEIVED_OCTETS", 2 * MB)
    monkeypatch.setattr(limits, "RECEIVED_FAIR_OCTETS", 16 * 1024)
    monkeypatch.setattr(limits, "ALL_QUEUED_OCTETS", 4 * MB)
    monkeypatch.setattr(limits, "QUEUED_OCTETS", 256 * 1024)
    monkeypatch.setattr(limits, "TEND_SECONDS", 0.05)


@pytest.mark.usefixtures("small")
def test_large_messages_of_many_pass_within_the_limit_of_all():
    recorder = Recorder(lambda peer, message: [b"%d" % len(message[0])])
    size = MB + 300_000
    with router(recorder) as served, ExitStack() as stack:
        dealers = [
            stack.enter_context(client(zmq.DEALER, served.endpoint, b"%d" % number)) for number in range(12)
        ]
        stop = threading.Event()
        most = [0]

        def watch() -> None:
            while not stop.wait(0.001):
                most[0] = max(most[0], served.metrics()["received_octets"])

        watching = later(watch)
        for dealer in dealers:
            dealer.send(b"x" * size)
            dealer.send(b"x" * size)
        for dealer in dealers:
            assert [dealer.recv(), dealer.recv()] == [b"%d" % size] * 2
        stop.set()
        watching.join()
        # One message beyond, and a read of each.
        assert most[0] <= 2 * MB + size + 12 * (limits.READ_OCTETS + 1000 * limits.MESSAGE_OVERHEAD_OCTETS)
        until(lambda: served.metrics()["received_octets"] == 0)


@pytest.mark.usefixtures("small")
def test_unfinished_messages_of_many_hold_up_no_small_ones_and_large_ones_for_a_time(
    monkeypatch: pytest.MonkeyPatch,
):
    recorder = Recorder(lambda peer, message: [b"ok"])
    with router(recorder) as served, ExitStack() as stack:
        for number in range(8):
            bad = stack.enter_context(plain(served.endpoint))
            bad.sendall(GREETING_31 + ready(b"DEALER", b"bad%d" % number))
            bad.sendall(frame(b"x" * MB)[:400_000])
        until(lambda: served.metrics()["received_octets"] >= 2 * MB)
        dealer = stack.enter_context(client(zmq.DEALER, served.endpoint, b"good"))
        for _ in range(100):
            dealer.send(b"small")
            assert dealer.recv() == b"ok"
        assert not served.discarded
        monkeypatch.setattr(limits, "MESSAGE_SECONDS", 0.5)
        dealer.send(b"x" * MB)
        assert dealer.recv() == b"ok"
        assert served.discarded["slow"] > 0
        assert served.metrics()["received_octets"] <= 2 * MB + 400_000


@pytest.mark.usefixtures("small")
def test_a_peer_that_is_closed_while_it_waits_for_others_gives_back_what_it_holds():
    recorder = Recorder()
    with router(recorder) as served, ExitStack() as stack:
        for number in range(4):
            one = stack.enter_context(plain(served.endpoint))
            one.sendall(GREETING_31 + ready(b"DEALER", b"%d" % number) + frame(b"x" * MB)[:700_000])
        until(lambda: served.metrics()["received_octets"] > 2 * MB)
        until(lambda: len(recorder.peers) == 4)
        time.sleep(0.05)
        peers = list(recorder.peers)
        for number in (3, 2):
            in_hub(peers[number].close)
            until(lambda: peers[number] in recorder.left_peers)  # noqa: B023
        assert served.metrics()["received_octets"] <= 1_400_100


@pytest.mark.usefixtures("small")
def test_large_answers_to_many_that_do_not_read_are_bounded_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "UNREAD_SECONDS", 2.0)
    recorder = Recorder(lambda peer, message: [b"y" * (3 * MB)])
    with router(recorder) as served, ExitStack() as stack:
        for number in range(4):
            bad = stack.enter_context(plain(served.endpoint))
            bad.sendall(GREETING_31 + ready(b"DEALER", b"bad%d" % number) + message(b"ask") * 2)
        until(lambda: served.metrics()["queued_octets"] > MB)
        dealer = stack.enter_context(client(zmq.DEALER, served.endpoint, b"good"))
        dealer.send(b"ask")
        assert len(dealer.recv()) == 3 * MB  # those that read nothing have been disconnected for it
        assert served.discarded["unread"] > 0
        assert served.metrics()["queued_octets"] <= 4 * MB + 1000


def test_a_disconnect_ends_the_wait_of_its_sender():
    recorder = Recorder()
    with router(recorder) as served, plain(served.endpoint) as stuck:
        stuck.sendall(GREETING_31 + ready(b"DEALER", b"stuck"))
        peer = until(lambda: served.peer(b"stuck"))

        green = sending(peer, [[b"x" * 100_000]] * 1000)
        until(lambda: peer.queued)
        assert not green.ready()
        in_hub(peer.close)
        until(green.ready)
        with pytest.raises(DisconnectedError, match="stuck"):
            in_hub(peer.send, [b"more"])
