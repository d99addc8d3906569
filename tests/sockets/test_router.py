"""Our Router and libzmq's DEALER, REQ, PUSH, PULL and ROUTER sockets."""

from __future__ import annotations

import pytest
import zmq
from sockets.serving import Recorder, client, in_hub, router
from timing import until

from dafka.sockets import limits


@pytest.mark.parametrize("all_identities", [True, False], ids=["zmtp-2", "zmtp-3"])
def test_a_dealer_sends_and_gets_answers(all_identities: bool):
    recorder = Recorder(lambda peer, message: [b"re", *message])
    with (
        router(recorder, all_identities=all_identities) as served,
        client(zmq.DEALER, served.endpoint, b"me") as dealer,
    ):
        for number in range(100):
            dealer.send_multipart([b"%d" % number, b"x" * number])
        for number in range(100):
            assert dealer.recv_multipart() == [b"re", b"%d" % number, b"x" * number]
        assert recorder.peers[0].identity == b"me"
        assert recorder.peers[0].socket_type == b"DEALER"
        assert recorder.peers[0].version == ((2, 0) if all_identities else (3, 1))
    assert recorder.left_peers == recorder.peers


@pytest.mark.parametrize("identity", [b"me", b"\0first octet zero", bytes(range(1, 256)), b""])
def test_a_req_gets_its_answer_behind_the_empty_frame(identity: bytes):
    recorder = Recorder(lambda peer, message: [b"", b"answer to ", message[-1]])
    with router(recorder) as served, client(zmq.REQ, served.endpoint, identity) as req:
        for _ in range(3):
            req.send_multipart([b"a", b"b"])
            assert req.recv_multipart() == [b"answer to ", b"b"]
    assert recorder.all == [[b"", b"a", b"b"]] * 3
    assert recorder.peers[0].socket_type == b"REQ"
    if identity:
        assert recorder.peers[0].identity == identity
    else:
        assert len(recorder.peers[0].identity) == 17


def test_a_push_tells_its_identity():
    recorder = Recorder()
    with router(recorder) as served, client(zmq.PUSH, served.endpoint, b"logger-1") as push:
        for number in range(1000):
            push.send_multipart([b"%d" % number])
        until(lambda: len(recorder.received) == 1000)
    assert recorder.messages_of == {b"logger-1": [[b"%d" % number] for number in range(1000)]}
    assert recorder.peers[0].socket_type == b"PUSH"


def test_a_peer_is_read_in_larger_pieces_while_it_sends_much():
    recorder = Recorder()
    with router(recorder) as served, client(zmq.PUSH, served.endpoint, b"logger-2") as push:
        push.send(bytes(8 * 1024 * 1024))
        until(lambda: len(recorder.received) == 1)
        peer = recorder.peers[0]
        assert peer.reads > limits.READ_FIRST_OCTETS
        for number in range(20):
            push.send(b"one at a time")
            until(lambda count=number + 2: len(recorder.received) == count)
        assert peer.reads == limits.READ_FIRST_OCTETS


def test_a_pull_is_known_by_its_handshake_and_gets_messages():
    recorder = Recorder()
    with router(recorder) as served, client(zmq.PULL, served.endpoint, b"reader") as pull:
        peer = until(lambda: served.peer(b"reader"))
        assert peer.socket_type == b"PULL"
        in_hub(peer.send_many, [[b"%d" % number] for number in range(5000)])
        assert [pull.recv_multipart() for _ in range(5000)] == [[b"%d" % number] for number in range(5000)]


@pytest.mark.parametrize("kind", [zmq.PUSH, zmq.PULL])
def test_push_and_pull_without_identity_connect_in_zmtp_3(kind: int):
    recorder = Recorder()
    with router(recorder) as served, client(kind, served.endpoint):
        until(lambda: recorder.peers)
        assert recorder.peers[0].version == (3, 1)
        assert len(recorder.peers[0].identity) == 17


@pytest.mark.parametrize("kind", [zmq.SUB, zmq.REP, zmq.PAIR])
def test_a_socket_that_no_router_talks_to_is_refused(kind: int):
    recorder = Recorder()
    with router(recorder) as served, client(kind, served.endpoint):
        until(lambda: served.discarded["socket-type"])
    assert not recorder.peers


@pytest.mark.parametrize("identity", [b"", b"me"], ids=["zmtp-3", "zmtp-2"])
@pytest.mark.parametrize("size", [0, 1, 254, 255, 256, 8192, 65536, 1 << 20, 64 << 20])
def test_frames_of_every_size_come_and_go_unchanged(size: int, identity: bytes):
    recorder = Recorder(lambda peer, message: message[1:])
    frame = b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)
    with (
        router(recorder, max_message=65 << 20) as served,
        client(zmq.DEALER, served.endpoint, identity) as dealer,
    ):
        for message in ([b"head", frame], [b"", frame, b"", frame[:1000], b""]):
            dealer.send_multipart(message)
            assert dealer.recv_multipart() == message[1:]
            assert recorder.all[-1] == message
        assert served.metrics()["received_octets"] == 0


def test_messages_of_mixed_sizes_and_frames_keep_their_order():
    recorder = Recorder(lambda peer, message: message)
    messages = [
        [b"%d" % number, *(b"f" * (number * part % 700) for part in range(number % 6))]
        for number in range(3000)
    ]
    with router(recorder) as served, client(zmq.DEALER, served.endpoint, b"me") as dealer:
        for message in messages:
            dealer.send_multipart(message)
        assert [dealer.recv_multipart() for _ in messages] == messages
    assert recorder.all == messages
