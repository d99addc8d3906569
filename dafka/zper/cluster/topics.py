"""The topics of this node with their versions, so that another node is told the changes since it asked
last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple, TypeVar

from dafka.zper.cluster import limits
from dafka.zper.cluster.messages import Changes, Have

T = TypeVar("T")


class _Entry(NamedTuple):
    first: int
    end: int
    version: int


class OwnTopics:
    """First position and end of each topic. The generation changes when a topic is deleted."""

    def __init__(self, generation: int) -> None:
        self._generation = generation
        self._version = 0
        self._entries: dict[str, _Entry] = {}  # by version, the oldest first

    def __len__(self) -> int:
        return len(self._entries)

    def update(self, topics: Mapping[str, tuple[int, int]]) -> None:
        """Take the topics as they are now."""
        if self._entries.keys() - topics.keys():
            self._generation += 1
            self._entries = {name: entry for name, entry in self._entries.items() if name in topics}
        for name, (first, end) in topics.items():
            entry = self._entries.get(name)
            if entry is None or (entry.first, entry.end) != (first, end):
                self._entries.pop(name, None)
                self._version += 1
                self._entries[name] = _Entry(first, end, self._version)

    def since(self, have: Have) -> Changes:
        """The changes since then, the oldest first, limits.CHANGES topics at most."""
        version = have.version if have.generation == self._generation else 0
        newest_first = takewhile(lambda item: item[1].version > version, reversed(self._entries.items()))
        changed = list(newest_first)[::-1][: limits.CHANGES]
        complete = changed[-1][1].version if changed else self._version
        return Changes(
            self._generation, version, complete, [(name, entry.first, entry.end) for name, entry in changed]
        )

    def select(self, name: str | None) -> Iterator[tuple[str, int, int]]:
        """All topics, or the one with that name."""
        entries = self._entries.items() if name is None else _one(self._entries, name)
        return ((topic, entry.first, entry.end) for topic, entry in entries)


class KnownTopics:
    """The topics of another node, as far as it has told them."""

    def __init__(self) -> None:
        self.have = Have()
        self._entries: dict[str, tuple[int, int]] = {}

    def take(self, changes: Changes) -> None:
        """Take an answer, unless it does not follow what is known: those of two connections may cross."""
        if changes.generation != self.have.generation:
            if changes.since:
                return
            self._entries = {}
        elif not changes.since <= self.have.version <= changes.version:
            return
        for name, first, end in changes.changed:
            if name in self._entries or len(self._entries) < limits.TOPICS:
                self._entries[name] = (first, end)
        self.have = Have(changes.generation, changes.version)

    def select(self, name: str | None) -> Iterator[tuple[str, int, int]]:
        """All topics, or the one with that name."""
        entries = self._entries.items() if name is None else _one(self._entries, name)
        return ((topic, first, end) for topic, (first, end) in entries)


def _one(entries: Mapping[str, T], name: str) -> Iterable[tuple[str, T]]:
    return [(name, entries[name])] if name in entries else []
