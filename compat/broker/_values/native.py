"""Data and what it can hold: vectors, sets and tables of data, which can be changed.

Their elements are data as well, and no other objects; :class:`compat.broker.Data` is made of any object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any, overload

from compat.broker._enums import Enumeration
from compat.broker._values import scalars
from compat.broker._values.conversion import set_of, table_of
from compat.broker._values.text import text_of
from compat.broker._values.valued import Comparable, Valued
from dafka.overlay import values
from dafka.overlay.values import order_key, types
from dafka.overlay.values.containers import OrderKey, octets_of

_SECOND = 1e9  # nanoseconds


class NativeData(Comparable):
    """A value with its type. It cannot be changed; its elements are handed out as copies."""

    __slots__ = ()
    _family = "Data"

    class Type(Enumeration):
        """``getattr(Type, "None")`` is another name of Nil."""

        Nil = types.NONE
        Address = types.ADDRESS
        Boolean = types.BOOLEAN
        Count = types.COUNT
        EnumValue = types.ENUM
        Integer = types.INTEGER
        locals()["None"] = types.NONE
        Port = types.PORT
        Real = types.REAL
        Set = types.SET
        String = types.STRING
        Subnet = types.SUBNET
        Table = types.TABLE
        Timespan = types.TIMESPAN
        Timestamp = types.TIMESTAMP
        Vector = types.VECTOR

    def __init__(self) -> None:
        self._value = None

    def get_type(self) -> Type:
        return NativeData.Type(order_key(self._value)[0])

    def as_none(self) -> None:
        self._of_type(types.NONE)

    def as_boolean(self) -> bool:
        return bool(self._of_type(types.BOOLEAN))

    def as_count(self) -> int:
        return int(self._of_type(types.COUNT))

    def as_integer(self) -> int:
        return int(self._of_type(types.INTEGER))

    def as_real(self) -> float:
        return float(self._of_type(types.REAL))

    def as_string(self) -> bytes:
        return octets_of(self._of_type(types.STRING))

    def as_address(self) -> scalars.Address:
        return scalars.Address._of(self._of_type(types.ADDRESS))

    def as_subnet(self) -> scalars.Subnet:
        return scalars.Subnet._of(self._of_type(types.SUBNET))

    def as_port(self) -> scalars.Port:
        return scalars.Port._of(self._of_type(types.PORT))

    def as_enum_value(self) -> scalars.Enum:
        return scalars.Enum._of(self._of_type(types.ENUM))

    def as_timespan(self) -> float:
        """Seconds."""
        return int(self._of_type(types.TIMESPAN)) / _SECOND

    def as_timestamp(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        return int(self._of_type(types.TIMESTAMP)) / _SECOND

    def as_vector(self) -> Vector:
        return Vector(map(NativeData._of, self._of_type(types.VECTOR)))

    def as_set(self) -> Set:
        return Set(map(NativeData._of, self._of_type(types.SET)))

    def as_table(self) -> Table:
        table: values.Table = self._of_type(types.TABLE)
        return Table({NativeData._of(key): NativeData._of(value) for key, value in table.entries})

    def __str__(self) -> str:
        return text_of(self._value)

    def _of_type(self, wanted: int) -> Any:
        """The value. Raises RuntimeError for one of another type, as the bindings do."""
        if order_key(self._value)[0] != wanted:
            raise RuntimeError(f"data of type {self.get_type().name}, not {NativeData.Type(wanted).name}")
        return self._value


class Vector(MutableSequence[NativeData], Valued):
    """Data in a row."""

    __slots__ = ("_elements",)

    def __init__(self, elements: Iterable[NativeData] = ()) -> None:
        self._elements = [_checked(element) for element in _iterable(elements, "a Vector")]

    @property
    def _value(self) -> values.Value:  # type: ignore[override]  # derived from the elements
        return tuple([element._value for element in self._elements])

    def insert(self, index: int, value: NativeData) -> None:
        self._elements.insert(index, _checked(value))

    @overload
    def __getitem__(self, index: int) -> NativeData: ...
    @overload
    def __getitem__(self, index: slice) -> Vector: ...
    def __getitem__(self, index: int | slice) -> NativeData | Vector:
        return Vector(self._elements[index]) if isinstance(index, slice) else self._elements[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = Vector(value) if isinstance(index, slice) else _checked(value)

    def __delitem__(self, index: int | slice) -> None:
        del self._elements[index]

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        return self._elements == other._elements if isinstance(other, Vector) else NotImplemented

    def __repr__(self) -> str:
        return f"Vector[{', '.join(map(str, self))}]"


class Set(Valued):
    """Data, each once, in Broker's order."""

    __slots__ = ("_elements",)

    def __init__(self, elements: Iterable[NativeData] = ()) -> None:
        self._elements: dict[OrderKey, NativeData] = {}
        for element in _iterable(elements, "a Set"):
            self.add(element)

    @property
    def _value(self) -> values.Value:  # type: ignore[override]  # derived from the elements
        return set_of([element._value for element in self])

    def add(self, x: NativeData) -> None:
        self._elements.setdefault(order_key(_checked(x)._value), x)

    def remove(self, x: NativeData) -> None:
        """Nothing happens if it is not there."""
        self._elements.pop(order_key(_checked(x)._value), None)

    def clear(self) -> None:
        self._elements.clear()

    def __contains__(self, x: object) -> bool:
        return isinstance(x, NativeData) and order_key(x._value) in self._elements

    def __iter__(self) -> Iterator[NativeData]:
        return iter([self._elements[key] for key in sorted(self._elements)])

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        return self._elements.keys() == other._elements.keys() if isinstance(other, Set) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        return f"Set{{{', '.join(map(str, self))}}}"


class Table(MutableMapping[NativeData, NativeData], Valued):
    """Data by data, in Broker's order of the keys."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[NativeData, NativeData] | None = None) -> None:
        self._entries: dict[OrderKey, tuple[NativeData, NativeData]] = {}
        self.update(_iterable(entries or {}, "a Table"))

    @property
    def _value(self) -> values.Value:  # type: ignore[override]  # derived from the entries
        return table_of([(key._value, value._value) for key, value in self.items()])

    def __getitem__(self, key: NativeData) -> NativeData:
        try:
            return self._entries[order_key(_checked(key)._value)][1]
        except KeyError:
            raise KeyError(str(key)) from None

    def __setitem__(self, key: NativeData, value: NativeData) -> None:
        self._entries[order_key(_checked(key)._value)] = key, _checked(value)

    def __delitem__(self, key: NativeData) -> None:
        del self._entries[order_key(_checked(key)._value)]

    def __iter__(self) -> Iterator[NativeData]:
        return iter([self._entries[key][0] for key in sorted(self._entries)])

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Table{{{', '.join(f'{key}: {value}' for key, value in self.items())}}}"


def _iterable(elements: Any, what: str) -> Any:
    if not isinstance(elements, Iterable):
        raise TypeError(f"{what} is made of its elements, not of {type(elements).__name__}")
    return elements


def _checked(element: Any) -> NativeData:
    if not isinstance(element, NativeData):
        raise TypeError(f"Data is wanted here, not {type(element).__name__}: Data.from_py makes it")
    return element
