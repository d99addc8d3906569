"""PLAIN: user names and passwords, of our sockets and libzmq's."""

from __future__ import annotations

import pytest
import zmq
from contexts import new_context
from sockets.serving import Recorder, client, dealer, in_hub, router, server
from timing import until
from zmq.auth.thread import ThreadAuthenticator

from dafka.zmtp.mechanisms import Check, PlainClient, PlainServer


def guard(check: Check) -> PlainServer:
    return PlainServer(check, lambda *given: given == (b"user", b"secret"))


@pytest.mark.parametrize("identity", [b"me", b""])
def test_a_client_of_libzmq_that_knows_the_password_is_served(identity: bytes):
    recorder = Recorder(lambda peer, message: message)
    with (
        router(recorder, mechanism=guard) as served,
        client(
            zmq.DEALER, served.endpoint, identity, plain_username=b"user", plain_password=b"secret"
        ) as one,
    ):
        one.send_multipart([b"hello", b"x" * 1000])
        assert one.recv_multipart() == [b"hello", b"x" * 1000]
        assert recorder.peers[0].version == (3, 1)  # 2.0 has no passwords
        assert len(recorder.peers[0].identity) == (2 if identity else 17)


def test_a_client_of_libzmq_with_another_password_is_refused():
    recorder = Recorder()
    with (
        router(recorder, mechanism=guard) as served,
        client(zmq.DEALER, served.endpoint, b"me", plain_username=b"user", plain_password=b"guess"),
    ):
        until(lambda: served.discarded["password"])
    assert not recorder.peers


@pytest.mark.parametrize("identity", [b"me", b""])
def test_a_client_without_password_is_refused(identity: bytes):
    recorder = Recorder()
    with router(recorder, mechanism=guard) as served, client(zmq.DEALER, served.endpoint, identity):
        until(lambda: served.metrics()["accepted"])
        until(lambda: not served.metrics()["connections"])  # the side that is first sees another mechanism
    assert not recorder.peers


@pytest.mark.parametrize("password", [b"secret", b"guess"])
def test_our_dealer_and_our_router(password: bytes):
    recorder = Recorder(lambda peer, message: message)
    answers = Recorder()
    with (
        router(recorder, mechanism=guard) as served,
        dealer(
            served.endpoint,
            answers,
            identity=b"me",
            mechanism=lambda check: PlainClient(check, b"user", password),
        ) as made,
    ):
        if password == b"guess":
            until(lambda: served.discarded["password"] and made.discarded["refused"])
            assert not recorder.peers
        else:
            peer = until(lambda: made.peer)
            in_hub(peer.send, [b"hello"])
            until(lambda: answers.all == [[b"hello"]])
            assert recorder.peers[0].identity == b"me"


def test_our_dealer_and_a_router_of_libzmq():
    context = new_context()
    authenticator = ThreadAuthenticator(context)
    authenticator.start()
    authenticator.configure_plain(domain="*", passwords={"user": "secret"})
    recorder = Recorder()
    try:
        with (
            server(zmq.ROUTER, context=context, plain_server=True) as served,
            dealer(
                served.last_endpoint.decode(),
                recorder,
                identity=b"me",
                mechanism=lambda check: PlainClient(check, b"user", b"secret"),
            ) as made,
        ):
            peer = until(lambda: made.peer)
            in_hub(peer.send, [b"hello"])
            assert served.recv_multipart() == [b"me", b"hello"]
            served.send_multipart([b"me", b"answer"])
            until(lambda: recorder.all == [[b"answer"]])
    finally:
        authenticator.stop()
        context.destroy(linger=0)
