"""The broker's topics: which partitions each has, and which Dafka producer writes each of them.

A topic is an ordered list of partitions, and a partition's number is its place in that list for good. Most
are *led*: the broker's own producers write them, with an address that follows from the topic's id and the
partition's number (UUIDv5), so a topic that is deleted and created again has new addresses and nothing of
the old one comes back. The others belong to native producers of the mesh. They are appended behind what is
there, in the order in which they were first stored.

Everything is kept in the log's tables and changes in memory only after the commit, one change at a time:

- ``topics``: name -> id, configs, the led partitions as ranges [first number, count], and whether it is
  being deleted;
- ``natives``: topic id / number -> [address, first offset that counts];
- ``deleted``: the remains of deleted topics (:mod:`dafka.broker.topics.deleted`).

A native partition is first stored by the store role and registered afterwards. A crash in between loses
nothing: opening the table registers what the log has and the table has not, in the order of the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from hashlib import sha1
from itertools import islice, starmap
from uuid import UUID, uuid4

from gevent.lock import BoundedSemaphore
from kafka.errors import (
    InvalidPartitionsError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.util import ensure_valid_topic_name

from dafka.broker.interface.broker import Error
from dafka.broker.limits import PARTITIONS_KEPT, PARTITIONS_PER_TOPIC
from dafka.broker.topics.deleted import FOR_GOOD, DeletedPartitions
from dafka.broker.topics.topic import (
    DELETED,
    NATIVE_ROWS,
    NATIVES,
    TOPIC_ROWS,
    TOPICS,
    Partition,
    Topic,
)
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.clock import REAL
from dafka.hub.turns import Pace, in_pieces
from dafka.log import Log, LogPartition
from dafka.protocol.parted import PartedDict

__all__ = ["DELETED_ROWS", "Partition", "Topic", "TopicTable", "is_legal", "leader_addresses"]

LOADED_AT_ONCE = 16  # topics that are read from the log before others may have a turn
LED_AT_ONCE = 100  # partitions of a topic made before others may have a turn
DELETED_ROWS = 500  # partitions of a deleted topic that one round takes
CHANGES_KNOWN = 1000  # the last changes of topics


class TopicTable:
    """All topics of one log. It is made in a green thread, which gives others turns if there are many.

    Methods that change something wait as green threads for their commit. They raise what the log raises when
    it cannot write, and nothing has changed then.
    """

    def __init__(
        self,
        log: Log,
        writer: Writer,
        default_partitions: int,
        clock: Callable[[], float] = REAL.time,
    ) -> None:
        self._log = log
        self._writer = writer
        self._default_partitions = default_partitions
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._by_names = PartedDict[tuple[bytes, bytes], Partition]()
        self._alike: dict[str, set[str]] = {}  # by what is left of a name without the difference of . and _
        self.deleted = DeletedPartitions(log, writer, clock)
        self.version = 0
        """The number of changes: a topic was created or deleted, or got partitions."""
        self._changed: deque[str] = deque(maxlen=CHANGES_KNOWN)  # the topics of the last ones
        self._changing = BoundedSemaphore(1)
        log.table(NATIVES, NATIVE_ROWS)
        for name, row in Pace().over(log.table(TOPICS, TOPIC_ROWS).items(), every=LOADED_AT_ONCE):
            self._load(name, row)
        for topic in [topic for topic in self._topics.values() if topic.deleted]:
            self._finish_deletion(topic)

    # -- looking up -----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Topic]:
        return iter([topic for topic in self._topics.values() if not topic.deleted])

    def names(self) -> list[str]:
        """The names of all topics. Those that are being deleted may be among them."""
        return list(self._topics)

    def get(self, name: str) -> Topic | None:
        """The topic of that name."""
        topic = self._topics.get(name)
        return None if topic is None or topic.deleted else topic

    def alike(self, name: str) -> str | None:
        """A topic whose name differs from this one by ``.`` and ``_`` alone: Kafka has none besides it."""
        others = self._alike.get(name.replace(".", "_"), set())
        return None if name in others else next(iter(others), None)

    def by_id(self, topic_id: UUID) -> Topic | None:
        """The topic with that id."""
        return self._by_id.get(topic_id)

    def partition(self, name: str, number: int) -> Partition | None:
        """A partition by topic and number."""
        topic = self._topics.get(name)
        if topic is None or topic.deleted or not 0 <= number < len(topic.partitions):
            return None
        return topic.partitions[number]

    def of_log(self, stored: LogPartition) -> Partition | None:
        """The partition whose records ``stored`` is."""
        return self._by_names.get((stored.topic, stored.address))

    def leads(self, topic: bytes, address: bytes) -> bool:
        """Whether ``address`` is a leader of this broker: nobody else writes that partition."""
        partition = self._by_names.get((topic, address))
        return partition is not None and partition.writable

    def wants(self, stored: LogPartition) -> bool:
        """Whether :meth:`adopt` would register a partition that is in no topic."""
        if _kafka_name(stored.topic) is None:
            return False
        floor = self.deleted.floor(stored)
        return floor != FOR_GOOD and max(floor, stored.first_offset) < stored.next_offset

    # -- changing -------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        count: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> Error | None:
        """Create a topic with ``count`` led partitions (-1: the default). The name has been checked."""
        count = self._default_partitions if count == -1 else count
        if count <= 0:
            return InvalidPartitionsError
        if count > PARTITIONS_PER_TOPIC:
            return PolicyViolationError
        with self._changing:
            if name in self._topics:
                return TopicAlreadyExistsError
            if len(self._by_names) + count > PARTITIONS_KEPT:
                return PolicyViolationError
            if validate_only:
                return None
            topic = self._new_topic(name, count, configs or {})
            self._writer.put_and_wait({(TOPICS, name): topic.row()})
            self._add(topic)
        return None

    def extend(self, name: str, total: int) -> Error | None:
        """Add led partitions to a topic until it has ``total`` partitions, native ones counted."""
        with self._changing:
            topic = self.get(name)
            if topic is None:
                return UnknownTopicOrPartitionError
            first = len(topic.partitions)
            if not first < total <= PARTITIONS_PER_TOPIC:
                return InvalidPartitionsError
            if len(self._by_names) + total - first > PARTITIONS_KEPT:
                return PolicyViolationError
            # Prepared on the side: the visible topic changes only with the commit.
            extended = Topic(topic.name, topic.topic_id, topic.configs)
            extended.partitions = [*topic.partitions, *self._led(topic, range(first, total))]
            self._writer.put_and_wait({(TOPICS, name): extended.row()})
            topic.partitions = extended.partitions
            self._add(topic)
        return None

    def configure(self, name: str, change: Callable[[Mapping[str, str]], dict[str, str]]) -> Error | None:
        """Set the configuration to what ``change(configuration)`` makes of it; passes on what that raises."""
        with self._changing:
            topic = self.get(name)
            if topic is None:
                return UnknownTopicOrPartitionError
            changed = Topic(topic.name, topic.topic_id, change(topic.configs))
            changed.partitions = topic.partitions
            self._writer.put_and_wait({(TOPICS, name): changed.row()})
            topic.configs, topic.settings = changed.configs, None
        return None

    def unchanging(self) -> AbstractContextManager[object]:
        """For a ``with`` block in which no topic is created, changed or deleted; waits as a green thread."""
        return self._changing  # type: ignore[no-any-return]

    def adopt_stored(self) -> list[Topic]:
        """:meth:`adopt` what the log has and no topic."""
        known, log = self._by_names, self._log
        unknown = [names for names in Pace().over(log.names()) if names not in known]
        return self.adopt(filter(None, starmap(log.find, unknown)))

    def adopt(self, candidates: Iterable[LogPartition]) -> list[Topic]:
        """Register native partitions that are in the log and in no topic yet; the topics that have grown.

        A topic that does not exist is created with the default partitions in front. Topics that Kafka has
        no legal name for stay with the mesh.
        """
        with self._changing:
            grown: dict[str, Topic] = {}
            added: list[Partition] = []
            rows: Rows = {}
            wanted = [
                stored
                for stored in Pace().over(candidates)
                if self.of_log(stored) is None and self.wants(stored)
            ]
            for stored in Pace().over(sorted(wanted, key=lambda stored: stored.number)):
                name = stored.topic.decode("ascii")
                floor = self.deleted.floor(stored)
                topic = grown.get(name)
                if topic is None:
                    known = self._topics.get(name)
                    if known is not None and known.deleted:
                        continue  # its next commit brings it here again
                    if known is None:
                        topic = self._new_topic(name, self._default_partitions, {})
                        rows[TOPICS, name] = topic.row()
                    else:
                        topic = Topic(name, known.topic_id, known.configs)
                        topic.partitions = list(known.partitions)
                    grown[name] = topic
                number = len(topic.partitions)
                native = Partition(topic, number, stored.address, self._log, writable=False, floor=floor)
                topic.partitions.append(native)
                added.append(native)
                rows[NATIVES, _native_key(topic, number)] = [stored.address.decode("latin-1"), floor]
            if not added:
                return []
            self._writer.put_and_wait(rows)
            return [self._take_over(topic) for topic in grown.values()]

    def delete(self, topic: Topic) -> bool:
        """Delete a topic; False if another call has deleted it.

        Its records are no longer found here; :attr:`deleted` has their partitions. If those are more rows
        than one round writes, the topic's own row is marked as deleted first, and is removed with the last
        of them, now or when the log is opened again.
        """
        with self._changing:
            if self._topics.get(topic.name) is not topic:
                return False
            begins, topic.deleted = not topic.deleted, True  # from here on nothing more is appended or read
            self._note_change(topic)
            try:
                if begins and len(topic.partitions) > DELETED_ROWS:
                    self._writer.put_and_wait({(TOPICS, topic.name): {**topic.row(), DELETED: True}})
                    begins = False
                self._finish_deletion(topic)
            except BaseException:
                topic.deleted = not begins
                self._note_change(topic)
                raise
            return True

    def half_deleted(self, name: str) -> Topic | None:
        """The topic of that name if its deletion has begun and not ended, because the log could not write."""
        topic = self._topics.get(name)
        return topic if topic is not None and topic.deleted else None

    def _finish_deletion(self, topic: Topic) -> None:
        pace = Pace()
        rows: Rows = {}
        for some in in_pieces(pace.over(topic.partitions), DELETED_ROWS):
            if rows:
                self._writer.put_and_wait(rows)
            rows = {}
            for partition in some:
                rows.update(self._rows_of_deletion(partition))
        self._writer.put_and_wait({**rows, (TOPICS, topic.name): None})
        del self._topics[topic.name]
        del self._by_id[topic.topic_id]
        same = topic.name.replace(".", "_")
        if "_" in same:
            self._alike[same].discard(topic.name)
            if not self._alike[same]:
                del self._alike[same]
        for partition in pace.over(topic.partitions):
            del self._by_names[topic.octets, partition.address]
            if partition.writable:
                self.deleted.add(topic.octets, partition.address, partition.next_sequence)

    def _rows_of_deletion(self, partition: Partition) -> Rows:
        rows: Rows = {}
        if not partition.writable:
            rows[NATIVES, _native_key(partition.topic, partition.number)] = None
            end = partition.high_watermark
        elif not partition.begun and not partition.high_watermark:
            return rows
        else:
            end = FOR_GOOD
        sequence = partition.next_sequence
        rows.update(self.deleted.rows_of(partition.topic.octets, partition.address, end, sequence))
        return rows

    def trimmed(self, partitions: list[LogPartition]) -> None:
        """Native partitions have lost what deleted topics had of them."""
        with self._changing:
            self.deleted.forget_trimmed(partitions)

    # -- rows -----------------------------------------------------------------------------------

    def _load(self, name: str, row: dict[str, object]) -> None:
        topic = Topic(name, UUID(hex=str(row["id"])), row["configs"])  # type: ignore[arg-type]
        topic.deleted = DELETED in row
        partitions = [
            partition
            for first, count in row["led"]  # type: ignore[attr-defined]
            for partition in self._led(topic, range(first, first + count))
        ]
        led = len(partitions)
        for key, (address, floor) in Pace().over(self._log.table(NATIVES).items(topic.topic_id.hex + "/")):
            octets = str(address).encode("latin-1")
            number = int(key.rpartition("/")[2])
            partitions.append(Partition(topic, number, octets, self._log, writable=False, floor=floor))
        if len(partitions) > led:
            partitions.sort(key=lambda partition: partition.number)
        topic.partitions = partitions
        self._add(topic)

    def _new_topic(self, name: str, count: int, configs: Mapping[str, str]) -> Topic:
        topic = Topic(name, uuid4(), configs)
        topic.partitions = self._led(topic, range(count))
        return topic

    def _led(self, topic: Topic, numbers: Iterable[int]) -> list[Partition]:
        log = self._log
        led: list[Partition] = []
        for some in in_pieces(Pace().over(numbers), LED_AT_ONCE):
            for number, address in zip(some, leader_addresses(topic.topic_id, some), strict=True):
                led.append(Partition(topic, number, address, log, writable=True))
        return led

    def _take_over(self, topic: Topic) -> Topic:
        known = self._topics.get(topic.name)
        if known is None:
            return self._add(topic)
        for partition in Pace().over(topic.partitions):
            partition.topic = known
        known.partitions = topic.partitions
        return self._add(known)

    def _add(self, topic: Topic) -> Topic:
        for partition in Pace().over(topic.partitions):
            self._by_names[topic.octets, partition.address] = partition
        self._topics[topic.name] = self._by_id[topic.topic_id] = topic
        same = topic.name.replace(".", "_")
        if "_" in same:
            self._alike.setdefault(same, set()).add(topic.name)
        self._note_change(topic)
        return topic

    def _note_change(self, topic: Topic) -> None:
        self.version += 1
        self._changed.append(topic.name)

    def changed_since(self, version: int) -> list[str] | None:
        """The names of the topics that have changed since there was that version; None: too many to know."""
        count = self.version - version
        return None if count > len(self._changed) else list(islice(reversed(self._changed), count))


def leader_addresses(topic_id: UUID, numbers: Iterable[int]) -> list[bytes]:
    """The addresses of the Dafka producers that lead partitions: UUIDv5 of topic id and number.

    Several times as fast as :func:`uuid.uuid5`: there may be a hundred thousand.
    """
    namespace = topic_id.bytes
    addresses = []
    for number in numbers:
        digest = sha1(b"%b%d" % (namespace, number), usedforsecurity=False).hexdigest().upper()
        variant = "89AB"[int(digest[16], 16) & 3]
        addresses.append(f"{digest[:12]}5{digest[13:16]}{variant}{digest[17:32]}".encode())
    return addresses


def is_legal(name: object) -> bool:
    """Whether Kafka allows a topic of that name."""
    try:
        ensure_valid_topic_name(name)
    except (TypeError, ValueError):
        return False
    return not str(name).endswith("\n")  # kafka-python's pattern lets a newline at the end pass


def _kafka_name(octets: bytes) -> str | None:
    try:
        name = octets.decode("ascii")
    except UnicodeDecodeError:
        return None
    return name if is_legal(name) else None


def _native_key(topic: Topic, number: int) -> str:
    return f"{topic.topic_id.hex}/{number}"
