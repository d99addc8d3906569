"""Topics that a test creates, extends and deletes."""

from __future__ import annotations

from uuid import UUID

from dafka.broker.groups.modern.topics import KnownTopic


class FakeTopics:
    """Topics by name; their ids are numbers in the order of their creation."""

    def __init__(self, **partitions: int) -> None:
        self.version = 0
        self.known: dict[str, KnownTopic] = {}
        for name, count in partitions.items():
            self.create(name, count)

    def create(self, name: str, count: int) -> None:
        self.version += 1
        self.known[name] = KnownTopic(UUID(int=self.version), count)

    def extend(self, name: str, count: int) -> None:
        self.version += 1
        self.known[name] = self.known[name]._replace(partitions=count)

    def delete(self, name: str) -> None:
        self.version += 1
        del self.known[name]

    def names(self) -> list[str]:
        return list(self.known)

    def find(self, name: str) -> KnownTopic | None:
        return self.known.get(name)
