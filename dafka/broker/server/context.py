"""The client behind a request."""

from __future__ import annotations

from typing import NamedTuple


class Peer:
    """The client of a connection.

    ``is_kafka_python``: whether it has identified itself as kafka-python with ApiVersions (KIP-511).
    """

    __slots__ = ("host", "is_kafka_python")

    def __init__(self, host: str) -> None:
        self.host = host
        self.is_kafka_python = False


class Context(NamedTuple):
    """The client id of the request's header, the client's host as Kafka writes it ("/127.0.0.1"), and whether
    it is kafka-python."""

    client_id: str = ""
    client_host: str = ""
    is_kafka_python: bool = False


IN_PROCESS = Context(client_host="/127.0.0.1")
