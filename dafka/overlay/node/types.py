"""Values for users of an endpoint: ids, messages, and peers."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from dafka.hub.waits import interval_of
from dafka.overlay.node import limits
from dafka.overlay.node.errors import AddressError
from dafka.overlay.peering.statuses import NetworkInfo
from dafka.overlay.values import Value
from dafka.overlay.wire.primitives import ID_OCTETS


class EndpointId(bytes):
    """The id of an endpoint: 16 octets, written as a UUID."""

    def __new__(cls, octets: bytes) -> EndpointId:
        if len(octets) != ID_OCTETS:
            raise ValueError(f"an endpoint's id has {ID_OCTETS} octets, not {len(octets)}: {octets!r:.100}")
        return super().__new__(cls, octets)

    @classmethod
    def random(cls) -> EndpointId:
        return cls(uuid.uuid4().bytes)

    @classmethod
    def parse(cls, id: str | bytes) -> EndpointId:
        """From a UUID's text, or 16 octets. Raises ValueError, TypeError."""
        if isinstance(id, bytes):
            return cls(id)
        if not isinstance(id, str):
            raise TypeError(f"an endpoint's id is a str or bytes, not {type(id).__name__}: {id!r:.100}")
        try:
            return cls(uuid.UUID(id).bytes)
        except ValueError as error:
            raise ValueError(f"{id!r:.100} is not the id of an endpoint, a UUID") from error

    def __str__(self) -> str:
        return str(uuid.UUID(bytes=bytes(self)))

    def __repr__(self) -> str:
        return f"EndpointId({self!s})"


class Message(NamedTuple):
    """A message to a subscriber. ``sender`` is the endpoint that published it; for a peer of libbroker's
    protocol the direct peer that it came from."""

    topic: str
    value: Value
    sender: EndpointId


class PeerInfo(NamedTuple):
    """A peer. ``flags``: ``outbound`` (this endpoint connects), ``inbound`` (it was connected to), ``remote``
    (known over others). ``status``: ``peered``, ``connecting`` (its ``id`` is None), ``reachable``.
    """

    id: EndpointId | None
    address: str | None
    flags: frozenset[str]
    status: str


def parse_address(address: str, retry: float = 0.0) -> NetworkInfo:
    """``host:port`` or ``[host]:port``. Raises :class:`AddressError`, TypeError, ValueError for ``retry``."""
    if not isinstance(address, str):
        raise TypeError(f"an address is a str, not {type(address).__name__}: {address!r:.100}")
    host, colon, port = address.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 0xFFFF
    if not colon or not is_port or (":" in host and not host.startswith("[")):
        raise AddressError(f"{address!r:.200} is not host:port")
    return NetworkInfo(
        host.strip("[]"), int(port), interval_of(retry, "retry", most=limits.RETRY_MOST_SECONDS)
    )
