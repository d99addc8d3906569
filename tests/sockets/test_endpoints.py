"""Endpoints as users write them."""

from __future__ import annotations

import pytest

from dafka.sockets.endpoints import Endpoint, to_bind, to_connect
from dafka.sockets.errors import EndpointError


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("tcp://*:5555", "", 5555),
        ("tcp://127.0.0.1:5555", "127.0.0.1", 5555),
        ("tcp://127.0.0.1:*", "127.0.0.1", 0),
        ("tcp://127.0.0.1:0", "127.0.0.1", 0),
        ("tcp://localhost:65535", "localhost", 65535),
        ("tcp://[::1]:5555", "::1", 5555),
        ("tcp://[::]:*", "::", 0),
        ("tcp://*:*", "", 0),
    ],
)
def test_endpoints_to_bind(text: str, host: str, port: int):
    assert to_bind(text) == Endpoint(host, port)
    assert to_bind(str(to_bind(text))) == to_bind(text)


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:5555", "tcp://host.example:1", "tcp://[::1]:5555"])
def test_endpoints_to_connect_to(text: str):
    assert str(to_connect(text)) == text


@pytest.mark.parametrize("text", ["tcp://*:5555", "tcp://127.0.0.1:*", "tcp://127.0.0.1:0"])
def test_endpoints_that_can_only_be_bound(text: str):
    with pytest.raises(EndpointError, match="names no host and port"):
        to_connect(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not an endpoint"),
        ("127.0.0.1:5555", "not an endpoint"),
        ("tcp://127.0.0.1", "not an endpoint"),
        ("tcp://:5555", "not an endpoint"),
        ("tcp://a:b:5555", "not an endpoint"),
        ("tcp://host:5555/resource", "not an endpoint"),
        ("tcp://host:5555 ", "not an endpoint"),
        ("http://host:80", "not an endpoint"),
        ("tcp://host:65536", "ports are 1 to 65535"),
        ("ipc:///tmp/socket", "ipc:// is not served"),
        ("inproc://name", "inproc:// is not served"),
    ],
)
def test_an_error_names_the_refused_endpoint(text: str, message: str):
    for read in (to_bind, to_connect):
        with pytest.raises(EndpointError, match=message):
            read(text)
