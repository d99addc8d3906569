"""Endpoints as ZeroMQ's users write them: ``tcp://*:5555``, ``tcp://127.0.0.1:*``, ``tcp://[::1]:5555``."""

from __future__ import annotations

import re
from typing import NamedTuple

from dafka.sockets.errors import EndpointError

_TCP = re.compile(r"tcp://(?:\[(?P<six>[^\[\]]+)\]|(?P<host>[^:\[\]/]+)):(?P<port>\*|[0-9]{1,5})")


class Endpoint(NamedTuple):
    """A host ("": all interfaces) and a port (0: any)."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host or "*"
        return f"tcp://{host}:{self.port or '*'}"


def to_bind(text: str) -> Endpoint:
    """The endpoint to bind; raises EndpointError."""
    endpoint = _parse(text)
    return endpoint._replace(host="") if endpoint.host == "*" else endpoint


def to_connect(text: str) -> Endpoint:
    """The endpoint to connect to; raises EndpointError."""
    endpoint = _parse(text)
    if endpoint.host == "*" or not endpoint.port:
        raise EndpointError(f"{text!r} names no host and port to connect to, as in 'tcp://127.0.0.1:5555'")
    return endpoint


def _parse(text: str) -> Endpoint:
    match = _TCP.fullmatch(text)
    if match is None:
        transport = text.partition("://")[0]
        if transport in ("ipc", "inproc", "udp", "pgm", "epgm", "ws", "wss"):
            raise EndpointError(f"{text!r}: {transport}:// is not served, only tcp://")
        raise EndpointError(f"{text!r} is not an endpoint, as in 'tcp://127.0.0.1:5555' or 'tcp://*:5555'")
    port = 0 if match["port"] == "*" else int(match["port"])
    if port > 65535:
        raise EndpointError(f"{text!r}: ports are 1 to 65535")
    return Endpoint(match["six"] or match["host"], port)
