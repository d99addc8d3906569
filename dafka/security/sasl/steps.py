"""The common parts of the mechanisms: their names, a step of an exchange, and its two ends."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from dafka.protocol.errors import DafkaError

PLAIN = "PLAIN"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"

SCRAM_MECHANISMS = (SCRAM_SHA_256, SCRAM_SHA_512)
MECHANISMS = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER)
"""The names that Kafka has for them."""


class Identity(NamedTuple):
    """The principal of a client, and when it ends (seconds since 1970; None: with its connection)."""

    name: str
    expires: float | None = None


class Step(NamedTuple):
    """The answer to a message of the client; with ``identity`` it is the last one."""

    reply: bytes
    identity: Identity | None = None


class AuthenticationError(DafkaError):
    """A client is not who it says it is. The message is for the client, and tells no reason.

    ``name`` is the user that the client has named, "" if it has named none.
    """

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class Exchange(Protocol):
    """The server's side of one mechanism, for one client."""

    def respond(self, message: bytes) -> Step:
        """Take the client's next message. Raises :class:`AuthenticationError`, after which it is over."""
