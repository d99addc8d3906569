"""Rows of Zeek's logs: the content of a log write, and the names of its fields, which a log create tells.

A row is Zeek's own serialization: a number of fields, then each with type, subtype and whether it is there;
numbers in network order. Newer versions of Zeek number the types otherwise than older ones, and nothing says
which they are, so a row is read by the one numbering, and by the other if it does not come out even.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from typing import Any

from dafka.overlay.bridge.json_forms import clean, real
from dafka.overlay.values import Value
from dafka.overlay.values.containers import octets_of
from dafka.protocol.errors import MalformedMessage

MOST_FIELDS = 10_000
"""Of a row, with the elements of its sets and vectors."""

_BEFORE = ["void", "bool", "int", "count"]
_BETWEEN = ["double", "time", "interval", "string", "pattern", "enum"]
_BEHIND = ["func", "file", "vector"]
_NOW = [*_BEFORE, *_BETWEEN, "port", "addr", "subnet", "any", "table", "record", "list", *_BEHIND]
_THEN = [*_BEFORE, "counter", *_BETWEEN, "timer", "port", "addr", "subnet", "any", "table", "union"]
_THEN += ["record", "list", *_BEHIND]

_U32, _I64, _U64, _DOUBLE = (struct.Struct(form) for form in (">I", ">q", ">Q", ">d"))


def read_row(row: str) -> list[Any]:
    """The fields of a row, as JSON has them; those that are not set are None.

    Raises :class:`MalformedMessage`.
    """
    octets = octets_of(row)
    try:
        return _Reader(octets, _NOW).row()
    except MalformedMessage as error:
        try:
            return _Reader(octets, _THEN).row()
        except MalformedMessage:
            raise error from None


def field_names(fields: Value) -> tuple[str, ...]:
    """The names of a log's fields, from the ``fields`` of a log create. Raises :class:`MalformedMessage`."""
    if not isinstance(fields, tuple):
        raise MalformedMessage("log-fields", "no vector")
    names = [field[0] if isinstance(field, tuple) and field else None for field in fields]
    if not all(isinstance(name, str) for name in names):
        raise MalformedMessage("log-fields", "a field without a name")
    return tuple([clean(str(name)) for name in names])


class _Reader:
    def __init__(self, octets: bytes, kinds: list[str]) -> None:
        self._octets = octets
        self._kinds = kinds
        self._position = 0
        self._left = MOST_FIELDS
        self._readers: dict[str, Callable[[], Any]] = {
            "bool": lambda: bool(self._number(_I64)),
            "int": lambda: self._number(_I64),
            "count": lambda: self._number(_U64),
            "counter": lambda: self._number(_U64),
            "double": lambda: real(self._number(_DOUBLE)),
            "time": lambda: real(self._number(_DOUBLE)),
            "interval": lambda: real(self._number(_DOUBLE)),
            "port": self._port,
            "addr": self._address,
            "subnet": self._subnet,
            "table": self._elements,
            "vector": self._elements,
            **dict.fromkeys(("string", "enum", "file", "func", "pattern"), self._string),
        }

    def row(self) -> list[Any]:
        fields = [self._field(self._kind()) for _ in range(self._count())]
        if self._position != len(self._octets):
            raise MalformedMessage(
                "log-row", f"{len(self._octets) - self._position} octets behind the last field"
            )
        return fields

    def _elements(self) -> list[Any]:
        """The elements of a set or a vector, which do not hold other containers."""
        kinds = (self._kind() for _ in range(self._count()))
        return [self._element(kind) for kind in kinds]

    def _element(self, kind: str) -> Any:
        if kind in ("table", "vector"):
            raise MalformedMessage("log-row", f"a {kind} inside a set or a vector")
        return self._field(kind)

    def _count(self) -> int:
        count = self._number(_U32)
        self._left -= count
        if self._left < 0:
            raise MalformedMessage("log-row", f"more than {MOST_FIELDS} fields and elements")
        return int(count)

    def _kind(self) -> str:
        number, _ = self._number(_U32), self._number(_U32)
        if number >= len(self._kinds) or self._kinds[number] not in self._readers:
            raise MalformedMessage("log-row", f"a field of type {number}")
        return str(self._kinds[number])

    def _field(self, kind: str) -> Any:
        present = self._take(1)[0]
        if present > 1:
            raise MalformedMessage("log-row", f"{present} where 0 or 1 says whether a field is there")
        return self._readers[kind]() if present else None

    def _take(self, count: int) -> bytes:
        start = self._position
        self._position += count
        if self._position > len(self._octets):
            raise MalformedMessage("log-row", "shorter than it says")
        return self._octets[start : self._position]

    def _number(self, form: struct.Struct) -> Any:
        return form.unpack(self._take(form.size))[0]

    def _string(self) -> str:
        octets: bytes = self._take(self._number(_U32))
        return octets.decode("utf-8", "backslashreplace")

    def _port(self) -> int:
        number, protocol = self._number(_U64), self._number(_U32)
        if number > 65535 or protocol > 3:
            raise MalformedMessage("log-row", f"port {number} of protocol {protocol}")
        return int(number)

    def _address(self) -> str:
        family = self._take(1)[0]
        if family not in (4, 6):
            raise MalformedMessage("log-row", f"an address of family {family}")
        return str(ipaddress.ip_address(self._take(4 if family == 4 else 16)))

    def _subnet(self) -> str:
        bits = self._take(1)[0]
        address = self._address()
        # Zeek counts the bits of an IPv4 network on the scale of IPv6.
        return f"{address}/{bits - 96 if ':' not in address and bits >= 96 else bits}"
