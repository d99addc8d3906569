"""A client that nothing may happen to, and plain connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import zmq
from sockets.serving import Recorder, client

from dafka.sockets.router import Router


def echo() -> Recorder:
    return Recorder(lambda peer, message: message)


@contextmanager
def alive(served: Router) -> Iterator[None]:
    """A client that was there before is served throughout and afterwards; a new one, too."""
    with client(zmq.DEALER, served.endpoint, b"bystander") as bystander:

        def ask(dealer: zmq.Socket[bytes]) -> None:
            dealer.send_multipart([b"are you there", b"?"])
            assert dealer.recv_multipart() == [b"are you there", b"?"]

        ask(bystander)
        yield
        ask(bystander)
        with client(zmq.DEALER, served.endpoint, b"new") as new:
            ask(new)


def is_closed(connection: socket.socket) -> bool:
    """Read to the end."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True
