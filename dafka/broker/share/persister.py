"""The stored states of share groups, as brokers of Kafka ask each other for them (KIP-932).

Here the broker that delivers records is the one that stores their states, so that nobody has to ask. Tools
that do are answered as by Apache Kafka, with these differences. There is no leader but this broker: its
partitions' leader epochs are those that fence a leader, and a group with members keeps its states. Invalid
states are refused; Apache Kafka stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from kafka.errors import (
    BrokerResponseError,
    FencedLeaderEpochError,
    FencedStateEpochError,
    InvalidRequestError,
    KafkaStorageError,
    NonEmptyGroupError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.groups.registry import Groups
from dafka.broker.interface.share import NO_START, SharedState, SharePlace, StateWrite
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.share.delivery import Deliveries
from dafka.broker.share.limits import GROUP_ID_LENGTH, RUNS
from dafka.broker.share.partition import SharePartition
from dafka.broker.share.runs import RecordState, Runs
from dafka.broker.share.states import Saved, States, key_of
from dafka.broker.share.stored import Stored, overlay
from dafka.broker.topics.table import Partition, TopicTable
from dafka.hub.turns import Pace
from dafka.log import LogError

_STATES = {int(state): state for state in RecordState if state is not RecordState.ACQUIRED}
_COUNTS = range(2**15)
_UNTOUCHED = (RecordState.AVAILABLE, 0)
_UNKNOWN = SharedState(UnknownTopicOrPartitionError, "This server does not host this topic-partition.")


class Persister:
    """The states of all share groups of one broker. Hub side; methods wait as green threads."""

    def __init__(
        self,
        groups: Groups,
        topics: TopicTable,
        epochs: LeaderEpochs,
        states: States,
        deliveries: Deliveries,
        check_on: Callable[[], object],
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._epochs = epochs
        self._states = states
        self._deliveries = deliveries
        self._check_on = check_on

    def begin_share_states(
        self, group: str, starts: Mapping[SharePlace, tuple[int, int]]
    ) -> dict[SharePlace, SharedState]:
        def begin(place: SharePlace, partition: Partition | None) -> SharedState:
            epoch, start = starts[place]
            if partition is None:
                return _UNKNOWN
            if start < NO_START or epoch < 0:
                raise InvalidRequestError(f"State epoch {epoch} and start offset {start} cannot be.")
            stored, keys = self._states.load(group, partition)
            if stored is not None and epoch < stored.state_epoch:
                raise FencedStateEpochError
            return self._save(group, partition, keys, epoch, None if start < 0 else SharePartition(start))

        return self._changed(group, starts, begin)

    def read_share_states(
        self, group: str, places: Mapping[SharePlace, int]
    ) -> dict[SharePlace, SharedState]:
        def read(place: SharePlace, partition: Partition | None) -> SharedState:
            stored = None if partition is None else self._states.load(group, partition)[0]
            if partition is None or stored is None:
                raise InvalidRequestError("Read operation on uninitialized share partition not allowed.")
            epoch = self._check_leader(partition, places[place])
            runs = [run for run in stored.runs if run[2:] != _UNTOUCHED]
            return SharedState(None, "", stored.state_epoch, epoch, stored.told, runs)

        return self._each(group, places, read)

    def sum_up_share_states(
        self, group: str, places: Collection[SharePlace]
    ) -> dict[SharePlace, SharedState]:
        def sum_up(place: SharePlace, partition: Partition | None) -> SharedState:
            if partition is None:
                return _UNKNOWN
            stored = self._states.load(group, partition)[0]
            if stored is None:
                return SharedState(None, start=NO_START)
            epoch = self._epochs.of(partition).latest
            finished = sum(last - first + 1 for first, last, state, _ in stored.runs if state.is_final)
            if stored.told < 0:
                finished = -1
            return SharedState(None, "", stored.state_epoch, epoch, stored.told, (), finished)

        return self._each(group, places, sum_up)

    def write_share_states(
        self, group: str, writes: Mapping[SharePlace, StateWrite]
    ) -> dict[SharePlace, SharedState]:
        def write(place: SharePlace, partition: Partition | None) -> SharedState:
            change = writes[place]
            stored, keys = (None, []) if partition is None else self._states.load(group, partition)
            if partition is None or stored is None:
                raise InvalidRequestError("Write operation on uninitialized share partition not allowed.")
            if change.state_epoch < stored.state_epoch:
                raise FencedStateEpochError
            self._check_leader(partition, change.leader_epoch)
            return self._save(group, partition, keys, stored.state_epoch, _overlaid(stored, change))

        return self._changed(group, writes, write)

    def delete_share_states(
        self, group: str, places: Collection[SharePlace]
    ) -> dict[SharePlace, SharedState]:
        def delete(place: SharePlace, partition: Partition | None) -> SharedState:
            if partition is None:
                return _UNKNOWN
            topic_id, number = place
            return SharedState(self._states.delete(group, topic_id, [number]))

        return self._changed(group, places, delete)

    # -- one after the other ---------------------------------------------------------------------------

    def _changed(
        self,
        group: str,
        places: Iterable[SharePlace],
        change: Callable[[SharePlace, Partition | None], SharedState],
    ) -> dict[SharePlace, SharedState]:
        """The same for changes, without reading members."""

        def dropped(place: SharePlace, partition: Partition | None) -> SharedState:
            delivery = None if partition is None else self._deliveries.known(group, partition)
            if delivery is not None:
                self._deliveries.drop_and_wait(delivery)
            return change(place, partition)

        places = list(places)
        try:
            found = self._groups.get(group)
            if found is not None and found.occupied:
                raise NonEmptyGroupError(f"Group {group} has members, for whom this broker leads.")
            with self._groups.nobody_joins(group):
                return self._each(group, places, dropped)
        except BrokerResponseError as error:
            return dict.fromkeys(places, _refused(error))

    def _each(
        self,
        group: str,
        places: Iterable[SharePlace],
        answer: Callable[[SharePlace, Partition | None], SharedState],
    ) -> dict[SharePlace, SharedState]:
        answers = {}
        for place in Pace().over(places, every=1):
            try:
                self._check_on()
                if place[1] < 0:
                    raise InvalidRequestError("The partition id cannot be a negative number.")
                if not 0 < len(group) <= GROUP_ID_LENGTH:
                    raise InvalidRequestError(f"A group has a name of 1 to {GROUP_ID_LENGTH} characters.")
                topic = self._topics.by_id(place[0])
                partition = None if topic is None else self._topics.partition(topic.name, place[1])
                answers[place] = answer(place, partition)
            except BrokerResponseError as error:
                answers[place] = _refused(error)
            except LogError:
                answers[place] = SharedState(KafkaStorageError)
        return answers

    def _check_leader(self, partition: Partition, epoch: int) -> int:
        latest = self._epochs.of(partition).latest
        if 0 <= epoch < latest:
            raise FencedLeaderEpochError
        return latest

    def _save(
        self, group: str, partition: Partition, keys: list[str], epoch: int, machine: SharePartition | None
    ) -> SharedState:
        prefix = key_of(group, partition.topic.topic_id, partition.number)
        saved = Saved(self._states.writer, prefix, keys, epoch, lambda: machine)
        return SharedState(saved.end(saved.begin(whole=True)))


def _overlaid(stored: Stored, change: StateWrite) -> SharePartition:
    """The state after a change: later runs take the place of earlier ones."""
    runs = Runs(max(stored.start, 0))
    for run in stored.runs:
        overlay(runs, *run)
    for first, last, state, count in Pace().over(change.runs):
        if not 0 <= first <= last < 2**62 or state not in _STATES or count not in _COUNTS:
            raise InvalidRequestError(f"Offsets {first} to {last} cannot be in state {state} after {count}.")
        if last >= runs.start:
            overlay(runs, first, last, _STATES[state], count)
        if len(runs) > RUNS:  # at once, so that a long request costs no more than a full state
            raise InvalidRequestError(f"A share partition has {RUNS} runs of offsets at most.")
    runs.move_start(max(runs.start, change.start))
    machine = SharePartition(runs.start)
    machine.restore(runs.start, [(run.first, run.last, run.state, run.count) for run in runs])
    if not stored.settled and change.start < 0:
        machine.told = None
    return machine


def _refused(error: BrokerResponseError) -> SharedState:
    return SharedState(type(error), str(error.args[0]) if error.args else str(type(error).description))
