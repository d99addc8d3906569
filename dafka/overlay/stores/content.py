"""The keys and values of a store, in memory, and the events that its changes are."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from dafka.overlay.limits import KEY_OCTETS, MOST_KEYS, STORE_OCTETS, VALUE_OCTETS
from dafka.overlay.stores.errors import BackendFailure, TypeClash
from dafka.overlay.values import Count, Set, Table, Timespan, Value, encode, order_key
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.envelope import LOCAL
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId
from dafka.protocol.parted import PartedDict

EVENTS = LOCAL + b"data/store-events/"
"""The topic of events is this and the name of the store."""

Origin = tuple[EntityId, int]
"""The writer that put a key there with put_unique, and its request."""


class Entry:
    """A key and its value. ``deadline``: when it expires, by the master's clock; ``size`` in octets."""

    __slots__ = ("deadline", "generation", "key", "origin", "size", "value")

    def __init__(
        self,
        key: Value,
        value: Value,
        size: int,
        deadline: float | None = None,
        origin: Origin | None = None,
        generation: int = 0,
    ) -> None:
        self.key = key
        self.value = value
        self.size = size
        self.deadline = deadline
        self.origin = origin
        self.generation = generation


class Row(NamedTuple):
    """The stored form of an entry."""

    value: bytes
    deadline: float | None
    origin: Origin | None


class Changes:
    """The changes since the last commit: first everything is gone, if ``cleared``, then these rows."""

    def __init__(self) -> None:
        self.cleared = False
        self.rows: dict[bytes, Row | None] = {}
        self.size = 0

    def __bool__(self) -> bool:
        return self.cleared or bool(self.rows)

    def put(self, key: bytes, row: Row | None) -> None:
        self.rows[key] = row
        self.size += len(key) + (0 if row is None else len(row.value))

    def clear(self) -> None:
        self.cleared = True
        self.rows.clear()
        self.size = 0


class Content:
    """Keys are told apart by their octets: to Python, True, 1 and 1.0 are one key.

    ``changes`` notes them for a backend, if there is one. The attribute ``generation`` is written to each
    entry that is put: a clone that is given a content anew finds by it what is not in that any more.
    """

    def __init__(self, name: str, changes: Changes | None = None) -> None:
        self.name = name
        self.changes = changes
        self.generation = 0
        self.size = 0
        """Of all keys and values, in octets as they are encoded."""
        self._entries = _none()
        self.watcher: Callable[[bytes, Entry | None], object] | None = None
        """Called with a key and its entry until now when that is put or erased; not for each of a clear."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[Value, Value]]:
        """Keys and values."""
        return iter([(entry.key, entry.value) for entry in self._entries.values()])

    def keys(self) -> Set:
        while True:  # other threads may call this
            entries = self._entries
            found = list(entries.values())  # in one step
            if entries is self._entries:  # or it is being cleared
                return Set([entry.key for entry in found])

    def octets(self) -> Iterator[list[bytes]]:
        """All keys, encoded, in pieces. Each is made when it is asked for: what comes or goes meanwhile may
        be among them or not, all others are."""
        return (list(part) for part in self._entries.parts)

    def entries(self) -> Iterable[tuple[bytes, Entry]]:
        """The entries of all encoded keys. Nothing may be changed while this is read."""
        return self._entries.items()

    @property
    def parts(self) -> list[dict[bytes, Entry]]:
        """These in parts, see :class:`PartedDict`. They are other ones after a clear."""
        return self._entries.parts

    def part_of(self, octets: bytes) -> int:
        """The number of the part that a key belongs to."""
        return self._entries.part_of(octets)

    def entry(self, octets: bytes) -> Entry | None:
        """The entry of an encoded key, if there is one."""
        return self._entries.get(octets)

    def exists(self, key: Value) -> bool:
        return encode(key) in self._entries

    def get(self, key: Value) -> Value:
        """Raises KeyError."""
        return self._entries[encode(key)].value

    def get_index_from_value(self, key: Value, index: Value) -> Value:
        """An element of a vector or table; of a set whether it is there. Raises KeyError and TypeClash."""
        value = self.get(key)
        if isinstance(value, Set):
            return index in value
        if isinstance(value, Table):
            return value[index]
        if type(value) is not tuple or type(index) not in (Count, int):
            raise TypeClash(f"{type(value).__name__} has no elements with such an index")
        assert isinstance(index, int)
        if not 0 <= index < len(value):
            raise KeyError(index)
        return value[index]

    def restore(self, octets: bytes, entry: Entry) -> None:
        """Take an entry over from a backend."""
        self._entries[octets] = entry
        self.size += entry.size

    def put(
        self,
        key: Value,
        value: Value,
        expiry: Timespan | None,
        publisher: EntityId,
        deadline: float | None = None,
        origin: Origin | None = None,
    ) -> Value:
        """The event of the change. Raises :class:`BackendFailure` where a bound is reached."""
        octets, encoded = encode(key), encode(value)
        before = self._entries.get(octets)
        size = len(octets) + len(encoded)
        grown = self.size + size - (0 if before is None else before.size)
        self._check(before is None, len(octets), len(encoded), grown)
        if before is not None and origin is None:
            origin = before.origin
        if self.watcher is not None:
            self.watcher(octets, before)
        self._entries[octets] = Entry(key, value, size, deadline, origin, self.generation)
        self.size = grown
        if self.changes is not None:
            self.changes.put(octets, Row(encoded, deadline, origin))
        if before is None:
            return "insert", self.name, key, value, expiry, *_by(publisher)
        return "update", self.name, key, before.value, value, expiry, *_by(publisher)

    def erase(self, key: Value, publisher: EntityId, word: str = "erase") -> Value | None:
        """The event, or None if there was no such key. ``word``: erase or expire."""
        octets = encode(key)
        entry = self._entries.pop(octets, None)
        if entry is None:
            return None
        if self.watcher is not None:
            self.watcher(octets, entry)
        self.size -= entry.size
        if self.changes is not None:
            self.changes.put(octets, None)
        return word, self.name, key, *_by(publisher)

    def clear(self, publisher: EntityId) -> Iterator[Value]:
        """The events, one for each key; they are made as they are read, at any time.

        Its entry ends with each: of a million, all at once take longer than anybody is to wait for.
        """
        gone, self._entries, self.size = self._entries, _none(), 0
        if self.changes is not None:
            self.changes.clear()
        by = _by(publisher)
        return (("erase", self.name, entry.key, *by) for entry in _taken_out(gone))

    def replace(self, entries: Iterable[tuple[Value, Value]], publisher: EntityId) -> list[Value]:
        """Take over another content. The events say what is different."""
        fresh = {encode(key): (key, value) for key, value in entries}
        events: list[Value] = []
        for octets, entry in list(self._entries.items()):
            if octets not in fresh:
                event = self.erase(entry.key, publisher)
                events += [] if event is None else [event]
        for key, value in fresh.values():
            event = self.take(key, value, publisher)
            events += [] if event is None else [event]
        return events

    def take(self, key: Value, value: Value, publisher: EntityId) -> Value | None:
        """Take over an entry of another content. The event, or None if nothing is different."""
        known = self._entries.get(encode(key))
        if known is not None and order_key(known.value) == order_key(value):
            known.generation = self.generation
            return None
        return self.put(key, value, None, publisher)

    def _check(self, new: bool, key: int, value: int, grown: int) -> None:
        if key > KEY_OCTETS:
            raise _failure(f"a key of {key} octets, at most {KEY_OCTETS}")
        if value > VALUE_OCTETS:
            raise _failure(f"a value of {value} octets, at most {VALUE_OCTETS}")
        if new and len(self._entries) >= MOST_KEYS:
            raise _failure(f"the store {self.name!r} has {MOST_KEYS} keys, and no more are taken")
        if grown > STORE_OCTETS and grown > self.size:
            raise _failure(f"the store {self.name!r} would have {grown} octets, at most {STORE_OCTETS}")


def _none() -> PartedDict[bytes, Entry]:
    return PartedDict(crc32)  # which is the same in each process, as the order of the entries is to be


def _taken_out(entries: PartedDict[bytes, Entry]) -> Iterator[Entry]:
    for part in entries.parts:
        while part:
            yield part.popitem()[1]


def check_pair(key: Value, value: Value) -> None:
    """Raise :class:`BackendFailure` or :class:`InvalidValue` for what no store takes."""
    sizes = (("key", len(encode(key)), KEY_OCTETS), ("value", len(encode(value)), VALUE_OCTETS))
    for what, size, most in sizes:
        if size > most:
            raise _failure(f"a {what} of {size} octets, at most {most}")


def _failure(text: str) -> BackendFailure:
    return BackendFailure(ErrorCode.BACKEND_FAILURE, text)


@lru_cache(maxsize=1024)
def _by(publisher: EntityId) -> tuple[Value, Value]:
    if publisher == NO_ENTITY:
        return None, None
    return str(uuid.UUID(bytes=publisher.endpoint)), Count(publisher.number)
