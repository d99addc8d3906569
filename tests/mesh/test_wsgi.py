"""The server of metrics and health."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.request import urlopen

import pytest

from dafka.mesh import wsgi
from dafka.mesh.wsgi import serve


def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["PATH_INFO"].encode()]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_requests_are_answered_and_leave_no_line(host: str, capfd: pytest.CaptureFixture[str]) -> None:
    server = serve(host, 0, answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with urlopen(f"http://{host}:{server.server_port}/health", timeout=200) as page:
            assert page.read() == b"/health"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert capfd.readouterr() == ("", "")


def test_connections_that_say_nothing_take_a_bounded_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wsgi, "CONNECTIONS", 3)
    server = serve("127.0.0.1", 0, answer)
    address = ("127.0.0.1", server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    silent = [socket.create_connection(address, 200) for _ in range(3)]
    try:
        with socket.create_connection(address, 200) as further:
            assert further.recv(1) == b""  # closed at once
        for one in silent:
            one.close()
        deadline = time.monotonic() + 200
        while True:  # there is a place again
            try:
                with urlopen(f"http://127.0.0.1:{address[1]}/health", timeout=200) as page:
                    assert page.read() == b"/health"
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.01)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_host_that_is_unknown_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError):
        serve("nobody.invalid", 0, answer)
