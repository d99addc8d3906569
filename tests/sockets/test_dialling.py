"""Connecting to the first address of a host that answers."""

from __future__ import annotations

import socket as sockets
import sys
from collections.abc import Iterator

import gevent
import gevent.socket
import pytest
from timing import until

from dafka.hub.hub import get_hub
from dafka.sockets import listening
from dafka.sockets.dialling import dial


@pytest.fixture
def port() -> Iterator[int]:
    """A port of 127.0.0.1 that somebody listens at."""
    with sockets.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def several(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    """A host with these addresses."""
    monkeypatch.setattr(
        listening, "resolve", lambda host, port: [(sockets.AF_INET, (one, port)) for one in hosts]
    )


def dialled(port: int, seconds: float = 60.0) -> tuple[str, bool, float]:
    """The address, whether the socket is closed in forked children, and its timeout; closed again."""
    socket, address = dial("somewhere", port, seconds)
    told = address[0], socket in listening._open, socket.gettimeout()
    listening.close(socket)
    return told


def test_the_first_address_that_answers_is_taken(port, monkeypatch):
    several(monkeypatch, "127.0.0.3", "127.0.0.1", "127.0.0.2")  # nobody listens at the others
    assert get_hub().run(dialled, port, 60.0) == ("127.0.0.1", True, 60.0)


def test_the_error_is_that_of_the_last_address_and_no_socket_stays(port, monkeypatch):
    several(monkeypatch, "127.0.0.2", "127.0.0.3")
    before = set(listening._open)
    with pytest.raises(OSError):  # refused
        get_hub().run(dialled, port)
    assert set(listening._open) == before


def test_a_host_without_addresses_is_named(port, monkeypatch):
    several(monkeypatch)
    with pytest.raises(OSError, match="somewhere has no address"):
        get_hub().run(dialled, port)


@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog is told otherwise elsewhere")
def test_no_socket_stays_of_an_attempt_that_is_given_up(monkeypatch):
    """A full backlog lets a connection wait."""
    with sockets.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [sockets.socket() for _ in range(8)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        several(monkeypatch, "127.0.0.1")
        before = set(listening._open)

        def given_up() -> bool:
            with gevent.Timeout(0.05, False):
                dialled(full.getsockname()[1])
                return False
            return True

        assert get_hub().run(given_up)
        until(lambda: set(listening._open) <= before, "the attempt's socket is let go")
        for one in waiting:
            one.close()


def test_a_socket_that_was_connected_with_itself_is_refused_and_gives_the_port_back(monkeypatch):
    """The system gives a socket that connects any free port, which may be the one it connects to."""

    class GivenThatPort(gevent.socket.socket):
        def connect(self, address):
            self.bind(address)
            super().connect(address)

    with sockets.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    monkeypatch.setattr(gevent.socket, "socket", GivenThatPort)
    several(monkeypatch, "127.0.0.1")
    before = set(listening._open)
    with pytest.raises(ConnectionRefusedError, match=f"nobody listens at somewhere:{free}"):
        get_hub().run(dialled, free)
    assert set(listening._open) == before
    with sockets.create_server(("127.0.0.1", free)):
        pass
