"""A request of every API, as :mod:`broker.server.samples` has it, with very many items in one of its lists.

There is one for each list of each API, the lists inside lists included. The items name different things: the
topics, if there are so many, are those that a scene has made; partitions are numbered through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple
from uuid import UUID

from broker.server.client import encoded
from broker.server.samples import samples

from dafka.broker.codec.limits import REQUEST_ITEMS
from dafka.broker.server.limits import SMALL_REQUEST_MAX_BYTES
from dafka.broker.server.table import BY_KEY

NAMES = (
    *("resource_name", "entity_name", "topic", "topic_name", "name", "group_id", "transactional_id"),
    *("member_id", "principal", "key", "subtopology_id", "feature", "path"),
)
"""Fields that say what an item is about, the first one that it has."""
NUMBERS = "partition_index", "partition", "index", "producer_id", "first_offset", "last_offset"
NO_ID = UUID(int=0)
_DEFAULTS = {"string": "x", "bytes": b"", "records": b"", "uuid": NO_ID, "bool": False, "float64": 0.0}
_LARGE = SMALL_REQUEST_MAX_BYTES - 1024


class Wide(NamedTuple):
    """A request in bytes; ``name`` says of which API, and which of its lists is long."""

    name: str
    frame: bytes


def wide_requests(
    topic: str, ids: Sequence[UUID], count: int, wanted: Callable[[str], bool], newest: bool = True
) -> Iterator[Wide]:
    """One for each list of each API, with ``count`` items, or as many as a request may have.

    ``ids`` are those of the topics with ``topic-0``, ``topic-1``, ... as their names. With ``newest`` the
    newest version of each API is used, otherwise its oldest one. ``wanted``: by the names of requests.
    """
    for sample in samples(topic, ids[0]):
        api = BY_KEY[sample.API_KEY]
        version = api.last if newest else max(api.first, sample.min_version)
        for path in _paths(sample._struct, version):
            name = f"{api.name}.{'.'.join(path)}"
            if wanted(name):
                yield Wide(name, _frame(sample, ids, path, version, count))


def _frame(like: Any, ids: Sequence[UUID], path: tuple[str, ...], version: int, count: int) -> bytes:
    """A request like this one with as many items in the list at ``path``."""
    most = count
    while True:
        sample = deepcopy(like)
        _widen(sample._struct, sample, path, version, _Items(ids, most))
        if hasattr(sample, "validate_only"):
            sample.validate_only = False
        frame = encoded(sample, version)
        if len(frame) <= _LARGE:
            return frame
        most = int(most * 0.95 * _LARGE / len(frame))


def _fields(struct: Any, version: int) -> list[Any]:
    return [field for field in struct.fields.values() if field.for_version_q(version)]


def _paths(struct: Any, version: int) -> Iterator[tuple[str, ...]]:
    """The names of the fields on the way to each list."""
    for field in _fields(struct, version):
        inside = field.array_of if field.is_struct_array() else field
        if field.is_array():
            yield (field.name,)
        if inside.is_struct():
            for path in _paths(inside, version):
                yield field.name, *path


class _Items(NamedTuple):
    ids: Sequence[UUID]
    count: int


def _widen(struct: Any, target: Any, path: tuple[str, ...], version: int, items: _Items) -> None:
    """Fill the list at ``path``; missing objects on the way to it are made."""
    field = struct.fields[path[0]]
    found = getattr(target, path[0])
    if not field.is_array():
        if found is None:
            found = _default(field, version)
            setattr(target, path[0], found)
        _widen(field, found, path[1:], version, items)
        return
    first = found[0] if found else _item(field, version)
    if len(path) > 1:
        setattr(target, path[0], [first])
        _widen(field.array_of, first, path[1:], version, items)
        return
    most = min(items.count, REQUEST_ITEMS // _weight(field, first, version) - 50)
    setattr(target, path[0], list(map(_distinct(field, first, version, items), range(most))))


def _item(field: Any, version: int) -> Any:
    inside = field.array_of
    return _default(inside, version) if field.is_struct_array() else _DEFAULTS.get(inside.type_str, 0)


def _default(struct: Any, version: int) -> Any:
    made = struct.data_class()
    for field in _fields(struct, version):
        if field.is_array():
            value: Any = []
        elif field.is_struct():
            value = _default(field, version)
        else:
            value = _DEFAULTS.get(field.type_str, 0)
        setattr(made, field.name, value)
    return made


def _weight(field: Any, item: Any, version: int) -> int:
    """How many items of a request one item counts as."""
    if not field.is_struct_array():
        return 1
    weight = 1
    for inside in _fields(field.array_of, version):
        if inside.is_array():
            weight += sum(_weight(inside, one, version) for one in getattr(item, inside.name) or ())
        weight += inside.tagged_field_q(version)
    return weight


def _distinct(field: Any, like: Any, version: int, items: _Items) -> Callable[[int], Any]:
    """Makes items like this one, each about something else, by its number."""
    if not field.is_struct_array():
        if isinstance(like, str):
            return lambda number: f"{like}-{number}"
        return (lambda number: number) if field.array_of.type_str in ("int32", "int64") else lambda _: like
    new = field.array_of.data_class
    fields = _fields(field.array_of, version)
    same = [(one.name, getattr(like, one.name)) for one in fields]
    numbers = [one.name for one in fields if one.name in NUMBERS]
    ids = [one.name for one in fields if one.type_str == "uuid" and one.name not in NUMBERS]

    def copy(number: int) -> Any:
        made = new()
        for name, value in same:
            setattr(made, name, value)
        for name in numbers:
            setattr(made, name, number)
        for name in ids:
            setattr(made, name, items.ids[number % len(items.ids)])
        return made

    first = copy(0)
    named = next((name for name in NAMES if isinstance(getattr(first, name, None), str)), None)
    inner = next((one for one in fields if one.is_struct_array() and getattr(first, one.name)), None)
    if named is not None:
        called = getattr(first, named)
    elif inner is not None:
        inside = [_distinct(inner, one, version, items) for one in getattr(first, inner.name)]

    def make(number: int) -> Any:
        made = copy(number)
        if named is not None:
            setattr(made, named, f"{called}-{number}")
        elif inner is not None:
            setattr(made, inner.name, [make_one(number) for make_one in inside])
        return made

    return make
