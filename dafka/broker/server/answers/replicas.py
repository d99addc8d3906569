"""Answers about replicas and their folders. Each partition has one replica, in the broker's only folder."""

from __future__ import annotations

from typing import Any

from kafka.errors import (
    ElectionNotNeededError,
    InvalidReplicationAssignmentError,
    InvalidRequestError,
    LogDirNotFoundError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin.cluster import AlterReplicaLogDirsResponse, DescribeLogDirsResponse
from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsResponse,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.server.answers.naming import by_topic
from dafka.broker.server.context import Context
from dafka.hub.turns import Pace

_Elected = ElectLeadersResponse.ReplicaElectionResult
_Folder = DescribeLogDirsResponse.DescribeLogDirsResult
_Moved = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Reassigned = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


def elect_leaders(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """No election is needed: every partition has its only possible leader."""
    known_type = request.election_type in (None, 0, 1) or request.topic_partitions == []
    if (
        request.topic_partitions is None and known_type
    ):  # those that need none are left out, and their topics are not
        every = list(broker.metadata(None).topics)
        results = [_Elected(topic=name, partition_result=[]) for name in Pace().over(every)]
        return ElectLeadersResponse(throttle_time_ms=0, error_code=0, replica_election_results=results)
    asked = request.topic_partitions or ()
    found = broker.metadata([topic.topic for topic in asked]).topics
    results = []
    for topic in asked:
        known = len(found[topic.topic].partitions)
        partitions = []
        for number in topic.partitions:
            there = 0 <= number < known
            error: Error = ElectionNotNeededError if there else UnknownTopicOrPartitionError
            if not known_type:
                error = InvalidRequestError
            partitions.append(
                _Elected.PartitionResult(
                    partition_id=number, error_code=error_code(error), error_message=error_message(error)
                )
            )
        results.append(_Elected(topic=topic.topic, partition_result=partitions))
    return ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=0 if known_type else InvalidRequestError.errno,
        replica_election_results=results,
    )


def alter_partition_reassignments(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Partitions can only stay on this broker, and no reassignment is in progress."""
    found = broker.metadata([topic.name for topic in request.topics])
    responses = []
    for topic in request.topics:
        known = len(found.topics[topic.name].partitions)
        partitions = []
        for one in topic.partitions:
            number = one.partition_index
            error, detail = _check_reassignment(one.replicas, found.controller_id)
            if not 0 <= number < known:
                error, detail = UnknownTopicOrPartitionError, f"There is no partition {topic.name}-{number}."
            partitions.append(
                _Reassigned.ReassignablePartitionResponse(
                    partition_index=number,
                    error_code=error_code(error),
                    error_message=error_message(error, detail),
                )
            )
        responses.append(_Reassigned(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        # Of nothing Kafka says what is so by default.
        allow_replication_factor_change=request.allow_replication_factor_change or not request.topics,
        error_code=0,
        error_message=None,
        responses=responses,
    )


def _check_reassignment(replicas: list[int] | None, node: int) -> tuple[Error | None, str]:
    if replicas is None:
        return NoReassignmentInProgressError, "No reassignment is in progress."
    if list(replicas) != [node]:
        return InvalidReplicationAssignmentError, f"The only broker is {node}, with one replica."
    return None, ""


def list_partition_reassignments(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """No reassignment is in progress: there is no other broker."""
    return ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=0, error_message=None, topics=[])


def describe_log_dirs(broker: BrokerInterface, request: Any, context: Context) -> Any:
    wanted = None
    topics = None
    if request.topics is not None:
        topics = [topic.topic for topic in request.topics]
        wanted = {(topic.topic, number) for topic in request.topics for number in topic.partitions}
    results = []
    for folder in broker.log_directories(topics):
        sizes = {key: size for key, size in folder.sizes.items() if wanted is None or key in wanted}
        results.append(
            _Folder(
                error_code=error_code(folder.error),
                log_dir=folder.path,
                topics=[
                    _Folder.DescribeLogDirsTopic(
                        name=name,
                        partitions=[
                            _Folder.DescribeLogDirsTopic.DescribeLogDirsPartition(
                                partition_index=number, partition_size=size, offset_lag=0, is_future_key=False
                            )
                            for number, size in partitions
                        ],
                    )
                    for name, partitions in by_topic(sizes).items()
                ],
                total_bytes=folder.total_bytes,
                usable_bytes=folder.usable_bytes,
                is_cordoned=False,
            )
        )
    return DescribeLogDirsResponse(throttle_time_ms=0, error_code=0, results=results)


def alter_replica_log_dirs(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Replicas can only stay in the folder of the broker."""
    paths = {folder.path for folder in broker.log_directories([])}
    names = {topic.name for folder in request.dirs for topic in folder.topics}
    topics = broker.metadata(names).topics
    results: dict[str, dict[int, Error | None]] = {}  # of a partition that is named twice: the last one
    for folder in request.dirs:
        for topic in folder.topics:
            known = len(topics[topic.name].partitions)
            for number in topic.partitions:
                error: Error | None = None if 0 <= number < known else UnknownTopicOrPartitionError
                if folder.path not in paths:
                    error = LogDirNotFoundError
                results.setdefault(topic.name, {})[number] = error
    partition = _Moved.AlterReplicaLogDirPartitionResult
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=0,
        results=[
            _Moved(
                topic_name=name,
                partitions=[
                    partition(partition_index=number, error_code=error_code(error))
                    for number, error in some.items()
                ],
            )
            for name, some in results.items()
        ],
    )
