"""A topic, its partitions, and what the rows about them look like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from dafka.broker.limits import PARTITIONS_PER_TOPIC
from dafka.hub.turns import Pace
from dafka.log import Log, LogPartition, shapes

if TYPE_CHECKING:
    from dafka.broker.topics.configs import TopicSettings
    from dafka.broker.topics.epoch_history import EpochHistory

TOPICS, NATIVES = "topics", "natives"
DELETED = "deleted"  # in the row of a topic whose deletion has not ended

_ID = re.compile("[0-9a-f]{32}").fullmatch
_ADDRESS = re.compile("[\\0-\xff]{0,255}", re.DOTALL).fullmatch
_few = range(PARTITIONS_PER_TOPIC + 1).__contains__
TOPIC_ROWS = shapes.rows(
    re.compile("[a-zA-Z0-9._-]{1,249}").fullmatch,
    shapes.fields(
        {
            "id": lambda value: shapes.text(value) and _ID(value),
            "configs": shapes.mapping_of(shapes.text),
            "led": shapes.list_of(
                lambda value: shapes.row_of(shapes.natural, shapes.natural)(value) and _few(sum(value))
            ),
        },
        {DELETED: shapes.flag},
    ),
)
NATIVE_ROWS = shapes.rows(
    re.compile("[0-9a-f]{32}/[0-9]{1,6}").fullmatch,
    shapes.row_of(lambda value: shapes.text(value) and _ADDRESS(value), shapes.natural),
)


class Watcher(Protocol):
    """Is called when a partition changes."""

    def partition_grew(self, partition: Partition) -> None:
        """Called when its end or its beginning has moved, or when it is deleted."""


_NONE: frozenset[Any] = frozenset()


class Partition:
    """One partition of a topic.

    There may be very many of which most are never written: one of these costs this object alone, and what the
    log has of it is looked up, with ``log``, when somebody wants it.
    """

    __slots__ = (
        "_log",
        "_looked_up",
        "_stored",
        "_watchers",
        "address",
        "begun",
        "epochs",
        "floor",
        "number",
        "topic",
        "unreadable",
        "writable",
    )

    def __init__(
        self, topic: Topic, number: int, address: bytes, log: Log, *, writable: bool, floor: int = 0
    ) -> None:
        self.topic = topic
        self.number = number
        self.address = address
        self.writable = writable
        self._stored: LogPartition | None = None  # when somebody has asked for it
        self._looked_up = False  # whether the log has been asked for it
        self._log = log
        self.floor = floor  # records below belong to a deleted topic of this name
        self.begun = False  # whether its leader has had anything to append since the broker's start
        self.epochs: EpochHistory | None = None  # as it is stored, when somebody has looked at it
        self._watchers: Watcher | set[Watcher] | None = None  # a set is made for more than one
        self.unreadable: frozenset[str] = _NONE  # failures that were logged: fetches are repeated

    @property
    def stored(self) -> LogPartition:
        """The partition in the log."""
        if self._stored is None:
            self._stored = self._log.partition(self.topic.octets, self.address)
        return self._stored

    def _written(self) -> LogPartition | None:
        """The partition in the log, None if nothing was ever written to it."""
        if self._stored is None and not self._looked_up:
            self._stored = self._log.find(self.topic.octets, self.address)
            self._looked_up = True  # later writes go through ``stored``
        return self._stored

    @property
    def high_watermark(self) -> int:
        """The offset behind the last committed record."""
        stored = self._stored or self._written()
        return 0 if stored is None else stored.next_offset

    @property
    def log_start(self) -> int:
        """The offset of the first record that exists."""
        stored = self._stored or self._written()
        return self.floor if stored is None else max(stored.first_offset, self.floor)

    @property
    def next_sequence(self) -> int:
        """The sequence of the message that is appended next."""
        stored = self._stored or self._written()
        return 0 if stored is None else stored.next_sequence

    @property
    def bytes(self) -> int:
        """Its size on disk."""
        stored = self._stored or self._written()
        return 0 if stored is None else stored.bytes

    @property
    def watchers(self) -> list[Watcher]:
        """The watchers that are called when it changes."""
        watchers = self._watchers
        if isinstance(watchers, set):
            return list(watchers)
        return [] if watchers is None else [watchers]

    def watch(self, who: Watcher) -> None:
        """Call ``who`` when the partition changes, until :meth:`unwatch`."""
        if isinstance(self._watchers, set):
            self._watchers.add(who)
        else:
            self._watchers = who if self._watchers in (None, who) else {self._watchers, who}

    def unwatch(self, who: Watcher) -> None:
        """Undo :meth:`watch`; does nothing for other watchers."""
        if isinstance(self._watchers, set):
            self._watchers.discard(who)
            if not self._watchers:
                self._watchers = None
        elif self._watchers is who:
            self._watchers = None

    def wake(self) -> None:
        """Call the watchers: its end or its beginning has moved, or its topic was deleted."""
        for watcher in self.watchers:
            watcher.partition_grew(self)


class KnownTopic(NamedTuple):
    """A topic as groups know it; another one, with another id, after it was deleted and created again."""

    topic_id: UUID
    partitions: int


class Topic:
    """A topic; ``octets`` is its name as it goes on the wire."""

    __slots__ = ("_known", "configs", "deleted", "name", "octets", "partitions", "settings", "topic_id")

    def __init__(self, name: str, topic_id: UUID, configs: Mapping[str, str]) -> None:
        self.name = name
        self.octets = name.encode()
        self.topic_id = topic_id
        self.configs = dict(configs)
        self.partitions: list[Partition] = []
        self.settings: tuple[int, TopicSettings] | None = None  # the configuration table's, kept here
        self.deleted = False
        self._known: KnownTopic | None = None

    @property
    def known(self) -> KnownTopic:
        """Its id and the number of its partitions; made when that is first asked for."""
        known = self._known
        if known is None or known.partitions != len(self.partitions):
            known = self._known = KnownTopic(self.topic_id, len(self.partitions))
        return known

    def row(self) -> dict[str, object]:
        """The value of its row."""
        led: list[list[int]] = []
        for partition in Pace().over(self.partitions):
            if not partition.writable:
                continue
            if led and led[-1][0] + led[-1][1] == partition.number:
                led[-1][1] += 1
            else:
                led.append([partition.number, 1])
        return {"id": self.topic_id.hex, "configs": self.configs, "led": led}
