"""Consumer groups whose assignment their coordinator computes, in another process or in Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaError

from dafka.broker.codec.errors import error_of
from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from dafka.broker.interface.consumer_groups import (
    ConsumerGroupDescription,
    ConsumerGroupInterface,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    ConsumerMember,
    Partitions,
)
from dafka.broker.remote.cluster import GROUP, Cluster
from dafka.broker.remote.connection import CLIENT_ID
from dafka.broker.remote.coordinators import ask_coordinator, describe_each, unavailable

_CLASSIC = 0  # the protocol of a member


class RemoteConsumerGroups(ConsumerGroupInterface):
    """Consumer groups of a cluster. Raises IncompatibleBrokerVersion: its brokers do not know them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def consumer_group_heartbeat(self, group: str, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        owned = request.owned
        timeout = request.rebalance_timeout
        topic_class = ConsumerGroupHeartbeatRequest.TopicPartitions
        message = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            instance_id=request.instance_id,
            rack_id=request.rack,
            rebalance_timeout_ms=-1 if timeout is None else min(int(timeout * 1000), 2**31 - 1),
            subscribed_topic_names=None if request.topics is None else list(request.topics),
            subscribed_topic_regex=request.regex,
            server_assignor=request.assignor,
            topic_partitions=None
            if owned is None
            else [
                topic_class(topic_id=topic, partitions=sorted(numbers)) for topic, numbers in owned.items()
            ],
        )
        try:
            response = ask_coordinator(
                self._cluster,
                GROUP,
                group,
                message,
                lambda response: [response.error_code],
                lowest=1 if request.regex is not None else 0,
                client_id=request.client_id or CLIENT_ID,
            )
        except IncompatibleBrokerVersion:
            raise
        except KafkaError as error:
            return ConsumerHeartbeatAnswer(unavailable(error), str(error))
        assignment = response.assignment
        return ConsumerHeartbeatAnswer(
            error_of(response.error_code),
            response.error_message,
            response.member_id or request.member_id,
            response.member_epoch,
            response.heartbeat_interval_ms / 1000,
            None if assignment is None else _partitions(assignment),
        )

    def describe_consumer_groups(self, groups: Iterable[str]) -> dict[str, ConsumerGroupDescription]:
        return describe_each(
            self._cluster,
            groups,
            lambda group: ConsumerGroupDescribeRequest(
                group_ids=[group], include_authorized_operations=False
            ),
            _description,
            ConsumerGroupDescription,
        )


def _description(found: Any) -> ConsumerGroupDescription:
    shares = [share for one in found.members for share in (one.assignment, one.target_assignment)]
    return ConsumerGroupDescription(
        error_of(found.error_code),
        found.error_message,
        found.group_state,
        found.group_epoch,
        found.assignment_epoch,
        found.assignor_name,
        [
            ConsumerMember(
                one.member_id,
                one.instance_id,
                one.rack_id,
                one.member_epoch,
                one.client_id,
                one.client_host,
                one.subscribed_topic_names,
                one.subscribed_topic_regex or None,
                _partitions(one.assignment),
                _partitions(one.target_assignment),
                one.member_type == _CLASSIC,
            )
            for one in found.members
        ],
        {topic.topic_id: topic.topic_name for share in shares for topic in share.topic_partitions},
    )


def _partitions(assignment: Any) -> Partitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in assignment.topic_partitions}
