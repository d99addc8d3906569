"""Tools set where share groups go on, or have them begin anew; nobody is a member of them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

from gevent.event import AsyncResult
from kafka.errors import KafkaStorageError, UnknownTopicOrPartitionError

from dafka.broker.interface.broker import Error, TopicPartition
from dafka.broker.share.delivery import Deliveries
from dafka.broker.share.group import ShareGroup
from dafka.broker.share.limits import ALTERED_AT_ONCE
from dafka.broker.share.partition import SharePartition
from dafka.broker.share.states import Saved, States, key_of
from dafka.broker.topics.table import Partition, TopicTable
from dafka.hub.lines import KeyedFifoLocks
from dafka.hub.turns import Pace, in_pieces
from dafka.log import LogError


class OffsetChanges:
    """The changes of offsets in one broker. Hub side; methods wait as green threads until all is written."""

    def __init__(self, topics: TopicTable, states: States, deliveries: Deliveries) -> None:
        self._topics = topics
        self._states = states
        self._deliveries = deliveries
        self.beginning = KeyedFifoLocks()
        """By group: held while it begins to read topics, and by what must not come between."""

    def alter(self, group: str, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Error | None]:
        """Set from where a group reads partitions; the error of each."""
        parts: dict[TopicPartition, Error | None] = {}
        pace = Pace()  # of all: whoever has waited for a round begins the next one in another turn
        for some in in_pieces(offsets.items(), ALTERED_AT_ONCE):
            begun: list[tuple[TopicPartition, AsyncResult | None]] = []
            pace.rest()
            for key, offset in pace.over(some, every=1):
                partition = self._topics.partition(*key)
                parts[key] = UnknownTopicOrPartitionError
                if partition is not None:
                    try:
                        begun.append((key, self._begin(group, partition, offset)))
                    except LogError:
                        parts[key] = KafkaStorageError
            for key, outcome in begun:
                parts[key] = Saved.end(outcome)
        return parts

    def delete(self, group: str, topics: Iterable[str]) -> dict[TopicPartition, Error | None]:
        """Forget what a group has of topics; the error of each, as of its partition -1."""
        places: dict[UUID, list[int]] = {}
        for topic_id, number in Pace().over(self._states.places(group)):
            places.setdefault(topic_id, []).append(number)
        parts: dict[TopicPartition, Error | None] = {}
        for name in Pace().over(topics):
            topic = self._topics.get(name)
            numbers = [] if topic is None else places.get(topic.topic_id, [])
            failed: Error | None = None if numbers else UnknownTopicOrPartitionError
            for number in Pace().over(numbers):
                partition = self._topics.partition(name, number)
                if partition is not None:
                    self._drop(group, partition)
            if topic is not None and numbers:
                failed = self._states.delete(group, topic.topic_id, Pace().over(numbers))
            parts[name, -1] = failed
        return parts

    def begin(self, group: ShareGroup, is_current: Callable[[], bool]) -> None:
        """Store that a group reads what its members subscribe to, with a state that says no more than that.

        As in Kafka: tools see such a topic, and can delete what the group has of it, also if nobody has
        fetched from it. After an error of the disk that begins with the first fetch.
        """
        names = group.newly_read()
        if not names:
            return
        pace = Pace()
        with self.beginning.held(group.name):
            for some in in_pieces(self._partitions(names), ALTERED_AT_ONCE):
                pace.rest()
                if not (is_current() and group.occupied):  # it may be deleted next
                    return
                begun = [
                    self._save(group.name, one, [], 0, None)
                    for one in pace.over(some, every=1)
                    if not (one.topic.deleted or self._has(group.name, one))
                ]
                for outcome in begun:
                    Saved.end(outcome)

    def _partitions(self, names: Iterable[str]) -> Iterator[Partition]:
        pace = Pace()
        for name in names:
            topic = self._topics.get(name)
            if topic is not None:
                yield from pace.over(list(topic.partitions))

    def _has(self, group: str, partition: Partition) -> bool:
        if self._deliveries.known(group, partition) is not None:
            return True
        return self._states.has(group, partition.topic.topic_id, partition.number)

    def _save(
        self, group: str, partition: Partition, keys: list[str], epoch: int, machine: SharePartition | None
    ) -> AsyncResult | None:
        prefix = key_of(group, partition.topic.topic_id, partition.number)
        return Saved(self._states.writer, prefix, keys, epoch, lambda: machine).begin(whole=True)

    def _begin(self, group: str, partition: Partition, offset: int) -> AsyncResult | None:
        """Have it written, with others in one round, as :meth:`Saved.begin`. Raises the log's errors."""
        self._drop(group, partition)
        state, keys = self._states.load(group, partition)
        machine = SharePartition(min(max(offset, partition.log_start), partition.high_watermark))
        epoch = 0 if state is None else state.state_epoch + 1
        return self._save(group, partition, keys, epoch, machine)

    def _drop(self, group: str, partition: Partition) -> None:
        delivery = self._deliveries.known(group, partition)
        if delivery is not None:
            self._deliveries.drop_and_wait(delivery)
