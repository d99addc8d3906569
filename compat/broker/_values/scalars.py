"""Addresses, counts, names of enumerations, ports and subnets, as the bindings have them."""

from __future__ import annotations

from typing import TypeAlias

from compat.broker._enums import Enumeration
from compat.broker._values.valued import Comparable
from dafka.overlay import values
from dafka.overlay.values.containers import octets_of

Octets: TypeAlias = bytes

_V4, _V6 = 4, 6
_MAPPED = bytes(10) + b"\xff\xff"
_ADDRESS_BITS, _MAPPED_BITS = 128, 96
_OCTETS = {_V4: 4, _V6: 16}
_MOST_COUNT = 2**64 - 1
_MOST_PORT = 2**16 - 1


class Address(Comparable):
    """An IP address, of 4 octets and ``family`` 4, or of 16 and ``family`` 6."""

    __slots__ = ()
    _family = "Address"
    _value: values.Address

    class Family(Enumeration):
        IPv4 = 0
        IPv6 = 1

    class ByteOrder(Enumeration):
        Host = 0
        Network = 1

    def __init__(self, octets: Octets = bytes(16), family: int = _V6) -> None:
        if not isinstance(octets, bytes) or not isinstance(family, int):
            raise TypeError("an Address is made of bytes and an int")
        if family not in _OCTETS or len(octets) != _OCTETS[family]:
            raise ValueError(f"no IP address: {len(octets)} octets of family {family}")
        self._value = values.Address(_MAPPED + octets if family == _V4 else octets)

    def mask(self, top_bits_to_keep: int) -> bool:
        """Clear all other bits of the 128 (IPv4: behind 96 of a prefix). False, and nothing, above 128."""
        if not isinstance(top_bits_to_keep, int) or not 0 <= top_bits_to_keep <= 255:
            raise TypeError(f"no number of bits: {top_bits_to_keep!r}")
        if top_bits_to_keep > _ADDRESS_BITS:
            return False
        self._value = _masked(self._value, top_bits_to_keep)
        return True

    def is_v4(self) -> bool:
        return self._value.is_v4

    def is_v6(self) -> bool:
        return not self._value.is_v4

    def bytes(self) -> Octets:
        """16 octets."""
        return b"".join((self._value,))

    def __repr__(self) -> str:
        return str(self._value)


class Count(Comparable):
    """An unsigned number of 64 bits. Raises OverflowError for any other."""

    __slots__ = ()
    _family = "Count"
    _value: values.Count

    def __init__(self, value: int) -> None:
        self.value = value

    @property
    def value(self) -> int:
        return int(self._value)

    @value.setter
    def value(self, value: int) -> None:
        if not isinstance(value, int):
            raise TypeError(f"a Count is made of an int, not of {type(value).__name__}")
        if not 0 <= value <= _MOST_COUNT:
            raise OverflowError(f"a Count is in 0...2**64 - 1, not {value}")
        self._value = values.Count(value)

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"Count({self.value})"


class Enum(Comparable):
    """The name of a value of a Zeek enumeration, such as ``Log::WRITER_ASCII``."""

    __slots__ = ()
    _family = "Enum"
    _value: values.Enum

    def __init__(self, name: str | bytes) -> None:
        self.name = name

    @property
    def name(self) -> str:
        return str.__str__(self._value)

    @name.setter
    def name(self, name: str | bytes) -> None:
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"an Enum is made of a str, not of {type(name).__name__}")
        self._value = values.Enum(octets_of(name).decode("utf-8", "surrogateescape"))

    def __repr__(self) -> str:
        return self.name


class Port(Comparable):
    """A number and one of ``Port.TCP``, ``UDP``, ``ICMP`` and ``Unknown``."""

    __slots__ = ()
    _family = "Port"
    _value: values.Port

    class Protocol(Enumeration):
        Unknown = 0
        TCP = 1
        UDP = 2
        ICMP = 3

    Unknown = Protocol.Unknown
    TCP = Protocol.TCP
    UDP = Protocol.UDP
    ICMP = Protocol.ICMP

    def __init__(self, number: int = 0, protocol: Protocol = Protocol.Unknown) -> None:
        if not isinstance(number, int) or not isinstance(protocol, Port.Protocol):
            raise TypeError("a Port is made of an int and a Port.Protocol")
        if not 0 <= number <= _MOST_PORT:
            raise TypeError(f"the number of a Port is in 0...65535, not {number}")
        self._value = values.Port(int(number), int(protocol))

    def number(self) -> int:
        return self._value.number

    def get_type(self) -> Protocol:
        return Port.Protocol(self._value.protocol)

    def __repr__(self) -> str:
        return str(self._value)


class Subnet(Comparable):
    """An address and how many of its first bits name the network: at most 32 of IPv4, 128 of IPv6."""

    __slots__ = ()
    _family = "Subnet"
    _value: values.Subnet

    def __init__(self, network: Address | None = None, length: int = 0) -> None:
        network = Address() if network is None else network
        if not isinstance(network, Address) or not isinstance(length, int):
            raise TypeError("a Subnet is made of an Address and an int")
        bits = length + _MAPPED_BITS if network.is_v4() else length
        if length < 0 or bits > _ADDRESS_BITS:
            raise ValueError(f"no subnet: {length} bits of {network}")
        self._value = values.Subnet(_masked(network._value, bits), bits)

    def contains(self, addr: Address) -> bool:
        return _masked(addr._value, self._value.bits) == self._value.network

    def network(self) -> Address:
        return Address._of(self._value.network)

    def length(self) -> int:
        network, bits = self._value
        return bits - _MAPPED_BITS if network.is_v4 else bits

    def __repr__(self) -> str:
        return str(self._value)


def _masked(address: values.Address, bits: int) -> values.Address:
    ones = ((1 << bits) - 1) << (_ADDRESS_BITS - bits)
    return values.Address((int.from_bytes(address, "big") & ones).to_bytes(_ADDRESS_BITS // 8, "big"))
