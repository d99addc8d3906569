"""Addresses of nodes, towers and topics as users write them, checked where they enter."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, Union, runtime_checkable

from dafka.protocol.errors import DafkaError

if TYPE_CHECKING:
    from dafka.mesh.tower import Tower

DEFAULT_TOWER = ("tcp://127.0.0.1:5556", "tcp://127.0.0.1:5557")  # the C daemon's, on loopback
TOPIC_BYTES = 255  # a topic is a length octet and its bytes on the wire

TowerLike = Union["Tower", tuple[str, str], Iterable[Union["Tower", tuple[str, str]]], None]

_ADDRESS = re.compile(r"[0-9A-F]{32}")
_TCP_PORT = re.compile(r"tcp://.*:([0-9]{1,20})")
_ENDPOINT = re.compile(r"(tcp|ipc|inproc)://.+")


class InvalidAddressError(DafkaError, ValueError):
    """An invalid address of a node, tower or partition."""


class InvalidTopicError(DafkaError, ValueError):
    """A topic name that cannot go on the wire."""


@runtime_checkable
class HasAddresses(Protocol):
    """A tower, by what nodes need of it: the pair that they publish to and subscribe from."""

    @property
    def addresses(self) -> tuple[str, str]: ...


def new_address() -> bytes:
    """A new node address: a random UUID as 32 upper-case hex octets, as nodes in the field have them."""
    return uuid.uuid4().hex.upper().encode()


def check_address(address: str) -> bytes:
    """A node address given by a user, as octets; raises :class:`InvalidAddressError`."""
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise InvalidAddressError(f"{address!r} is not a node address: 32 upper-case hex digits of a UUID")
    return address.encode()


def check_topic(topic: str | bytes) -> bytes:
    """A topic given by a user, as 1 to 255 octets of any value; raises :class:`InvalidTopicError`."""
    if not isinstance(topic, (str, bytes)):
        raise InvalidTopicError(f"a topic is a str or bytes, not {type(topic).__name__}: {topic!r}")
    octets = topic.encode("utf-8", "surrogateescape") if isinstance(topic, str) else topic
    if not 0 < len(octets) <= TOPIC_BYTES:
        raise InvalidTopicError(
            f"a topic has 1 to {TOPIC_BYTES} octets, this one has {len(octets)}: {topic!r}"
        )
    return octets


def topic_name(topic: bytes) -> str:
    """A topic off the wire as users see it; octets that are not UTF-8 survive the way back."""
    return topic.decode("utf-8", "surrogateescape")


def address_name(address: bytes) -> str:
    """An address off the wire as users see it; octets that are invalid in addresses are shown as escapes."""
    return address.decode("ascii", "backslashreplace")


def tower_addresses(tower: TowerLike) -> tuple[tuple[str, str], ...]:
    """The address pairs of ``tower``: a Tower, a pair, or several of these; None is the C daemon's."""
    if tower is None:
        return (DEFAULT_TOWER,)
    addresses: Any = tower.addresses if isinstance(tower, HasAddresses) else tower
    if isinstance(addresses, (str, bytes)):
        addresses = [addresses]  # and not its letters
    several = (addresses,) if _is_pair(addresses) or not isinstance(addresses, Iterable) else addresses
    pairs = tuple(dict.fromkeys(_pair(one) for one in several))
    if not pairs:
        raise InvalidAddressError("a node needs at least one tower")
    return pairs


def _pair(tower: object) -> tuple[str, str]:
    pair: Any = tower.addresses if isinstance(tower, HasAddresses) else tower
    if not _is_pair(pair) or not all(_ENDPOINT.match(address) for address in pair):
        raise InvalidAddressError(
            f"{pair!r} is not a tower: a pair of ZeroMQ addresses, the one nodes publish to and the one "
            f"they subscribe from, as in {DEFAULT_TOWER!r}"
        )
    for address in pair:
        port = _TCP_PORT.fullmatch(address)
        if port is not None and not 0 < int(port[1]) < 65536:  # ZeroMQ would try for ever
            raise InvalidAddressError(f"{address!r} is not an address of a tower: ports are 1 to 65535")
    return str(pair[0]), str(pair[1])


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(part, str) for part in value)
    )
