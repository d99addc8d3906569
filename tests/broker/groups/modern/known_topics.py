"""Topics that a test creates, extends and deletes."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from dafka.broker.topics.topic import KnownTopic


class FakeTopics:
    """Topics by name; their ids are numbers in the order of their creation."""

    def __init__(self, **partitions: int) -> None:
        self.version = 0
        self.changed: list[str] = []
        self.known: dict[str, KnownTopic] = {}
        for name, count in partitions.items():
            self.create(name, count)

    def create(self, name: str, count: int) -> None:
        self.note_change(name)
        self.known[name] = KnownTopic(UUID(int=self.version), count)

    def extend(self, name: str, count: int) -> None:
        self.note_change(name)
        self.known[name] = self.known[name]._replace(partitions=count)

    def delete(self, name: str) -> None:
        self.note_change(name)
        del self.known[name]

    def note_change(self, name: str) -> None:
        self.version += 1
        self.changed.append(name)

    def changed_since(self, version: int) -> list[str] | None:
        return None if version < 0 else self.changed[version:]

    def names(self) -> list[str]:
        return list(self.known)

    def find_all(self, names: Iterable[str]) -> dict[str, KnownTopic]:
        return {name: found for name in names if (found := self.find(name)) is not None}

    def find(self, name: str) -> KnownTopic | None:
        return self.known.get(name)
