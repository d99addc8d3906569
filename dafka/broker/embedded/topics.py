"""The topics' part of the embedded broker: metadata, and every change of a topic."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import overload

from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidTopicError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.embedded.cleaner import LogCleaner
from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.groups.offsets import GroupOffsets
from dafka.broker.interface.groups import Error
from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.topics import (
    Metadata,
    PartitionMetadata,
    TopicInterface,
    TopicMetadata,
    TopicSpec,
)
from dafka.broker.limits import PARTITIONS_KEPT, PARTITIONS_PER_TOPIC
from dafka.broker.positions.positions import Positions
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.presence import Presence
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.share.calls import ShareCalls
from dafka.broker.topics.configs import InvalidConfigError, check_configs
from dafka.broker.topics.table import DELETED_ROWS, Partition, Topic, TopicTable, is_legal
from dafka.broker.transactions.coordinator import TransactionCoordinator
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces, let_go
from dafka.log import LogError
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

_NO_ID = uuid.UUID(int=0)


class _Described(Sequence[PartitionMetadata]):
    """The metadata of a topic's partitions, made when somebody looks at them: mostly beside the hub."""

    __slots__ = ("_latest", "_partitions")

    def __init__(self, partitions: Sequence[Partition], latest: Callable[[Partition], int]) -> None:
        self._partitions = partitions  # a topic that grows gets another list
        self._latest = latest

    def __len__(self) -> int:
        return len(self._partitions)

    @overload
    def __getitem__(self, position: int) -> PartitionMetadata: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[PartitionMetadata]: ...
    def __getitem__(self, position: int | slice) -> PartitionMetadata | Sequence[PartitionMetadata]:
        if isinstance(position, slice):
            return _Described(self._partitions[position], self._latest)
        return self._of(self._partitions[position])

    def __iter__(self) -> Iterator[PartitionMetadata]:
        return map(self._of, self._partitions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Described) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def _of(self, one: Partition) -> PartitionMetadata:
        return PartitionMetadata(one.number, one.address.decode("latin-1"), one.writable, self._latest(one))


class _AllTopics(Mapping[str, TopicMetadata]):
    """All topics, each described when somebody looks at it, and for as long.

    Descriptions of ten thousand topics that live at the same time are so many new objects that Python looks
    through all it has for garbage: each list of topics would make a turn of 70 ms.
    """

    def __init__(self, topics: Mapping[str, Topic], described: Callable[[Topic], TopicMetadata]) -> None:
        self._topics = topics
        self._described = described

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __getitem__(self, name: str) -> TopicMetadata:
        return self._described(self._topics[name])


class TopicCalls(TopicInterface):
    """Answers the calls about topics, and changes what belongs to a topic in all tables of the broker."""

    def __init__(
        self,
        hub: Hub,
        whole_metadata: Callable[[Mapping[str, TopicMetadata]], Metadata],
        auto_create: bool,
        topics: TopicTable,
        writer: Writer,
        offsets: GroupOffsets,
        share: ShareCalls,
        producers: ProducerStates,
        epochs: LeaderEpochs,
        transactions: TransactionCoordinator,
        presence: Presence,
        positions: Positions,
        log_cleaner: LogCleaner,
        lifecycle: Lifecycle,
    ) -> None:
        """``whole_metadata`` adds to topics what is true of the broker."""
        self._hub = hub
        self._whole_metadata = whole_metadata
        self._auto_create = auto_create
        self._topics = topics
        self._writer = writer
        self._offsets = offsets
        self._share = share
        self._producers = producers
        self._epochs = epochs
        self._transactions = transactions
        self._presence = presence
        self._positions = positions
        self._log_cleaner = log_cleaner
        self._lifecycle = lifecycle

    def metadata(self, topics: Iterable[str] | None, create: bool = False) -> Metadata:
        if topics is None:
            known = {topic.name: topic for topic in Pace().over(self._topics)}
            return self._whole_metadata(_AllTopics(known, self._described))
        create = create and self._auto_create
        return self._whole_metadata({name: self._describe(name, create) for name in Pace().over(topics)})

    def _describe(self, name: str, create: bool) -> TopicMetadata:
        topic = self._topics.get(name)
        if topic is None and create:
            error = self.create_topics({name: TopicSpec()})[name].error
            topic = self._topics.get(name)  # also if another caller was faster
            if topic is None and error is not None:
                return TopicMetadata(name, _NO_ID, error, [])
        if topic is None:
            error = UnknownTopicOrPartitionError if is_legal(name) else InvalidTopicError
            return TopicMetadata(name, _NO_ID, error, [])
        return self._described(topic)

    def _described(self, topic: Topic) -> TopicMetadata:
        partitions = _Described(topic.partitions, self._epochs.latest)
        return TopicMetadata(topic.name, topic.topic_id, None, partitions)

    def topic_names(self, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
        return {
            topic_id: topic.name
            for topic_id in Pace().over(ids)
            if (topic := self._topics.by_id(topic_id)) is not None and not topic.deleted
        }

    def create_topics(
        self, topics: Mapping[str, TopicSpec], *, validate_only: bool = False
    ) -> dict[str, Outcome]:
        answers: dict[str, Outcome] = {}
        for name, spec in topics.items():
            try:
                error = run_to_completion(self._hub, self._create, name, spec, validate_only)
            except InvalidConfigError as invalid:
                log.warning("topic %r is not created: %s", name, invalid)
                answers[name] = Outcome(InvalidConfigurationError, str(invalid))
            except LogError as failed:
                answers[name] = self._failed("creating topic", name, failed)
            else:
                detail = "" if error is None else self._why_not_created(name, spec, error)
                answers[name] = Outcome(error, detail)
        return answers

    def _create(self, name: str, spec: TopicSpec, validate_only: bool) -> Error | None:
        if not is_legal(name) or self._topics.alike(name):
            return InvalidTopicError
        check_configs(spec.configs)
        error = self._topics.create(name, spec.partitions, spec.configs, validate_only=validate_only)
        if error is None and not validate_only:
            partitions = "by default" if spec.partitions < 0 else spec.partitions
            log.info("topic %r is created: partitions %s, settings %s", name, partitions, spec.configs)
        return error

    def _why_not_created(self, name: str, spec: TopicSpec, error: Error) -> str:
        other = self._topics.alike(name)
        if error is InvalidTopicError and other is not None:
            return f"Topic {name!r} collides with existing topic: {other}"
        if error is InvalidTopicError:
            return f"{name!r} cannot be the name of a topic: letters, digits, '.', '_' and '-', 249 at most"
        if error is InvalidPartitionsError:
            return f"a topic has partitions, not {spec.partitions}"
        if error is PolicyViolationError:
            most = f"{PARTITIONS_PER_TOPIC} partitions at most, and all together {PARTITIONS_KEPT}"
            return f"a topic has {most}, not {spec.partitions} more"
        return f"topic {name!r} exists"

    def create_partitions(self, totals: Mapping[str, int]) -> dict[str, Outcome]:
        answers: dict[str, Outcome] = {}
        for name, total in totals.items():
            try:
                error = run_to_completion(self._hub, self._topics.extend, name, total)
            except LogError as failed:
                answers[name] = self._failed("adding partitions to topic", name, failed)
                continue
            answers[name] = Outcome(error)
            if error is None:
                log.info("topic %r has %d partitions now", name, total)
        return answers

    def delete_topics(self, names: Iterable[str]) -> dict[str, Outcome]:
        answers: dict[str, Outcome] = {}
        for name in Pace().over(names):
            topic = self._topics.get(name) or self._topics.half_deleted(name)
            if topic is None:
                answers[name] = Outcome(UnknownTopicOrPartitionError)
                continue
            try:
                answers[name] = Outcome(run_to_completion(self._hub, self._delete, topic))
            except LogError as failed:
                answers[name] = self._failed("deleting topic", name, failed)
        return answers

    def _failed(self, doing: str, name: str, error: LogError) -> Outcome:
        return Outcome(self._lifecycle.storage_error(doing, name, error), str(error))

    def _delete(self, topic: Topic) -> Error | None:
        if not self._topics.delete(topic):
            return UnknownTopicOrPartitionError
        log.info("topic %r is deleted", topic.name)
        self._producers.forget(topic)
        self._positions.forget(topic)
        of_transactions = self._transactions.forget(topic)
        self._presence.forget(topic)
        self._log_cleaner.deleted(topic.partitions)
        for partition in Pace().over(topic.partitions):
            partition.wake()
        try:
            # Its rows in other tables. Rows that stay are found later as those of a deleted topic.
            self._offsets.forget(topic)
            self._share.forget(topic)
            noted = chain(
                of_transactions,
                *(part.places_of(topic) for part in (self._producers, self._epochs, self._positions)),
            )
            for places in in_pieces(Pace().over(noted), DELETED_ROWS):
                self._writer.put_and_wait(dict.fromkeys(places))
            let_go(of_transactions)
        except LogError as error:
            self._lifecycle.check()
            log.warning("topic %r is deleted, but not yet all rows about it: %s", topic.name, error)
        return None
