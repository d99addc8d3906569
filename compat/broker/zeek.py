"""Zeek's events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compat.broker._values import conversion
from compat.broker._values.native import NativeData
from compat.broker._values.scalars import Count
from compat.broker._values.valued import Valued
from dafka.overlay import values
from dafka.overlay.wire.zeek import EVENT, NETWORK_TIME

_FORMAT = values.Count(1)


class MetadataType:
    """Keys of an event's metadata."""

    NetworkTimestamp = Count(1)
    UserMetadataStart = Count(200)


class Event(Valued):
    """An event: ``Event(name, argument, ..., metadata={key: value})``, or one that was received.

    ``Event(data)`` takes what a subscriber was given, whatever it is: ask :meth:`valid`. Metadata are a
    mapping or pairs; keys are counts, and numbers become them.
    """

    __slots__ = ("_value",)

    def __init__(
        self, *args: Any, metadata: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | None = None
    ) -> None:
        if len(args) == 1 and not isinstance(args[0], str):
            self._value = conversion.to_value(args[0])
            return
        if not args or not isinstance(args[0], (str, bytes)):
            raise TypeError("an Event is made of its name and its arguments, or of what was received")
        name, arguments = conversion.to_value(args[0]), conversion.to_value(args[1:])
        if metadata is None:
            self._value = _FORMAT, EVENT, (name, arguments)
        else:
            self._value = _FORMAT, EVENT, (name, arguments, _metadata(metadata))

    def as_data(self) -> NativeData:
        return NativeData._of(self._value)

    def valid(self) -> bool:
        """Whether this is an event, with metadata as they should be."""
        outer = _vector(self._value)
        if len(outer) < 3 or not _is_count(outer[0], _FORMAT) or not _is_count(outer[1], EVENT):
            return False
        content = _vector(outer[2])
        if len(content) < 2 or type(content[0]) is not str or type(content[1]) is not tuple:
            return False
        return len(content) == 2 or _are_metadata(content[2])

    def name(self) -> str:
        """Raises ValueError, as the other accessors do, if this is not an event."""
        name: str = self._content()[0]
        return name

    def args(self) -> list[Any]:
        """Python's objects for the arguments."""
        return [conversion.to_python(argument) for argument in self._content()[1]]

    def metadata(self) -> list[tuple[Count, Any]] | None:
        """Pairs of key and value, if there are any."""
        content = self._content()
        return [conversion.to_python(pair) for pair in content[2]] or None if len(content) > 2 else None

    def _content(self) -> tuple[Any, ...]:
        if not self.valid():
            raise ValueError("invalid Event data")
        content: tuple[Any, ...] = self._value[2]  # type: ignore[index, assignment]
        return content


class SafeEvent(Event):
    """An event whose arguments become immutable objects, so that sets and keys can hold sets and tables."""

    __slots__ = ()

    def args(self) -> list[Any]:
        return [conversion.to_immutable(argument) for argument in self._content()[1]]


def _metadata(given: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> values.Value:
    pairs = given.items() if isinstance(given, Mapping) else given
    return conversion.to_value(
        [(key if isinstance(key, Count) else Count(key), value) for key, value in pairs]
    )


def _are_metadata(given: Any) -> bool:
    return type(given) is tuple and all(map(_is_metadata, map(_vector, given)))


def _is_metadata(pair: tuple[Any, ...]) -> bool:
    if len(pair) != 2 or type(pair[0]) is not values.Count:
        return False
    return pair[0] != NETWORK_TIME or type(pair[1]) is values.Timestamp


def _is_count(given: Any, wanted: int) -> bool:
    return type(given) is values.Count and given == wanted


def _vector(given: Any) -> tuple[Any, ...]:
    """The elements of a vector; of another value none."""
    return given if type(given) is tuple else ()
