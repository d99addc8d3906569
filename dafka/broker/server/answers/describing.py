"""Answers that describe the cluster, and the partitions of topics page by page."""

from __future__ import annotations

from typing import Any

from kafka.errors import UnsupportedEndpointTypeError
from kafka.protocol.admin.cluster import DescribeClusterResponse
from kafka.protocol.admin.topics import DescribeTopicPartitionsResponse

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface, TopicMetadata
from dafka.broker.server.answers.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from dafka.broker.server.context import Context

_Described = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


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
        error_code=error_code(topic.error),
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=False,
        partitions=[
            _Described.DescribeTopicPartitionsResponsePartition(
                error_code=0,
                partition_index=one.number,
                leader_id=node,
                leader_epoch=one.leader_epoch,
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
        error_code=error_code(error),
        error_message=error_message(error),
        endpoint_type=1,
        cluster_id=found.cluster_id,
        controller_id=found.controller_id,
        brokers=[
            node(broker_id=number, host=host, port=port, rack=None, is_fenced=False)
            for number, host, port in found.brokers
        ],
        authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else None,
    )
