"""The keys and values of a store, in memory, and the events that its changes are."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator

from dafka.overlay.stores.arithmetic import TypeClash
from dafka.overlay.values import Count, Set, Table, Timespan, Value, encode, order_key
from dafka.overlay.wire.envelope import LOCAL
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

EVENTS = LOCAL + b"data/store-events/"
"""The topic of events is this and the name of the store."""


class Content:
    """Keys are told apart by their octets: to Python, True, 1 and 1.0 are one key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._entries: dict[bytes, tuple[Value, Value]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[Value, Value]]:
        """Keys and values."""
        return iter(list(self._entries.values()))

    def keys(self) -> Set:
        return Set([key for key, _ in self._entries.values()])

    def exists(self, key: Value) -> bool:
        return encode(key) in self._entries

    def get(self, key: Value) -> Value:
        """Raises KeyError."""
        return self._entries[encode(key)][1]

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

    def put(self, key: Value, value: Value, expiry: Timespan | None, publisher: EntityId) -> Value:
        """The event of the change."""
        octets = encode(key)
        before = self._entries.get(octets)
        self._entries[octets] = key, value
        if before is None:
            return "insert", self.name, key, value, expiry, *_by(publisher)
        return "update", self.name, key, before[1], value, expiry, *_by(publisher)

    def erase(self, key: Value, publisher: EntityId, word: str = "erase") -> Value | None:
        """The event, or None if there was no such key. ``word``: erase or expire."""
        if self._entries.pop(encode(key), None) is None:
            return None
        return word, self.name, key, *_by(publisher)

    def clear(self, publisher: EntityId) -> list[Value]:
        """The events: each key is erased."""
        keys = [key for key, _ in self]
        self._entries.clear()
        return [("erase", self.name, key, *_by(publisher)) for key in keys]

    def replace(self, entries: Iterable[tuple[Value, Value]], publisher: EntityId) -> list[Value]:
        """Take over another content. The events say what is different."""
        fresh = {encode(key): (key, value) for key, value in entries}
        events: list[Value] = []
        for octets, (key, _) in list(self._entries.items()):
            if octets not in fresh:
                event = self.erase(key, publisher)
                events += [] if event is None else [event]
        for octets, (key, value) in fresh.items():
            known = self._entries.get(octets)
            if known is None or order_key(known[1]) != order_key(value):
                events.append(self.put(key, value, None, publisher))
        return events


def _by(publisher: EntityId) -> tuple[Value, Value]:
    if publisher == NO_ENTITY:
        return None, None
    return str(uuid.UUID(bytes=publisher.endpoint)), Count(publisher.number)
