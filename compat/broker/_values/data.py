"""Data made of Python's objects, and turned back into them."""

from __future__ import annotations

from typing import Any

from compat.broker._values import conversion
from compat.broker._values.native import NativeData


class Data(NativeData):
    """The value that an object stands for.

    None, ``bool``, ``int`` (integer), ``float`` (real), ``str`` and ``bytes`` (string), ``timedelta``,
    ``datetime`` (without a time zone: local time), addresses and networks of :mod:`ipaddress`, ``list`` and
    ``tuple`` (vector), ``set`` and ``frozenset``, ``dict`` and ``MappingProxyType`` (table), the classes of
    this package, and :class:`compat.broker.zeek.Event`. Anything else raises TypeError.
    """

    __slots__ = ()

    def __init__(self, x: Any = None) -> None:
        self._value = conversion.to_value(x)

    @staticmethod
    def from_py(x: Any) -> Data:
        return Data(x)

    @staticmethod
    def to_py(d: NativeData) -> Any:
        """The object for data. Vectors are tuples; strings are ``bytes`` where they are not UTF-8.

        Times have microseconds. Raises TypeError for a set or the keys of a table if these hold sets or
        tables, which have no hash in Python: see :class:`ImmutableData`.
        """
        return conversion.to_python(d._value)


class ImmutableData(Data):
    """Data that becomes immutable objects: ``frozenset``, and a ``dict`` that has a hash."""

    __slots__ = ()

    HashableReadOnlyDict = conversion.HashableReadOnlyDict

    @staticmethod
    def to_py(d: NativeData) -> Any:
        return conversion.to_immutable(d._value)
