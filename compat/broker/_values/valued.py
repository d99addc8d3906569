"""The base of all classes of the bindings for values: each has a value of :mod:`dafka.overlay` behind it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from dafka.overlay.values import Value, order_key
from dafka.overlay.values.containers import OrderKey

_Own = TypeVar("_Own", bound="Comparable")


class Valued:
    """Something that stands for a value."""

    __slots__ = ()

    _value: Value


class Comparable(Valued):
    """A value that is compared with values of its own family, in Broker's order, and has a hash."""

    __slots__ = ("_value",)

    _family: ClassVar[str]

    @classmethod
    def _of(cls: type[_Own], value: Any) -> _Own:
        """One that stands for a value of the overlay."""
        made = cls.__new__(cls)
        made._value = value
        return made

    def __eq__(self, other: object) -> bool:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> bool:
        return self._compared(other, operator.ne)

    def __lt__(self, other: object) -> bool:
        return self._compared(other, operator.lt)

    def __le__(self, other: object) -> bool:
        return self._compared(other, operator.le)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, operator.gt)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, operator.ge)

    def __hash__(self) -> int:
        return hash(order_key(self._value))

    def _compared(self, other: object, how: Callable[[OrderKey, OrderKey], Any]) -> bool:
        if not isinstance(other, Comparable) or other._family != self._family:
            return NotImplemented  # type: ignore[no-any-return]  # as operators may
        return bool(how(order_key(self._value), order_key(other._value)))
