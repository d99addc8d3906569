"""Valid and invalid requests, and how long one may take."""

from __future__ import annotations

import socket
import time
from uuid import uuid4

import pytest
from console.asking import SECONDS

import dafka.broker
from dafka.console import Console, limits
from dafka.console.server import Server


def answers_to(client, requests):
    """Of a connection that ends after them."""
    host, port = client.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), SECONDS) as one:
        one.sendall(requests.replace("HOST", f"{host}:{port}").encode())
        one.shutdown(socket.SHUT_WR)
        answers = b""
        while some := one.recv(65536):
            answers += some
    return answers


_GET = "GET /api/session HTTP/1.1\r\nHost: HOST\r\n\r\n"
_CHUNKED = "Host: HOST\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    "head",
    [
        "HEAD /api/session HTTP/1.1\r\nHost: HOST\r\n\r\n",
        "GET /api/session HTTP/1.0\r\nHost: HOST\r\nConnection: keep-alive\r\n\r\n",
        "GET /api/session HTTP/1.1\r\nhost: HOST\r\ncontent-length: 3\r\n\r\nabc",
        f"GET /api/session HTTP/1.1\r\n{_CHUNKED}\r\n3;x=y\r\nabc\r\n0\r\nA-Trailer: x\r\n\r\n",
        "GET /api/session HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_requests_that_are_clear_are_answered_and_the_next_one_too(local, head):
    assert answers_to(local, head + _GET).count(b" 200 OK\r\n") == 2


def test_the_head_of_a_stream_has_no_body(local, shared):
    topic = f"t-{uuid4()}"
    shared.create_topic(topic, 1)
    head = f"HEAD /api/topics/{topic}/follow HTTP/1.1\r\nHost: HOST\r\n\r\n"
    answers = answers_to(local, head * (limits.STREAMS + 1) + _GET)
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == limits.STREAMS + 2
    assert b"\r\n\r\n0\r\n" not in answers


def test_a_request_for_another_protocol_hides_no_second_one(local):
    """Its body is read once: the next request is not taken for more of it."""
    hidden = "POST /api/topics HTTP/1.1\r\nHost: HOST\r\nX-Padding: "
    given = '{"user": "x", "password": "y"}'.ljust(len(hidden) + 10)
    asked = (
        "POST /api/session HTTP/1.1\r\nHost: HOST\r\nX-Dafka-Console: 1\r\nContent-Type: application/json\r\n"
        f"Upgrade: websocket\r\nContent-Length: {len(given)}\r\n\r\n{given}"
    )
    answers = answers_to(local, asked + _GET)
    assert answers.startswith(b"HTTP/1.1 400") and answers.count(b" 200 OK\r\n") == 1


def test_chunks_of_an_older_protocol_are_refused(local):
    """Programs between that know no chunks see a second request in them."""
    head = f"GET /api/session HTTP/1.0\r\n{_CHUNKED}Connection: keep-alive\r\n\r\n0\r\n\r\n"
    answers = answers_to(local, head + _GET)
    assert answers.startswith(b"HTTP/1.1 400") and b" 200 OK" not in answers


def test_heads_that_are_too_slow_or_long_are_not_logged_as_errors_of_the_console(shared, monkeypatch, capfd):
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.2)
    with Console(dafka.broker.connect(shared.bootstrap_servers, SECONDS)) as console:
        host, port = console.url.removeprefix("http://").rstrip("/").split(":")
        many = b"".join(b"X-%d: y\r\n" % number for number in range(200))
        for sent, start in ((b"", b""), (many, b"HTTP/1.1 400")):
            with socket.create_connection((host, int(port)), SECONDS) as one:
                one.sendall(b"GET / HTTP/1.1\r\n" + sent)
                assert one.recv(1000)[:12] == start
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("body", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
def test_a_body_that_nobody_reads_has_an_end(shared, monkeypatch, body):
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    with Console(dafka.broker.connect(shared.bootstrap_servers, SECONDS)) as console:
        host, port = console.url.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), SECONDS) as one:
            one.sendall(f"GET /health/live HTTP/1.1\r\nHost: localhost\r\n{body}\r\n\r\n".encode())
            one.settimeout(0.05)
            deadline = time.monotonic() + SECONDS
            heard = b"x"
            while heard:
                assert time.monotonic() < deadline
                try:
                    one.sendall(b"1\r\nx\r\n")
                    heard = one.recv(65536)
                except TimeoutError:
                    continue
                except OSError:
                    heard = b""


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 5\r\nContent-Length: 50\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 1_0\r\n",
        "Content-Length: +5\r\n",
        "Host: evil.example\r\n",
        "Transfer-Encoding : chunked\r\n",
        " folded: yes\r\n",
    ],
)
def test_no_second_request_is_hidden_in_a_first_one(local, shared, head):
    """Requests that two parsers may understand differently: no answer to the hidden request, which
    creates."""
    host, port = local.url.removeprefix("http://").split(":")
    name = f"t-{uuid4()}"
    body = f'{{"name": "{name}"}}'
    hidden = (
        f"POST /api/topics HTTP/1.1\r\nHost: {host}:{port}\r\nX-Dafka-Console: 1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    with socket.create_connection((host, int(port)), SECONDS) as one:
        one.sendall(
            f"GET /api/topics HTTP/1.1\r\nHost: {host}:{port}\r\n{head}\r\n0\r\n\r\n{hidden}".encode()
        )
        one.shutdown(socket.SHUT_WR)
        answers = b""
        while some := one.recv(65536):
            answers += some
    # Octets behind a head without a body are the next request, for everybody alike.
    assert answers.count(b"HTTP/1.1 200") <= 1
    assert name not in shared.topics()


@pytest.mark.parametrize("part", ["line", "head", "body"])
def test_a_request_that_comes_octet_by_octet_has_an_end(shared, monkeypatch, part):
    for name in ("SOCKET_SECONDS", "HEAD_SECONDS", "BODY_SECONDS"):
        monkeypatch.setattr(limits, name, 0.6)
    sent = {
        "line": b"",
        "head": b"GET /api/topics HTTP/1.1\r\n",
        "body": b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nX-Dafka-Console: 1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
    }
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with Console(connection) as console:
        host, port = console.url.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), SECONDS) as one:
            one.sendall(sent[part])
            one.settimeout(0.1)
            deadline = time.monotonic() + SECONDS
            answer = None
            while answer is None:
                assert time.monotonic() < deadline
                try:
                    one.sendall(b"x")
                    answer = one.recv(1000)
                except TimeoutError:
                    continue
                except OSError:
                    answer = b""
        assert b" 200 " not in answer


def test_a_connection_is_closed_whoever_still_has_its_body():
    """Whoever collects it later may be in another thread than its loop, or that has ended."""
    kept = []

    def application(environ, start_response):
        kept.append(environ["wsgi.input"].rfile)
        start_response("200 OK", [])
        return [b""]

    server = Server("127.0.0.1", 0, lambda rest: application)
    try:
        with socket.create_connection(server.address, SECONDS) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while one.recv(1000):
                pass
    finally:
        server.close()
    assert kept[0].closed
