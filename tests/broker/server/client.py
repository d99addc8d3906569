"""A client of the listener that sends exactly what a test wants, as kafka-python's objects or as bytes."""

from __future__ import annotations

import socket
import struct
from itertools import count
from types import TracebackType
from typing import Any, Protocol

from broker.clients import Client
from kafka.protocol.metadata import ApiVersionsRequest

from dafka import Broker
from dafka.broker.codec.reader import read_message
from dafka.broker.server import answer

TIMEOUT = 100.0


class Addressed(Protocol):
    """A broker with an address."""

    @property
    def bootstrap_servers(self) -> str: ...


class WireClient:
    """One connection. Responses are read strictly: no octet may be missing or left over."""

    def __init__(self, broker: Addressed, source: str = "") -> None:
        """``source`` is the address that it connects from."""
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), TIMEOUT, (source, 0) if source else None)
        self._correlations = count(1)

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def ask(self, request: Any, version: int) -> Any:
        """The response to a request."""
        return self.receive(request, version, self.send(request, version))

    def send(self, request: Any, version: int, client_id: str = "tests") -> int:
        """Send a request; its correlation id."""
        correlation = next(self._correlations)
        self.socket.sendall(encoded(request, version, correlation, client_id))
        return correlation

    def receive(self, request: Any, version: int, correlation: int) -> Any:
        """The response to the request with that correlation id, which has to be the next one."""
        frame = self.receive_frame()
        response_class = type(request).__name__.replace("Request", "Response")
        return decoded(request, response_class, version, frame, correlation)

    def receive_frame(self) -> bytes:
        """The next response, as bytes without their length."""
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection; returns whether it did."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True

    def _exactly(self, size: int) -> bytes:
        octets = bytearray()
        while len(octets) < size:
            some = self.socket.recv(size - len(octets))
            if not some:
                raise EOFError(f"closed after {len(octets)} of {size} octets")
            octets += some
        return bytes(octets)


def discarded(broker: Broker) -> dict[str, int]:
    """The broker's connections closed for a cause, but for those of strays.

    A ZeroMQ node of another test that looks for a peer which had the broker's port before is a stray.
    """
    return {cause: count for cause, count in broker.discarded.items() if cause != "zeromq"}


def encoded(request: Any, version: int, correlation: int = 1, client_id: str = "tests") -> bytes:
    """A request with its header and length."""
    request.API_VERSION = version
    request.with_header(correlation, client_id)
    return bytes(request.encode(version=version, header=True, framed=True))


def decoded(request: Any, response_name: str, version: int, frame: bytes, correlation: int) -> Any:
    """A response in bytes as an object; no octet may be left over."""
    module = __import__(type(request).__module__, fromlist=[response_name])
    response_class = getattr(module, response_name)
    assert int.from_bytes(frame[:4], "big") == correlation
    flexible = response_class.flexible_version_q(version) and response_name != "ApiVersionsResponse"
    if flexible:
        assert frame[4] == 0
    response, end = read_message(response_class, version, memoryview(frame), 5 if flexible else 4)
    assert end == len(frame)
    return response


def answered(client: Client, request: Any, version: int | None = None) -> Any:
    """What the broker of ``client`` answers to a request as an object, in process."""
    if version is not None:
        request.API_VERSION = version
    return client.connection.hub.run(answer, client.core, request)


def alive(broker: Broker) -> bool:
    """Whether the broker answers on a new connection."""
    with WireClient(broker) as other:
        return other.ask(ApiVersionsRequest(), 0).error_code == 0


def frame(body: bytes) -> bytes:
    """A header and body in bytes after their length."""
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, client_id: bytes = b"\0\5tests") -> bytes:
    """The header of a request in bytes, with correlation id 7."""
    return struct.pack(">hhi", key, version, 7) + client_id
