"""Relay: the messages written from now on."""

from __future__ import annotations

import zmq
from contexts import new_context
from timing import until
from zper.model_server import ModelServer

from dafka.zper import Relay


def test_gives_messages_frame_by_frame_and_ends_when_nothing_comes():
    """As of a ZPRelay: a ROUTER that sends to the identities that it learns of."""
    with new_context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        with Relay("flights", f"tcp://127.0.0.1:{port}", idle=1.0) as relay:
            identity = relay._connection.socket.getsockopt(zmq.IDENTITY)
            _send_when_known(router, [identity, b"a", b"", b"c"])
            router.send_multipart([identity, b"d"])
            assert list(relay) == [[b"a", b"", b"c"], [b"d"]]
            assert relay.receive(0) is None
        assert relay.closed


def _send_when_known(router: zmq.Socket[bytes], message: list[bytes]) -> None:
    def sent() -> bool:
        try:
            router.send_multipart(message)
        except zmq.ZMQError as error:
            assert error.errno == zmq.EHOSTUNREACH
            return False
        return True

    until(sent, "the relay has not connected")


def test_waits_no_longer_than_it_is_told(server: ModelServer):
    with Relay("flights", server.relay) as relay:
        assert relay.receive(0.01) is None
