"""How far a share group has come in each partition, and in which states its records are."""

from __future__ import annotations

from collections import Counter

from kafka.errors import KafkaStorageError, UnknownTopicOrPartitionError

from dafka.broker.interface.broker import TopicPartition
from dafka.broker.interface.share import NO_START, ShareOffset, ShareStanding
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.share.delivery import Deliveries
from dafka.broker.share.partition import SharePartition
from dafka.broker.share.runs import RecordState
from dafka.broker.share.settings import SettingsTable
from dafka.broker.share.states import States
from dafka.broker.topics.table import Partition, TopicTable
from dafka.hub.turns import Pace
from dafka.log import LogError


class Progress:
    """The progress of all groups of one broker. Hub side; states that are not in memory are read, which
    waits."""

    def __init__(
        self,
        topics: TopicTable,
        epochs: LeaderEpochs,
        states: States,
        settings: SettingsTable,
        deliveries: Deliveries,
    ) -> None:
        self._topics = topics
        self._epochs = epochs
        self._states = states
        self._settings = settings
        self._deliveries = deliveries

    def read(self, group: str) -> list[TopicPartition]:
        """The partitions that a group has a state for; waits as a green thread."""
        found: list[TopicPartition] = []
        for topic_id, number in Pace().over(self._states.places(group)):
            topic = self._topics.by_id(topic_id)
            if topic is not None:
                found.append((topic.name, number))
        return found

    def offset(self, group: str, key: TopicPartition) -> ShareOffset:
        """A group's progress in a partition, as tools ask for it."""
        partition = self._topics.partition(*key)
        if partition is None:
            return ShareOffset(None, NO_START)  # as of one that nobody has read
        epoch = self._epochs.of(partition).latest
        try:
            machine = self._machine(group, partition)
        except LogError:
            return ShareOffset(KafkaStorageError)
        if machine is None or machine.told is None:
            return ShareOffset(None, NO_START, epoch)
        left = self._end(group, partition) - machine.start - machine.finished
        return ShareOffset(None, machine.told, epoch, max(left, 0))

    def standing(self, group: str, key: TopicPartition) -> ShareStanding:
        """How many offsets are in which state. It goes through all runs, of which there are not too many."""
        partition = self._topics.partition(*key)
        if partition is None:
            return ShareStanding(UnknownTopicOrPartitionError)
        try:
            machine = self._machine(group, partition)
        except LogError:
            return ShareStanding(KafkaStorageError)
        if machine is None:
            return ShareStanding(None)
        states: Counter[RecordState] = Counter()
        deliveries: Counter[int] = Counter()
        holders: Counter[str] = Counter()
        for run in machine.runs:
            states[run.state] += len(run)
            if not run.state.is_final:
                deliveries[run.count] += len(run)
            if run.state is RecordState.ACQUIRED:
                holders[run.member] += len(run)
        return ShareStanding(
            None,
            machine.start,
            machine.end,
            max(self._end(group, partition) - machine.end, 0),
            states[RecordState.AVAILABLE],
            states[RecordState.ACQUIRED],
            states[RecordState.ACKNOWLEDGED],
            states[RecordState.ARCHIVED],
            dict(deliveries),
            dict(holders),
        )

    def _end(self, group: str, partition: Partition) -> int:
        return self._deliveries.end(partition, self._settings.of(group))

    def _machine(self, group: str, partition: Partition) -> SharePartition | None:
        """The state of a share partition, to look at; None if nobody has read it. Raises LogError."""
        delivery = self._deliveries.known(group, partition)
        if delivery is not None and delivery.machine is not None:
            return delivery.machine
        state, _ = self._states.load(group, partition)
        if state is None or state.start == NO_START:
            return None
        return state.revived()
