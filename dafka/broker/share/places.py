"""The share partitions that members name: whether they may read them, and how they are opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import gevent
from kafka.errors import KafkaStorageError, UnknownError, UnknownTopicIdError, UnknownTopicOrPartitionError

from dafka.broker.groups.registry import Groups
from dafka.broker.interface.broker import Error
from dafka.broker.interface.share import SharedRecords, SharePlace
from dafka.broker.share import limits
from dafka.broker.share.delivery import Deliveries, Delivery
from dafka.broker.share.group import ShareGroup
from dafka.broker.share.states import States
from dafka.broker.topics.table import Partition, TopicTable
from dafka.hub.turns import Pace, in_pieces
from dafka.log import LogError


class Places:
    """The share partitions of one broker by the ids of their topics. Hub side; what opens them waits as a
    green thread."""

    def __init__(self, groups: Groups, topics: TopicTable, states: States, deliveries: Deliveries) -> None:
        self._groups = groups
        self._topics = topics
        self._states = states
        self._deliveries = deliveries

    def missing(self, place: SharePlace) -> Error | None:
        """The error of a partition that does not exist."""
        found = self._found(place)
        return None if isinstance(found, Partition) else found

    def partition(self, group: str, place: SharePlace) -> Partition | Error:
        """A partition that members of the group may read, or why they cannot."""
        found = self._found(place)
        if isinstance(found, Partition) and self._deliveries.known(group, found) is None:
            if group in self._groups.deleting:  # its stored state is being replaced
                return UnknownTopicOrPartitionError
            members = self._groups.get(group)
            reads = isinstance(members, ShareGroup) and members.reads(found.topic.name)
            if not reads and not self._states.has(group, *place):
                return UnknownError  # as in Kafka, where it has no state that could be read
        return found

    def open(self, group: str, place: SharePlace) -> Delivery | Error:
        """The same share partition, open."""
        partition = self.partition(group, place)
        if not isinstance(partition, Partition):
            return partition
        try:
            return self._deliveries.open(group, partition)
        except LogError:
            return KafkaStorageError

    def opening(
        self, group: str, places: Iterable[SharePlace], errors: dict[SharePlace, SharedRecords]
    ) -> Iterator[tuple[Delivery, SharePlace]]:
        """Share partitions in their order, each as soon as it is open; the errors of the others."""
        for place in places:
            delivery = self.open(group, place)
            if isinstance(delivery, Delivery):
                yield delivery, place
            else:
                errors[place] = SharedRecords(delivery)

    def open_together(self, group: str, places: Iterable[SharePlace]) -> None:
        """Open those that nobody has opened, so that they are written in few rounds and not in one each."""
        for some in in_pieces(self._unknown(group, places), limits.OPENED_AT_ONCE):
            gevent.joinall([gevent.spawn(self.open, group, place) for place in some])

    def _unknown(self, group: str, places: Iterable[SharePlace]) -> Iterator[SharePlace]:
        for place in Pace().over(places):
            found = self._found(place)
            if isinstance(found, Partition) and self._deliveries.known(group, found) is None:
                yield place

    def _found(self, place: SharePlace) -> Partition | Error:
        topic = self._topics.by_id(place[0])
        if topic is None:
            return UnknownTopicIdError
        found = self._topics.partition(topic.name, place[1])
        return UnknownTopicOrPartitionError if found is None else found
