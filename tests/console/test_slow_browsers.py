"""A browser that does not read costs a bounded amount, for a bounded time."""

from __future__ import annotations

import socket
import threading
import time
import tracemalloc
from contextlib import contextmanager
from uuid import uuid4

from console.asking import SECONDS
from timing import until

import dafka.broker
from dafka.console import Console, limits
from dafka.console.desk import Desk
from dafka.console.records import batches

MB = 1024 * 1024


@contextmanager
def console_of(broker):
    with Console(dafka.broker.connect(broker.bootstrap_servers, SECONDS)) as console:
        host, port = console.url.removeprefix("http://").rstrip("/").split(":")
        yield host, int(port)


def asked(where, path: str) -> socket.socket:
    """A connection that has asked for a stream and reads nothing."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(SECONDS)
    one.connect(where)
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: {where[0]}\r\n\r\n".encode())
    return one


def test_a_browser_that_stops_reading_a_followed_topic_is_let_go(shared, monkeypatch):
    monkeypatch.setattr(limits, "SOCKET_SECONDS", 1.0)
    begun, ended, streaming = threading.Semaphore(0), threading.Semaphore(0), Desk.streaming

    @contextmanager
    def noticed(desk):
        with streaming(desk):
            begun.release()
            try:
                yield
            finally:
                ended.release()

    monkeypatch.setattr(Desk, "streaming", noticed)
    topic, browsers = f"t-{uuid4()}", 3
    shared.create_topic(topic, 1)
    with console_of(shared) as where:
        slow = [asked(where, f"/api/topics/{topic}/follow") for _ in range(browsers)]
        try:
            assert all(begun.acquire(timeout=SECONDS) for _ in slow)
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            left, deadline = browsers, time.monotonic() + SECONDS
            while left:
                shared.preload(topic, [b"x" * 4000] * 500)
                left -= ended.acquire(timeout=0.05)
                assert time.monotonic() < deadline
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
            for one in slow:
                one.close()
    assert grown < 10 * MB * browsers, grown  # octets waiting for each of them, and kept by the broker


def counted(monkeypatch):
    """A list that grows with each fetch."""
    fetched, fetch = [], batches.fetch

    def noted(*args, **kwargs):
        fetched.append(args)
        return fetch(*args, **kwargs)

    monkeypatch.setattr(batches, "fetch", noted)
    return fetched


def test_a_download_that_is_not_read_holds_one_piece(shared, monkeypatch):
    """The octets come when they are asked for, and not before."""
    fetched = counted(monkeypatch)
    topic = f"t-{uuid4()}"
    shared.create_topic(topic, 1)
    for _ in range(40):
        shared.preload(topic, [b"x" * 1000] * 1000)  # 40 MB
    with console_of(shared) as where:
        one = asked(where, f"/api/topics/{topic}/download?format=jsonl")
        try:
            deadline = time.monotonic() + SECONDS
            while len(fetched) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.5)  # a download that went on by itself would be through by now
            assert len(fetched) < 20
        finally:
            one.close()


def test_downloads_that_are_not_read_hold_few_large_batches(shared, monkeypatch):
    monkeypatch.setattr(limits, "LARGE_HELD", 1)
    fetched = counted(monkeypatch)
    topic = f"t-{uuid4()}"
    shared.create_topic(topic, 1, {"max.message.bytes": "12000000"})
    shared.preload(topic, [b"x" * 10 * MB])
    path = f"/api/topics/{topic}/download?format=jsonl"
    with console_of(shared) as where:
        one = asked(where, path)
        try:
            until(lambda: len(fetched) == 2)  # it has looked how large the batch is, and holds it
            other = asked(where, path)
            until(lambda: len(fetched) == 3)
            time.sleep(0.5)
            assert len(fetched) == 3  # the other one waits
        finally:
            one.close()
        with other, other.makefile("rb") as answer:
            assert sum(len(line) for line in iter(answer.readline, b"0\r\n")) > 10 * MB
