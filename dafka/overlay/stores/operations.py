"""The operations of Broker's store API as the actions that carry them out.

All of them check what they are given: a write is never answered, so what is wrong with it is to be said here.
"""

from __future__ import annotations

from dafka.overlay.stores.content import check_pair
from dafka.overlay.stores.errors import TypeClash
from dafka.overlay.values import Count, Timespan, Value, decode, encode, types
from dafka.overlay.wire.commands import Add, Clear, Erase, Put, Subtract
from dafka.overlay.wire.primitives import EntityId

_FIRST = {Count: types.COUNT, int: types.INTEGER, float: types.REAL, Timespan: types.TIMESTAMP}
"""The value before the first increment, by the type of the amount."""


def plain(value: object) -> Value:
    """The value as it will arrive: a list becomes a vector, a dict a table. Raises InvalidValue."""
    return decode(encode(value))  # type: ignore[arg-type]


class Operations:
    """The operations of the store object ``publisher``. They raise InvalidValue and BackendFailure for values
    that no store takes."""

    def __init__(self, publisher: EntityId) -> None:
        self._publisher = publisher

    def put(self, key: object, value: object, expiry: Timespan | None = None) -> Put:
        pair = plain(key), plain(value)
        check_pair(*pair)
        return Put(*pair, expiry, self._publisher)

    def erase(self, key: object) -> Erase:
        return Erase(plain(key), self._publisher)

    def clear(self) -> Clear:
        return Clear(self._publisher)

    def add(self, key: object, value: object, begin_with: int, expiry: Timespan | None = None) -> Add:
        """``begin_with`` is the tag of the type whose zero is there before the first addition."""
        pair = plain(key), plain(value)
        check_pair(*pair)
        return Add(*pair, begin_with, expiry, self._publisher)

    def subtract(self, key: object, value: object, expiry: Timespan | None = None) -> Subtract:
        return Subtract(plain(key), plain(value), expiry, self._publisher)

    def increment(self, key: object, amount: object, expiry: Timespan | None = None) -> Add:
        """A number grows by a number of its type, a timestamp or timespan by a timespan."""
        return self.add(key, amount, _FIRST[_number(amount)], expiry)

    def decrement(self, key: object, amount: object, expiry: Timespan | None = None) -> Subtract:
        _number(amount)
        return self.subtract(key, amount, expiry)

    def append(self, key: object, text: object, expiry: Timespan | None = None) -> Add:
        """A string gets longer."""
        if not isinstance(text, (str, bytes)):
            raise TypeClash(f"{type(text).__name__} cannot be appended to a string")
        return self.add(key, text, types.STRING, expiry)

    def insert_into(self, key: object, index: object, *value: object, expiry: Timespan | None = None) -> Add:
        """A set gets the element ``index``, or a table the value at ``index``."""
        if len(value) > 1:
            raise TypeError("insert_into takes a key, an index and at most one value")
        if value:
            return self.add(key, (index, value[0]), types.TABLE, expiry)
        return self.add(key, index, types.SET, expiry)

    def remove_from(self, key: object, index: object, expiry: Timespan | None = None) -> Subtract:
        """A set loses an element, a table a key."""
        return self.subtract(key, index, expiry)

    def push(self, key: object, value: object, expiry: Timespan | None = None) -> Add:
        """A vector gets one element more."""
        return self.add(key, value, types.VECTOR, expiry)

    def pop(self, key: object, expiry: Timespan | None = None) -> Subtract:
        """A vector loses its last element."""
        return self.subtract(key, key, expiry)


def _number(amount: object) -> type:
    kind = type(plain(amount))
    if kind not in _FIRST:
        raise TypeClash(f"nothing grows or shrinks by a {type(amount).__name__}")
    return kind
