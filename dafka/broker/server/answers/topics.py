"""Answers that create, extend, delete and describe topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from kafka.errors import (
    BrokerResponseError,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    ThrottlingQuotaExceededError,
    TopicAlreadyExistsError,
    UnknownError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin.topics import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeTopicPartitionsResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.admin import ConfigEntry, Resource, ResourceType
from dafka.broker.interface.broker import BrokerInterface, TopicMetadata, TopicSpec
from dafka.broker.interface.outcome import Outcome
from dafka.broker.server.answers.naming import NO_UUID, topic_fields, topic_names, version_of
from dafka.broker.server.answers.operations import TOPIC_OPERATIONS
from dafka.broker.server.answers.sharing import once
from dafka.broker.server.context import Context, Mutations
from dafka.broker.server.limits import CHANGES_PER_REQUEST

BEYOND_QUOTA = Outcome(ThrottlingQuotaExceededError, "The throttling quota has been exceeded.")
TOO_MANY = Outcome(PolicyViolationError, "Excessively large number of partitions per request.")
TOO_LARGE = Outcome(PolicyViolationError, "Unable to perform excessively large batch operation.")
_Created = CreateTopicsResponse.CreatableTopicResult
_Described = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


def create_topics(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Topics with one replica for each partition, on this broker."""
    if _partitions_in(broker, request) > CHANGES_PER_REQUEST:
        return _all_refused(request, TOO_MANY)
    found = broker.metadata(dict.fromkeys(topic.name for topic in request.topics))
    node = found.controller_id
    outcomes: dict[str, Outcome] = {}
    specs: dict[str, TopicSpec] = {}
    for topic in request.topics:
        if topic.name in specs or topic.name in outcomes:
            specs.pop(topic.name, None)
            detail = f"Topic {topic.name} is in the request more than once."
            outcomes[topic.name] = Outcome(InvalidRequestError, detail)
            continue
        checked = _check(topic, node, exists=found.topics[topic.name].error is None)
        configs = {config.name: config.value for config in topic.configs or ()}
        if checked.error is not None:
            outcomes[topic.name] = checked
            if checked.error is not TopicAlreadyExistsError:  # its name and settings are looked at first
                some = {} if None in configs.values() else configs
                alone = broker.create_topics({topic.name: TopicSpec(1, some)}, validate_only=True)
                if alone[topic.name].error in (InvalidConfigurationError, InvalidTopicError):
                    outcomes[topic.name] = alone[topic.name]
            continue
        partitions = len(topic.assignments) if topic.assignments else topic.num_partitions
        specs[topic.name] = TopicSpec(partitions, configs)
    if context.mutations is not None:
        outcomes.update(_beyond_quota(broker, specs, context.mutations, strict=version_of(request) >= 6))
    if _changes_of(broker, specs) > CHANGES_PER_REQUEST:
        return _all_refused(request, TOO_LARGE)
    outcomes.update(broker.create_topics(specs, validate_only=bool(request.validate_only)))
    made = {name: specs[name] for name, outcome in outcomes.items() if outcome.error is None}
    with_configs = version_of(request) >= 5
    shown_topics = (_planned if request.validate_only else _made)(broker, made, with_configs)
    shown = once(_entry)
    results = []
    for name, outcome in outcomes.items():
        topic = shown_topics.get(name, _NOT_MADE)
        results.append(
            _Created(
                name=name,
                topic_id=topic.topic_id,
                error_code=error_code(outcome.error),
                error_message=error_message(outcome.error, outcome.detail),
                num_partitions=topic.partitions,
                replication_factor=-1 if topic is _NOT_MADE else 1,
                configs=[shown(entry) for entry in topic.configs],
            )
        )
    return CreateTopicsResponse(throttle_time_ms=0, topics=results)


def _partitions_in(broker: BrokerInterface, request: Any) -> int:
    """How many partitions a request wants; of topics that are in it twice, which are not created, none."""
    count = Counter(topic.name for topic in request.topics)
    wanted = [
        len(topic.assignments) if topic.assignments else topic.num_partitions
        for topic in request.topics
        if count[topic.name] == 1
    ]
    by_default = wanted.count(-1)
    more = by_default * _default_partitions(broker) if by_default else 0
    return more + sum(one for one in wanted if one > 0)


def _changes_of(broker: BrokerInterface, specs: Mapping[str, TopicSpec]) -> int:
    """How many topics, partitions and settings there would be more."""
    by_default = any(spec.partitions < 0 for spec in specs.values())
    default = _default_partitions(broker) if by_default else 0
    return sum(
        1 + len(spec.configs) + (default if spec.partitions < 0 else spec.partitions)
        for spec in specs.values()
    )


def _all_refused(request: Any, outcome: Outcome) -> Any:
    return CreateTopicsResponse(
        throttle_time_ms=0,
        topics=[
            _Created(
                name=topic.name,
                topic_id=NO_UUID,
                error_code=error_code(outcome.error),
                error_message=error_message(outcome.error, outcome.detail),
                num_partitions=-1,
                replication_factor=-1,
                configs=[],
            )
            for topic in request.topics
        ],
    )


def _default_partitions(broker: BrokerInterface) -> int:
    node = Resource(ResourceType.BROKER, str(broker.metadata(()).controller_id))
    (default,) = broker.describe_configs({node: ["num.partitions"]})[node].entries
    return int(default.value or 1)


def _beyond_quota(
    broker: BrokerInterface, specs: dict[str, TopicSpec], mutations: Mutations, strict: bool
) -> dict[str, Outcome]:
    """Topics beyond the client's quota are taken out of ``specs``; only topics that could be created
    count."""
    possible = broker.create_topics(specs, validate_only=True)
    sizes = _planned(broker, {name: specs[name] for name, one in possible.items() if not one.error}, False)
    refused = [name for name, one in sizes.items() if not mutations.may(one.partitions, strict)]
    for name in refused:
        del specs[name]
    return dict.fromkeys(refused, BEYOND_QUOTA)


def _entry(entry: ConfigEntry) -> Any:
    return _Created.CreatableTopicConfigs(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
    )


class _Made(NamedTuple):
    """A topic that was created, or could be."""

    topic_id: UUID
    partitions: int
    configs: Sequence[ConfigEntry]


_NOT_MADE = _Made(NO_UUID, -1, ())


def _made(broker: BrokerInterface, specs: Mapping[str, TopicSpec], with_configs: bool) -> dict[str, _Made]:
    resources = {Resource(ResourceType.TOPIC, name): None for name in (specs if with_configs else ())}
    configs = {resource.name: one.entries for resource, one in broker.describe_configs(resources).items()}
    return {
        name: _Made(topic.topic_id, len(topic.partitions), configs.get(name, ()))
        for name, topic in broker.metadata(list(specs)).topics.items()
        if topic.error is None
    }


def _planned(broker: BrokerInterface, specs: Mapping[str, TopicSpec], with_configs: bool) -> dict[str, _Made]:
    default = _default_partitions(broker)
    return {
        name: _Made(
            uuid4(),  # as in Kafka, where it is not yet known that nothing is to be created
            spec.partitions if spec.partitions > 0 else default,
            broker.planned_configs(spec.configs) if with_configs else (),
        )
        for name, spec in specs.items()
    }


def _check(topic: Any, node: int, exists: bool) -> Outcome:
    if exists:
        return Outcome(TopicAlreadyExistsError, f"Topic '{topic.name}' already exists.")
    empty = [config.name for config in topic.configs or () if config.value is None]
    if empty:
        detail = f"Null value not supported for topic configs: {', '.join(empty)}"
        return Outcome(InvalidConfigurationError, detail)
    if not topic.assignments:
        if topic.replication_factor not in (-1, 1):
            return Outcome(
                InvalidReplicationFactorError,
                f"Replication factor: {topic.replication_factor} larger than available brokers: 1."
                if topic.replication_factor > 1
                else "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        return Outcome(None)
    if topic.num_partitions != -1 or topic.replication_factor != -1:
        return Outcome(
            InvalidRequestError, "With assignments, partitions and replication factor have to be -1."
        )
    if sorted(one.partition_index for one in topic.assignments) != list(range(len(topic.assignments))):
        return Outcome(
            InvalidReplicationAssignmentError, "Partitions have to be numbered from 0 without gaps."
        )
    if any(list(one.broker_ids) != [node] for one in topic.assignments):
        return Outcome(InvalidReplicationAssignmentError, f"The only broker is {node}, with one replica.")
    return Outcome(None)


def delete_topics(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """By name, or from version 6 on also by id."""
    if version_of(request) < 6 or not request.topics:
        asked = [(name, None) for name in request.topic_names]
    else:
        asked = [(topic.name, topic.topic_id) for topic in request.topics]
    unclear = [one for one in asked if (one[0] is None) == (one[1] in (None, NO_UUID))]
    asked = [one for one in asked if one not in unclear]
    by_id = topic_names(broker, [topic_id for name, topic_id in asked if name is None])
    names = [by_id.get(topic_id or NO_UUID) if name is None else name for name, topic_id in asked]
    twice = {name for name, count in Counter(name for name in names if name is not None).items() if count > 1}
    known = broker.metadata({name for name in names if name and name not in twice}).topics
    ids = {name: topic.topic_id for name, topic in known.items()}
    sizes = {name: len(topic.partitions) for name, topic in known.items() if topic.error is None}
    outcomes: dict[str, Outcome] = {}
    if context.mutations is not None:
        strict = version_of(request) >= 5
        for one, size in sizes.items():
            if not context.mutations.may(size, strict):
                outcomes[one] = BEYOND_QUOTA
    found = dict.fromkeys(name for name in names if name is not None and name not in {*outcomes, *twice})
    outcomes.update(broker.delete_topics(found))
    outcomes.update(dict.fromkeys(twice, Outcome(InvalidRequestError, "Duplicate topic name.")))
    responses = [
        DeleteTopicsResponse.DeletableTopicResult(
            name=name,
            topic_id=topic_id or NO_UUID,
            error_code=error_code(InvalidRequestError),
            error_message="A topic has either a name or an id in a request.",
        )
        for name, topic_id in unclear
    ]
    for name, (_, topic_id) in dict.fromkeys(zip(names, asked, strict=True)):
        error = UnknownTopicIdError if name is None else outcomes[name].error
        responses.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=name,
                topic_id=topic_id or ids.get(name or "", NO_UUID),
                error_code=error_code(error),
                error_message=error_message(error),
            )
        )
    return DeleteTopicsResponse(throttle_time_ms=0, responses=responses)


def create_partitions(broker: BrokerInterface, request: Any, context: Context) -> Any:
    found = broker.metadata([topic.name for topic in request.topics])
    node = found.controller_id
    outcomes: dict[str, Outcome] = {}
    totals: dict[str, int] = {}
    count = Counter(topic.name for topic in request.topics)
    left = CHANGES_PER_REQUEST
    for topic in request.topics:
        name, known = topic.name, found.topics[topic.name]
        added = topic.count - len(known.partitions)
        if count[name] > 1:
            outcomes[name] = Outcome(InvalidRequestError, "Duplicate topic name.")
        elif known.error is not None:
            outcomes[name] = Outcome(UnknownTopicOrPartitionError)
        elif added <= 0:
            detail = f"The topic has {len(known.partitions)} partitions already."
            outcomes[name] = Outcome(InvalidPartitionsError, detail)
        elif topic.assignments is not None and (
            len(topic.assignments) != added
            or any(list(one.broker_ids) != [node] for one in topic.assignments)
        ):
            detail = f"{added} partitions are added, each with one replica on broker {node}."
            outcomes[name] = Outcome(InvalidReplicationAssignmentError, detail)
        elif context.mutations is not None and not context.mutations.may(added, version_of(request) >= 3):
            outcomes[name] = BEYOND_QUOTA
        elif added > left:  # as in Kafka
            outcomes[name] = Outcome(UnknownError)
        else:
            left -= added
            totals[name] = topic.count
    if request.validate_only:
        outcomes.update(dict.fromkeys(totals, Outcome(None)))
    else:
        outcomes.update(broker.create_partitions(totals))
    return CreatePartitionsResponse(
        throttle_time_ms=0,
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=name,
                error_code=error_code(outcome.error),
                error_message=error_message(outcome.error, outcome.detail),
            )
            for name, outcome in outcomes.items()
        ],
    )


def describe_topic_partitions(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The partitions of topics in the order of their names, one page for each request."""
    names = sorted(topic.name for topic in request.topics)
    start = request.cursor
    # As in Kafka, nothing of a wrong request is answered.
    if start is not None and (start.partition_index < 0 or (names and start.topic_name not in names)):
        return _page([_undescribed(topic.name, InvalidRequestError) for topic in request.topics])
    if not all(names):
        return _page([_undescribed(topic.name, UnknownError) for topic in request.topics])
    metadata = broker.metadata(names or None)
    left = min(max(request.response_partition_limit, 1), 2000)
    topics: list[Any] = []
    for name in sorted(metadata.topics):
        topic = metadata.topics[name]
        first = 0
        if start is not None:
            if name < start.topic_name:
                continue
            first = start.partition_index if name == start.topic_name else 0
        partitions = topic.partitions[first : first + left]
        if left <= 0 or (topic.partitions[first:] and not partitions):
            return _page(topics, name, first)
        topics.append(_described(topic, partitions, metadata.controller_id))
        left -= len(partitions)
        if first + len(partitions) < len(topic.partitions):
            return _page(topics, name, first + len(partitions))
    return _page(topics)


def _page(topics: list[Any], name: str | None = None, first: int = 0) -> Any:
    cursor = None
    if name is not None:
        cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=first)
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=topics, next_cursor=cursor)


def _undescribed(name: str, error: type[BrokerResponseError]) -> Any:
    return _Described(
        error_code=error.errno,
        name=name,
        topic_id=NO_UUID,
        is_internal=False,
        partitions=[],
        topic_authorized_operations=-(2**31),
    )


def _described(topic: TopicMetadata, partitions: Any, node: int) -> Any:
    partition_class = _Described.DescribeTopicPartitionsResponsePartition
    more: dict[str, Any] = {"eligible_leader_replicas": [], "last_known_elr": []}
    return _Described(
        **topic_fields(topic, partition_class, node, partitions, **more),
        topic_authorized_operations=sum(1 << int(operation) for operation in TOPIC_OPERATIONS),
    )
