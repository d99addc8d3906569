"""The server of metrics and health."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.request import urlopen

import pytest

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


def test_a_host_that_is_unknown_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError):
        serve("nobody.invalid", 0, answer)
