"""Listening sockets of the hub."""

from __future__ import annotations

import socket

import pytest
import zmq
from sockets.serving import Recorder, client, in_hub
from timing import until

from dafka.hub.hub import get_hub
from dafka.sockets import listening
from dafka.sockets.endpoints import to_bind
from dafka.sockets.router import Router


def served_at(text: str, recorder: Recorder) -> Router:
    hub = get_hub()
    return in_hub(lambda: Router(hub, listening.bind(*to_bind(text)), handler=recorder))  # type: ignore[no-any-return]


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:*", "tcp://localhost:*", "tcp://[::1]:*"])
def test_a_client_connects_to_what_the_endpoint_says(text: str):
    if "::1" in text and not has_ipv6():
        pytest.skip("no IPv6 here")
    recorder = Recorder(lambda peer, message: message)
    served = served_at(text, recorder)
    try:
        with client(zmq.DEALER, served.endpoint, b"me", ipv6=True) as dealer:
            dealer.send(b"hello")
            assert dealer.recv() == b"hello"
        assert recorder.peers[0].address[0] in ("127.0.0.1", "::1")
    finally:
        in_hub(served.close)


def test_all_interfaces_are_listened_at():
    recorder = Recorder(lambda peer, message: message)
    served = served_at("tcp://*:*", recorder)
    try:
        port = served.endpoint.rsplit(":", 1)[1]
        with client(zmq.DEALER, f"tcp://127.0.0.1:{port}", b"me") as dealer:
            dealer.send(b"hello")
            assert dealer.recv() == b"hello"
    finally:
        in_hub(served.close)


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            in_hub(listening.bind, "127.0.0.1", port)


def test_a_port_is_named_too_at_which_another_socket_listens_that_was_bound_at_the_same_time():
    first = in_hub(listening.bind, "127.0.0.1", 0)
    port = first.getsockname()[1]
    second = in_hub(listening.bind, "127.0.0.1", port)
    served = in_hub(lambda: Router(get_hub(), first, handler=Recorder()))
    try:
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            in_hub(lambda: Router(get_hub(), second, handler=Recorder()))
    finally:
        in_hub(served.close)


def test_a_host_that_is_not_here_is_named():
    with pytest.raises(OSError, match=r"no\.such\.host\.invalid"):
        in_hub(listening.bind, "no.such.host.invalid", 0)


def test_a_port_is_free_again_once_it_is_closed():
    recorder = Recorder()
    served = served_at("tcp://127.0.0.1:*", recorder)
    with client(zmq.DEALER, served.endpoint, b"me"):
        until(lambda: recorder.peers)
        in_hub(served.close)
        again = served_at(served.endpoint, recorder)  # although connections of the first have just ended
        in_hub(again.close)
