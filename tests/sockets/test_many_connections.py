"""Thousands of connections, no descriptor left, and forks."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack

import gevent.socket
import pytest
from descriptors import descriptors
from sockets.bystanders import alive, echo, is_closed
from sockets.serving import in_hub, plain, router
from timing import until
from zmtp.vectors import GREETING_31, message, ready

from dafka.sockets import listening


def test_thousands_of_connections_are_served_and_forgotten():
    count = 2000
    recorder = echo()
    with descriptors(2 * count + 500), router(recorder) as served, alive(served), ExitStack() as stack:
        many = []
        for number in range(count):
            one = stack.enter_context(plain(served.endpoint))
            one.sendall(GREETING_31 + ready(b"DEALER", b"%d" % number) + message(b"%d" % number))
            many.append(one)
        for number, one in enumerate(many):
            received, expected = b"", message(b"%d" % number)
            while not received.endswith(expected):
                received += one.recv(1000) or pytest.fail(f"connection {number} was closed")
        assert served.metrics()["peers"] == count + 1
        assert not served.discarded
        stack.close()
        until(lambda: served.metrics()["peers"] == 1)
    assert len(recorder.left_peers) == len(recorder.peers)


def test_it_accepts_again_after_the_process_was_out_of_descriptors(caplog: pytest.LogCaptureFixture):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with router(echo()) as served, alive(served), socket.socket() as late:
        late.settimeout(100)
        host, port = served.endpoint.removeprefix("tcp://").rsplit(":", 1)
        used = os.open(os.devnull, os.O_RDONLY)
        os.close(used)
        resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
        try:
            late.connect((host, int(port)))
            until(lambda: "no connection can be accepted" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        late.sendall(GREETING_31 + ready(b"DEALER", b"late"))
        until(lambda: served.peer(b"late"))


def test_a_fork_keeps_neither_port_nor_connections():
    with router(echo()) as served, plain(served.endpoint) as connected:
        connected.sendall(GREETING_31 + ready(b"DEALER", b"me"))
        until(lambda: served.peer(b"me"))
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)  # until the parent has closed its end
            os._exit(0)
        os.close(reading)
        try:
            in_hub(served.close)
            assert is_closed(connected)
            host, port = served.endpoint.removeprefix("tcp://").rsplit(":", 1)
            until(lambda: _is_free(host, int(port)))  # the child gives it back when it gets to run
        finally:
            os.close(writing)
            os.waitpid(child, 0)


def test_a_fork_after_sockets_that_others_have_closed_keeps_no_port():
    with router(echo()) as served, plain(served.endpoint) as connected:
        connected.sendall(GREETING_31 + ready(b"DEALER", b"me"))
        until(lambda: served.peer(b"me"))
        closed = [gevent.socket.socket() for _ in range(20)]
        for one in closed:
            listening.keep(one)
            one.close()
        try:
            child = os.fork()
            if not child:
                os._exit(bool(listening._open))
            assert os.waitpid(child, 0)[1] == 0
        finally:
            for one in closed:
                listening.forget(one)


def _is_free(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port)).close()
    except OSError:
        return False
    return True
