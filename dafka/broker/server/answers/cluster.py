"""Answers about the cluster: DescribeCluster, DescribeQuorum and UpdateFeatures. It has one node."""

from __future__ import annotations

import time
from typing import Any

from kafka.errors import (
    BrokerResponseError,
    InvalidUpdateVersionError,
    MismatchedEndpointTypeError,
    UnknownTopicOrPartitionError,
    UnsupportedEndpointTypeError,
)
from kafka.protocol.admin.cluster import (
    DescribeClusterResponse,
    DescribeQuorumResponse,
    UpdateFeaturesResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.interface.features import FeatureUpdate, UpgradeType
from dafka.broker.server.answers.naming import NO_UUID, version_of
from dafka.broker.server.answers.operations import CLUSTER_OPERATIONS
from dafka.broker.server.context import Context

_QUORUM = "__cluster_metadata"
_FAILED = "The update failed for all features since the following feature had an error:"

_BROKERS, _CONTROLLERS = 1, 2  # endpoint types

_Quorum = DescribeQuorumResponse.TopicData


def describe_cluster(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The brokers. Controllers have no addresses of their own."""
    if request.endpoint_type == _CONTROLLERS:
        return _no_cluster(
            MismatchedEndpointTypeError,
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        return _no_cluster(UnsupportedEndpointTypeError, f"Unsupported endpoint type {request.endpoint_type}")
    found = broker.metadata(())
    node = DescribeClusterResponse.DescribeClusterBroker
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        endpoint_type=_BROKERS,
        cluster_id=found.cluster_id,
        controller_id=found.controller_id,
        brokers=[
            node(broker_id=number, host=host, port=port, rack=None, is_fenced=False)
            for number, host, port in context.brokers(found)
        ],
        authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else None,
    )


def _no_cluster(error: type[BrokerResponseError], message: str) -> Any:
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=error.errno,
        error_message=message,
        endpoint_type=_BROKERS,
        cluster_id="",
        controller_id=-1,
        brokers=[],
    )


def describe_quorum(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The broker is the only voter. It has no metadata log, so all offsets are 0."""
    found = broker.metadata(())
    node, now = found.controller_id, int(time.time() * 1000)
    voter = _Quorum.PartitionData.ReplicaState(
        replica_id=node,
        replica_directory_id=NO_UUID,
        log_end_offset=0,
        last_fetch_timestamp=now,
        last_caught_up_timestamp=now,
    )
    # As in Kafka the one partition that there is has to be asked for alone.
    asked = [(topic.topic_name, one.partition_index) for topic in request.topics for one in topic.partitions]
    is_it = len(request.topics) == 1 and asked == [(_QUORUM, 0)]
    error: Error | None = None if is_it else UnknownTopicOrPartitionError
    topics = [
        _Quorum(
            topic_name=topic.topic_name,
            partitions=[
                _Quorum.PartitionData(
                    partition_index=one.partition_index,
                    error_code=error_code(error),
                    error_message=error_message(error) or "",
                    leader_id=node if is_it else 0,
                    leader_epoch=0,  # of the quorum, whose voter never changes
                    high_watermark=0,
                    current_voters=[voter] if is_it else [],
                    observers=[],
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    listener = DescribeQuorumResponse.Node.Listener
    nodes = [
        DescribeQuorumResponse.Node(
            node_id=number, listeners=[listener(name=context.protocol, host=host, port=port)]
        )
        for number, host, port in context.brokers(found)
        if is_it
    ]
    return DescribeQuorumResponse(error_code=0, error_message="", topics=topics, nodes=nodes)


def update_features(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Version 0 cannot say that a downgrade is meant: as in Kafka its levels only go up."""
    upgrades_only = version_of(request) == 0
    error, detail = broker.update_features(
        {
            update.feature: FeatureUpdate(
                update.max_version_level, UpgradeType.UPGRADE if upgrades_only else update.upgrade_type
            )
            for update in request.feature_updates
        },
        validate_only=bool(request.validate_only),
    )
    if error is InvalidUpdateVersionError:
        detail = f"{_FAILED} {detail}"
    result = UpdateFeaturesResponse.UpdatableFeatureResult
    return UpdateFeaturesResponse(
        throttle_time_ms=0,
        error_code=error_code(error),
        error_message=error_message(error, detail),
        results=[
            result(feature=update.feature, error_code=0, error_message="NONE")
            for update in request.feature_updates
            if error is None
        ],
    )
