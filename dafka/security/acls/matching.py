"""Which of many filters take an entry, without comparing each filter with each entry.

Filters are sorted by the fields that they name, and among those by what they say of them. An entry is looked
up once for each set of fields that any filter names. A filter of pattern MATCH takes other names than its
own, too: there the names of the filters that agree in the other fields are in order, and those that an entry
is a prefix of lie next to each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from dafka.security.acls.terms import WILDCARD, Acl, AclFilter, PatternType

_Fields = Callable[[Any], Any]
_NAME, _PATTERN = Acl._fields.index("name"), Acl._fields.index("pattern")
_ANYTHING = AclFilter()


class Filters:
    """Filters, by their numbers: their places among those that are given.

    ``over`` is what goes through many of them.
    """

    def __init__(
        self, filters: Iterable[AclFilter], over: Callable[[Iterable[Any]], Iterable[Any]] = iter
    ) -> None:
        named: dict[tuple[int, ...], dict[Any, list[int]]] = {}
        matching: dict[tuple[int, ...], dict[Any, list[tuple[str, int]]]] = {}
        for number, one in enumerate(over(filters)):
            places = tuple(_places(one))
            fields = _fields(places)(one)
            if one.pattern is PatternType.MATCH and one.name is not None:
                matching.setdefault(places, {}).setdefault(fields, []).append((one.name, number))
            else:
                named.setdefault(places, {}).setdefault(fields, []).append(number)
        self._named = [(_fields(places), numbers) for places, numbers in named.items()]
        self._matching: list[tuple[_Fields, dict[Any, _Names]]] = [
            (_fields(places), {fields: _Names(names) for fields, names in over(found.items())})
            for places, found in matching.items()
        ]

    def taking(self, acl: tuple[Any, ...]) -> Iterator[int]:
        """The numbers of the filters that take this entry: an :class:`Acl`, or the tuple that equals it."""
        for fields, numbers in self._named:
            yield from numbers.get(fields(acl), ())
        for fields, names in self._matching:
            found = names.get(fields(acl))
            if found is not None:
                yield from found.taking(acl[_NAME], acl[_PATTERN])


class _Names:
    """The names of filters of pattern MATCH, with the filters' numbers."""

    def __init__(self, found: list[tuple[str, int]]) -> None:
        found.sort()
        self._names = [name for name, _ in found]
        self._numbers = [number for _, number in found]

    def taking(self, name: str, pattern: PatternType) -> Iterator[int]:
        """The filters that take an entry of this name."""
        if pattern == PatternType.LITERAL and name == WILDCARD:
            yield from self._numbers
            return
        prefixed = pattern == PatternType.PREFIXED
        for place in range(bisect_left(self._names, name), len(self._names)):
            other = self._names[place]
            if not (other.startswith(name) if prefixed else other == name):
                return
            yield self._numbers[place]


def _places(one: AclFilter) -> Iterator[int]:
    """The places of the fields that entries must have in common with a filter."""
    match = one.pattern is PatternType.MATCH
    for place, (value, anything) in enumerate(zip(one, _ANYTHING, strict=True)):
        if value != anything and not (match and place in (_NAME, _PATTERN)):
            yield place


def _fields(places: tuple[int, ...]) -> _Fields:
    return itemgetter(*places) if places else _nothing


def _nothing(_: object) -> tuple[()]:
    return ()
