"""The topics of a broker as groups see them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol
from uuid import UUID

from dafka.broker.topics.table import TopicTable
from dafka.broker.topics.topic import KnownTopic
from dafka.hub.turns import Pace


class Topics(Protocol):
    """Where a group looks up its topics."""

    @property
    def version(self) -> int:
        """A number that grows with each change."""

    def changed_since(self, version: int) -> Collection[str] | None:
        """The names of topics that have changed since there was that version; None: it may be any."""

    def find(self, name: str) -> KnownTopic | None:
        """The topic of that name."""

    def find_all(self, names: Collection[str]) -> dict[str, KnownTopic]:
        """Those of the topics that exist."""

    def names(self) -> Iterable[str]:
        """The names of all topics."""


class TableTopics:
    """The topics of a broker's table."""

    def __init__(self, table: TopicTable) -> None:
        self._table = table
        self._ahead: tuple[int, frozenset[str], dict[str, KnownTopic]] = (-1, frozenset(), {})

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        return self._table.version

    def changed_since(self, version: int) -> Collection[str] | None:
        """The names of topics that have changed since there was that version; None: it may be any."""
        return self._table.changed_since(version)

    def find(self, name: str) -> KnownTopic | None:
        """The topic of that name."""
        topic = self._table.get(name)
        return None if topic is None else topic.known

    def find_all(self, names: Collection[str]) -> dict[str, KnownTopic]:
        """Those of the topics that exist."""
        version, looked_up, ahead = self._ahead
        if version == self.version and looked_up.issuperset(names):
            if len(looked_up) == len(names):
                return dict(ahead)
            return {name: ahead[name] for name in names if name in ahead}
        get = self._table.get
        return {name: topic.known for name in names if (topic := get(name)) is not None}

    def look_ahead(self, names: Iterable[str]) -> None:
        """Find very many topics, some at a time, for the next :meth:`find_all`; waits as a green thread."""
        version, get, wanted = self.version, self._table.get, frozenset(names)
        found = {name: topic.known for name in Pace().over(wanted) if (topic := get(name)) is not None}
        self._ahead = version, wanted, found

    def name_of(self, topic_id: UUID) -> str | None:
        """The name of the topic with that id."""
        topic = self._table.by_id(topic_id)
        return None if topic is None else topic.name

    def names(self) -> list[str]:
        """The names of all topics."""
        return self._table.names()
