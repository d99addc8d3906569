"""Answers about the cluster: Metadata, DescribeCluster, FindCoordinator, DescribeTopicPartitions."""

from __future__ import annotations

from typing import Any

from kafka.errors import InvalidRequestError, UnknownTopicIdError, UnsupportedEndpointTypeError
from kafka.protocol.admin import (
    ACLOperation,
    DescribeClusterResponse,
    DescribeTopicPartitionsResponse,
)
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorResponse, MetadataResponse

from dafka.broker.interface import BrokerInterface, TopicMetadata
from dafka.broker.wire.context import Context
from dafka.broker.wire.naming import NO_UUID, code, message, topic_names, version_of

# What everybody may do, there being no authorizer: what Kafka reports then.
CLUSTER_OPERATIONS = frozenset(
    {
        ACLOperation.CREATE,
        ACLOperation.ALTER,
        ACLOperation.DESCRIBE,
        ACLOperation.CLUSTER_ACTION,
        ACLOperation.DESCRIBE_CONFIGS,
        ACLOperation.ALTER_CONFIGS,
        ACLOperation.IDEMPOTENT_WRITE,
    }
)
TOPIC_OPERATIONS = frozenset(
    {
        ACLOperation.READ,
        ACLOperation.WRITE,
        ACLOperation.CREATE,
        ACLOperation.DELETE,
        ACLOperation.ALTER,
        ACLOperation.DESCRIBE,
        ACLOperation.DESCRIBE_CONFIGS,
        ACLOperation.ALTER_CONFIGS,
    }
)
LEADER_EPOCH = 0  # a broker alone leads every partition from its beginning to its end

_Topic = MetadataResponse.MetadataResponseTopic
_Partition = _Topic.MetadataResponsePartition
_Described = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


def metadata(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Brokers, and topics by name or by id. Unlike Kafka a name that is asked for twice comes once."""
    version = version_of(request)
    create = bool(request.allow_auto_topic_creation) if version >= 4 else True
    with_operations = bool(request.include_topic_authorized_operations)
    unknown: list[Any] = []
    if request.topics is None or (version == 0 and not request.topics):
        found = broker.metadata(None)
    else:
        names = [topic.name for topic in request.topics if topic.name is not None]
        ids = [topic.topic_id for topic in request.topics if topic.name is None]
        by_id = topic_names(broker, ids)
        unknown = [one for one in ids if one not in by_id]
        found = broker.metadata(dict.fromkeys([*names, *(by_id[one] for one in ids if one in by_id)]), create)
    node = found.controller_id
    topics = [_topic(topic, node, with_operations) for topic in found.topics.values()]
    topics += [
        _Topic(
            error_code=UnknownTopicIdError.errno,
            name=None if version >= 12 else "",
            topic_id=one or NO_UUID,
            partitions=[],
            authorized_operations=None,
        )
        for one in unknown
    ]
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=number, host=host, port=port, rack=None)
            for number, host, port in found.brokers
        ],
        cluster_id=found.cluster_id,
        controller_id=node,
        topics=topics,
        authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else None,
        error_code=0,
    )


def _topic(topic: TopicMetadata, node: int, with_operations: bool) -> Any:
    nodes = [node]
    return _Topic(
        error_code=code(topic.error),
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=False,
        partitions=[
            _Partition(
                error_code=0,
                partition_index=one.number,
                leader_id=node,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=nodes,
                isr_nodes=nodes,
                offline_replicas=[],
            )
            for one in topic.partitions
        ],
        authorized_operations=TOPIC_OPERATIONS if with_operations else None,
    )


def describe_topic_partitions(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Partitions of topics in the order of their names, page by page."""
    names = sorted(topic.name for topic in request.topics)
    start = request.cursor
    metadata = broker.metadata(names or None)
    left = min(max(request.response_partition_limit, 1), 2000)
    topics: list[Any] = []
    for name in sorted(metadata.topics):
        topic = metadata.topics[name]
        first = 0
        if start is not None:
            if name < start.topic_name:
                continue
            first = max(start.partition_index, 0) if name == start.topic_name else 0
        partitions = topic.partitions[first : first + left]
        if left <= 0 or (topic.partitions[first:] and not partitions):
            return _page(topics, name, first)
        topics.append(_described(topic, partitions, metadata.controller_id))
        left -= len(partitions)
        if first + len(partitions) < len(topic.partitions):
            return _page(topics, name, first + len(partitions))
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=topics, next_cursor=None)


def _page(topics: list[Any], name: str, first: int) -> Any:
    cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=first)
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=topics, next_cursor=cursor)


def _described(topic: TopicMetadata, partitions: Any, node: int) -> Any:
    nodes = [node]
    return _Described(
        error_code=code(topic.error),
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=False,
        partitions=[
            _Described.DescribeTopicPartitionsResponsePartition(
                error_code=0,
                partition_index=one.number,
                leader_id=node,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=nodes,
                isr_nodes=nodes,
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=[],
            )
            for one in partitions
        ],
        topic_authorized_operations=sum(1 << int(operation) for operation in TOPIC_OPERATIONS),
    )


def describe_cluster(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The brokers. Controllers as such (endpoint type 2) have no address of their own here."""
    error = None if request.endpoint_type == 1 else UnsupportedEndpointTypeError
    found = broker.metadata(())
    node = DescribeClusterResponse.DescribeClusterBroker
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=code(error),
        error_message=message(error),
        endpoint_type=1,
        cluster_id=found.cluster_id,
        controller_id=found.controller_id,
        brokers=[
            node(broker_id=number, host=host, port=port, rack=None, is_fenced=False)
            for number, host, port in found.brokers
        ],
        authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else None,
    )


def find_coordinator(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """This broker is the coordinator of every group and every transactional id."""
    version = version_of(request)
    number, host, port = broker.metadata(()).brokers[0]
    known = version == 0 or request.key_type in (CoordinatorType.GROUP, CoordinatorType.TRANSACTION)
    error = None if known else InvalidRequestError
    if error is not None:
        number, host, port = -1, "", -1
    if version < 4:
        return FindCoordinatorResponse(
            throttle_time_ms=0,
            error_code=code(error),
            error_message=message(error),
            node_id=number,
            host=host,
            port=port,
        )
    return FindCoordinatorResponse(
        throttle_time_ms=0,
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key,
                node_id=number,
                host=host,
                port=port,
                error_code=code(error),
                error_message=message(error),
            )
            for key in request.coordinator_keys
        ],
    )
