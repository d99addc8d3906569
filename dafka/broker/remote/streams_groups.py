"""Groups of Kafka Streams of a remote broker. Programs in Python look at them; the members are Java's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaError

from dafka.broker.codec.errors import error_of
from dafka.broker.codec.messages.streams_group import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from dafka.broker.interface.streams_groups import (
    Endpoint,
    InternalTopic,
    StreamsGroupDescription,
    StreamsGroupInterface,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
    StreamsMember,
    Subtopology,
    TaskShare,
    Topology,
)
from dafka.broker.remote.cluster import GROUP, Cluster
from dafka.broker.remote.connection import CLIENT_ID
from dafka.broker.remote.coordinators import ask_coordinator, describe_each, unavailable

_LEAVE = -1


class RemoteStreamsGroups(StreamsGroupInterface):
    """Streams groups of a cluster. Raises IncompatibleBrokerVersion: its brokers do not know them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def streams_group_heartbeat(self, group: str, request: StreamsHeartbeat) -> StreamsHeartbeatAnswer:
        """Only to take a member out. Raises NotImplementedError for members of this process."""
        if request.member_epoch != _LEAVE:
            raise NotImplementedError("a remote broker's Streams groups have no members in Python")
        message = StreamsGroupHeartbeatRequest(
            group_id=group,
            member_id=request.member_id,
            member_epoch=_LEAVE,
            endpoint_information_epoch=request.endpoint_epoch,
            shutdown_application=request.shutdown,
        )
        try:
            response = ask_coordinator(
                self._cluster,
                GROUP,
                group,
                message,
                lambda response: [response.error_code],
                client_id=request.client_id or CLIENT_ID,
            )
        except IncompatibleBrokerVersion:
            raise
        except KafkaError as error:
            return StreamsHeartbeatAnswer(unavailable(error), str(error))
        return StreamsHeartbeatAnswer(
            error_of(response.error_code), response.error_message, response.member_id, response.member_epoch
        )

    def describe_streams_groups(self, groups: Iterable[str]) -> dict[str, StreamsGroupDescription]:
        return describe_each(
            self._cluster,
            groups,
            lambda group: StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False),
            _description,
            StreamsGroupDescription,
        )


def _description(found: Any) -> StreamsGroupDescription:
    return StreamsGroupDescription(
        error_of(found.error_code),
        found.error_message,
        found.group_state,
        found.group_epoch,
        found.assignment_epoch,
        None if found.topology is None else _topology(found.topology),
        [_member(one) for one in found.members],
    )


def _topology(told: Any) -> Topology:
    return Topology(
        told.epoch,
        [
            Subtopology(
                one.subtopology_id,
                one.source_topics,
                (),
                [_internal(topic) for topic in one.state_changelog_topics],
                one.repartition_sink_topics,
                [_internal(topic) for topic in one.repartition_source_topics],
            )
            for one in told.subtopologies or ()
        ],
    )


def _internal(topic: Any) -> InternalTopic:
    configs = {config.key: config.value for config in topic.topic_configs}
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _member(one: Any) -> StreamsMember:
    endpoint = one.user_endpoint
    return StreamsMember(
        one.member_id,
        one.member_epoch,
        one.rack_id,
        one.client_id,
        one.client_host,
        one.topology_epoch,
        one.process_id,
        None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        {tag.key: tag.value for tag in one.client_tags},
        _share(one.assignment),
        _share(one.target_assignment),
    )


def _share(share: Any) -> TaskShare:
    return TaskShare(
        *(
            {one.subtopology_id: frozenset(one.partitions) for one in tasks}
            for tasks in (share.active_tasks, share.standby_tasks, share.warmup_tasks)
        )
    )
