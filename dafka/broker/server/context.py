"""The client behind a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dafka.broker.access.rights import Rights
from dafka.broker.interface.topics import Metadata
from dafka.broker.listening import PLAINTEXT
from dafka.security.principals import ANONYMOUS


class Told(NamedTuple):
    """The listener in answers to its clients: its protocol, and the broker's address."""

    protocol: str
    host: str
    port: int


class Mutations(Protocol):
    """The quota that a request asks before it adds or deletes partitions."""

    def may(self, partitions: int, strict: bool) -> bool:
        """Whether so many may be added or deleted; always if not ``strict``, but the client waits then."""


class Peer:
    """The client of a connection.

    ``is_kafka_python``: whether it has identified itself as kafka-python with ApiVersions (KIP-511).
    ``told``: the address of the listener that it has connected to, as it is told. ``principal``: its user.
    ``rights``: its rights; None: everything. ``mutations``: how many partitions the request that is answered
    may add or delete; None: all. ``takes_files``: whether the kernel can send it files, which nothing has to
    encrypt.
    """

    __slots__ = ("host", "is_kafka_python", "mutations", "principal", "rights", "takes_files", "told")

    def __init__(self, host: str, told: Told | None = None) -> None:
        self.host = host
        self.told = told
        self.is_kafka_python = False
        self.principal = ANONYMOUS
        self.rights: Rights | None = None
        self.mutations: Mutations | None = None
        self.takes_files = False

    @property
    def listener(self) -> str:
        """The listener, for people."""
        return (
            "the listener"
            if self.told is None
            else f"{self.told.protocol}://{self.told.host}:{self.told.port}"
        )


class Context(NamedTuple):
    """The client id of the request's header, the client's host as Kafka writes it ("/127.0.0.1"), whether
    it is kafka-python, the address of its listener as it is told (None: the broker's), its rights (None:
    everything, as for a client of this process), an object that stands for its connection, its principal, and
    how many partitions it may add or delete (None: all)."""

    client_id: str = ""
    client_host: str = ""
    is_kafka_python: bool = False
    told: Told | None = None
    rights: Rights | None = None
    connection: object = None
    principal: str = ANONYMOUS
    mutations: Mutations | None = None

    @property
    def protocol(self) -> str:
        """The security protocol of the client's listener."""
        return PLAINTEXT if self.told is None else self.told.protocol

    def brokers(self, found: Metadata) -> Sequence[tuple[int, str, int]]:
        """The brokers, at the address of the client's own listener."""
        if self.told is None:
            return found.brokers
        return [(number, self.told.host, self.told.port) for number, _, _ in found.brokers]


IN_PROCESS = Context(client_host="/127.0.0.1")
