"""Broker's scalar types that Python has no type for, and the tags of all types.

A value is None, a ``bool``, a :class:`Count`, an ``int`` (Broker's integer), a ``float`` (real), a ``str``,
an :class:`Address`, :class:`Subnet`, :class:`Port`, :class:`Timestamp`, :class:`Timespan`, :class:`Enum`,
:class:`~dafka.overlay.values.containers.Set`, :class:`~dafka.overlay.values.containers.Table` or a tuple of
values (vector).

Broker's strings are octets. Those that are not UTF-8 are kept in a ``str`` as ``surrogateescape`` does it,
and are written as they came.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

NONE, BOOLEAN, COUNT, INTEGER, REAL, STRING, ADDRESS, SUBNET = range(8)
PORT, TIMESTAMP, TIMESPAN, ENUM, SET, TABLE, VECTOR = range(8, 15)

UNKNOWN, TCP, UDP, ICMP = range(4)
_PROTOCOLS = ("?", "tcp", "udp", "icmp")

_MAPPED = bytes(10) + b"\xff\xff"  # in front of the four octets of an IPv4 address
_MAPPED_BITS = 96

NAN = float("nan")
"""The NaN of all decoded values: one object, so that ``in`` and ``==`` of what holds it find it."""


class Count(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Count({int(self)})"

    __str__ = int.__repr__


class Timestamp(int):
    """Nanoseconds since 1970-01-01 UTC."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Timestamp({int(self)})"

    __str__ = int.__repr__


class Timespan(int):
    """Nanoseconds."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Timespan({int(self)})"

    __str__ = int.__repr__


class Enum(str):
    """The name of a value of a Zeek enumeration, such as ``Log::WRITER_ASCII``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Enum({str.__repr__(self)})"


class Address(bytes):
    """An IP address: 16 octets, IPv4 mapped into IPv6."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> Address:
        """From ``192.168.9.8`` or ``2001:db8::1``."""
        ip = ipaddress.ip_address(text)
        return cls(_MAPPED + ip.packed if ip.version == 4 else ip.packed)

    @property
    def is_v4(self) -> bool:
        return self.startswith(_MAPPED)

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        """As Python's own class."""
        return ipaddress.IPv4Address(self[12:]) if self.is_v4 else ipaddress.IPv6Address(bytes(self))

    def __str__(self) -> str:
        return str(self.ip)

    def __repr__(self) -> str:
        return f"Address.of({str(self)!r})" if len(self) == 16 else f"Address({bytes(self)!r})"


class Subnet(NamedTuple):
    """A network and how many bits of the 128 of its address name it: 96 more than usual for IPv4."""

    network: Address
    bits: int

    @classmethod
    def of(cls, text: str) -> Subnet:
        """From ``10.1.2.0/24`` or ``2001:db8::/33``."""
        network = ipaddress.ip_network(text)
        more = _MAPPED_BITS if network.version == 4 else 0
        return cls(Address.of(str(network.network_address)), network.prefixlen + more)

    def __str__(self) -> str:
        return f"{self.network}/{self.bits - _MAPPED_BITS if self.network.is_v4 else self.bits}"


class Port(NamedTuple):
    """A port and its protocol: UNKNOWN, TCP, UDP or ICMP."""

    number: int
    protocol: int = TCP

    @classmethod
    def of(cls, text: str) -> Port:
        """From ``80/tcp``."""
        number, _, protocol = text.partition("/")
        return cls(int(number), _PROTOCOLS.index(protocol))

    def __str__(self) -> str:
        return f"{self.number}/{_PROTOCOLS[self.protocol]}"
