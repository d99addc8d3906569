"""Sets and tables of values, in Broker's order, and that order.

To Python ``True``, ``1``, ``Count(1)`` and ``1.0`` are equal, to Broker they are four elements of a set; a
vector with a table inside has no hash; and a stranger could choose a million numbers whose hashes collide. So
elements are not hashed: they are sorted by tag and then by value, as Broker writes them, duplicates are then
neighbours, and an element is found by bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import types
from dafka.overlay.values.types import Address, Count, Enum, Port, Subnet, Timespan, Timestamp

if TYPE_CHECKING:
    Value: TypeAlias = (
        "bool | int | float | str | Address | Subnet | Port | Set | Table | tuple[Value, ...] | None"
    )
else:
    Value = Any

OrderKey: TypeAlias = tuple[Any, ...]


class Set(AbstractSet["Value"]):
    """An immutable set of values. Raises :class:`InvalidValue` for an element that comes twice."""

    __slots__ = ("_elements", "_keys")

    def __init__(self, elements: Iterable[Value] = ()) -> None:
        self._elements = tuple(elements)
        self._keys = tuple([order_key(element) for element in self._elements])
        if not _is_ascending(self._keys):
            order = sorted(range(len(self._keys)), key=self._keys.__getitem__)
            self._elements = tuple([self._elements[index] for index in order])
            self._keys = tuple([self._keys[index] for index in order])
            _refuse_twins("a set", self._elements, self._keys)

    @property
    def keys_in_order(self) -> tuple[OrderKey, ...]:
        """The sort key of an element."""
        return self._keys

    @classmethod
    def _from_iterable(cls, elements: Iterable[Any]) -> Set:  # type: ignore[override]
        # The operators of collections.abc.Set give what is in both operands twice.
        keyed = sorted([(order_key(element), index, element) for index, element in enumerate(elements)])
        twice = [False] + [one[0] == following[0] for one, following in pairwise(keyed)]
        return cls([element for (_, _, element), again in zip(keyed, twice, strict=False) if not again])

    def __contains__(self, element: object) -> bool:
        return _find(self._keys, element) is not None

    def __iter__(self) -> Iterator[Value]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Set):
            return NotImplemented if not isinstance(other, AbstractSet) else self == Set(other)
        return self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"Set({list(self._elements)!r})"


class Table(Mapping["Value", "Value"]):
    """An immutable mapping of values. Raises :class:`InvalidValue` for a key that comes twice."""

    __slots__ = ("_entries", "_keys")

    def __init__(self, entries: Mapping[Value, Value] | Iterable[tuple[Value, Value]] = ()) -> None:
        self._entries = tuple(entries.items() if isinstance(entries, Mapping) else entries)
        self._keys = tuple([order_key(key) for key, _ in self._entries])
        if not _is_ascending(self._keys):
            order = sorted(range(len(self._keys)), key=self._keys.__getitem__)
            self._entries = tuple([self._entries[index] for index in order])
            self._keys = tuple([self._keys[index] for index in order])
            _refuse_twins("a table", [key for key, _ in self._entries], self._keys)

    @property
    def keys_in_order(self) -> tuple[OrderKey, ...]:
        """The sort key of an entry."""
        return self._keys

    @property
    def entries(self) -> tuple[tuple[Value, Value], ...]:
        """Keys and values, in order."""
        return self._entries

    def __getitem__(self, key: Value) -> Value:
        index = _find(self._keys, key)
        if index is None:
            raise KeyError(key)
        value: Value = self._entries[index][1]
        return value

    def __iter__(self) -> Iterator[Value]:
        return iter([key for key, _ in self._entries])

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented if not isinstance(other, Mapping) else self == Table(other)
        return order_key(self) == order_key(other)

    def __hash__(self) -> int:
        return hash(order_key(self))

    def __repr__(self) -> str:
        return f"Table({list(self._entries)!r})"


def order_key(value: Value, depth: int = 0) -> OrderKey:
    """The key by which Broker sorts values: two are the same value when their keys are equal.

    Raises :class:`InvalidValue` for anything but a value.
    """
    kind = type(value)
    key = _KEYS.get(kind)
    if key is None:
        if depth >= MOST_NESTED:
            raise InvalidValue(f"values are nested more than {MOST_NESTED} deep")
        return _key_of_many(value, depth + 1)
    return key(value)


def _key_of_many(value: Any, depth: int) -> OrderKey:
    if is_vector(value):
        return types.VECTOR, tuple([order_key(element, depth) for element in value])
    if isinstance(value, Table):
        values = [order_key(element, depth) for _, element in value.entries]
        return types.TABLE, tuple(zip(value.keys_in_order, values, strict=True))
    if isinstance(value, Set):
        return types.SET, value.keys_in_order
    if isinstance(value, Mapping):
        return _key_of_many(Table(value), depth)
    if isinstance(value, AbstractSet):
        return _key_of_many(Set(value), depth)
    kind = kind_of(value, _KEYS)
    return _KEYS[kind](value)


def is_vector(value: Any) -> bool:
    """Whether a value stands for a vector: a list or tuple, and no :class:`Subnet` or :class:`Port`."""
    return isinstance(value, (tuple, list)) and not isinstance(value, (Subnet, Port))


def kind_of(value: Any, kinds: Mapping[type, Any]) -> type:
    """The type among ``kinds`` that a value's class is derived from, such as ``int`` for an IntEnum.

    Raises :class:`InvalidValue` if there is none.
    """
    for kind in type(value).__mro__:
        if kind in kinds:
            return kind
    raise InvalidValue(f"no data type of Zeek Broker: {type(value).__name__}")


def octets_of(text: str | bytes) -> bytes:
    """The octets of a string. Raises :class:`InvalidValue` for half of a surrogate pair, TypeError."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"a string is a str or bytes, not {type(text).__name__}: {text!r:.100}")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidValue(f"a string that is not Unicode: {text[error.start]!r}") from error


def _is_ascending(keys: Sequence[OrderKey]) -> bool:
    return all(map(tuple.__lt__, keys, keys[1:]))


def _refuse_twins(whole: str, elements: Sequence[Value], keys: Sequence[OrderKey]) -> None:
    for index, (key, following) in enumerate(pairwise(keys)):
        if key == following:
            raise InvalidValue(f"{whole} holds {str(elements[index])[:100]!r} twice")


def _find(keys: Sequence[OrderKey], element: Any) -> int | None:
    try:
        wanted = order_key(element)
    except InvalidValue:
        return None
    index = bisect_left(keys, wanted)
    return index if index < len(keys) and keys[index] == wanted else None


def _real_key(value: float) -> OrderKey:
    return (types.REAL, 1, 0.0) if value != value else (types.REAL, 0, value)


# The numbers are made plain: comparing instances of subclasses would call methods of theirs.
_KEYS: dict[type, Callable[[Any], OrderKey]] = {
    type(None): lambda value: (types.NONE,),
    bool: lambda value: (types.BOOLEAN, value),
    Count: lambda value: (types.COUNT, int(value)),
    int: lambda value: (types.INTEGER, value),
    float: _real_key,
    str: lambda value: (types.STRING, octets_of(value)),
    bytes: lambda value: (types.STRING, value),
    Address: lambda value: (types.ADDRESS, bytes(value)),
    Subnet: lambda value: (types.SUBNET, bytes(value.network), value.bits),
    Port: lambda value: (types.PORT, value.number, value.protocol),
    Timestamp: lambda value: (types.TIMESTAMP, int(value)),
    Timespan: lambda value: (types.TIMESPAN, int(value)),
    Enum: lambda value: (types.ENUM, octets_of(value)),
}
