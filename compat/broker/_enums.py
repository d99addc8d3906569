"""The bindings' enumerations: their names, their numbers, and what can be done with them.

A member equals members of its own class alone (:class:`EC` also numbers), has no order, and is turned into
its number by ``int``. A number that no member has makes a value called ``???``.
"""

from __future__ import annotations

import enum


class Enumeration(enum.Enum):
    """An enumeration as the bindings have them."""

    @classmethod
    def _missing_(cls, value: object) -> Enumeration:
        if not isinstance(value, int):
            raise TypeError(f"{cls.__name__} is made of a number, not of {type(value).__name__}")
        unnamed = object.__new__(cls)
        unnamed._name_ = "???"
        unnamed._value_ = value
        return unnamed

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and int(other) == int(self)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(int(self))

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {int(self)}>"


class APIFlags(Enumeration):
    Blocking = 1
    NonBlocking = 2


class Frontend(Enumeration):
    Master = 1
    Clone = 0


class Backend(Enumeration):
    """Where a master keeps its content."""

    Memory = 0
    SQLite = 1


class EC(Enumeration):
    """Codes of errors. ``Error.code()`` is a number, so a code also equals its number."""

    Unspecified = 1
    PeerIncompatible = 2
    PeerInvalid = 3
    PeerUnavailable = 4
    PeerTimeout = 6
    MasterExists = 7
    NoSuchMaster = 8
    NoSuchKey = 9
    RequestTimeOut = 10
    TypeClash = 11
    InvalidData = 12
    BackendFailure = 13
    StaleData = 14

    def __eq__(self, other: object) -> bool:
        return other == int(self) if isinstance(other, int) else super().__eq__(other)

    __hash__ = Enumeration.__hash__


class SC(Enumeration):
    """Codes of statuses."""

    Unspecified = 0
    PeerAdded = 1
    PeerRemoved = 2
    PeerLost = 3
    EndpointDiscovered = 4
    EndpointUnreachable = 5


class PeerStatus(Enumeration):
    Initialized = 0
    Connecting = 1
    Connected = 2
    Peered = 3
    Disconnected = 4
    Reconnecting = 5


class PeerFlags(Enumeration):
    """Bits: a combination of several is a value called ``???``."""

    Invalid = 0
    Local = 1
    Remote = 2
    Outbound = 4
    Inbound = 8
