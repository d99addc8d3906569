"""The topics of a remote broker: metadata from any broker, changes by the controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from kafka.errors import LeaderNotAvailableError, for_code
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.records import NO_EPOCH
from dafka.broker.interface.topics import (
    Metadata,
    PartitionMetadata,
    TopicInterface,
    TopicMetadata,
    TopicSpec,
)
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.controller import ask_controller
from dafka.broker.remote.retrying import attempts

_NO_ID = UUID(int=0)


class RemoteTopics(TopicInterface):
    """Topics of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def metadata(self, topics: Iterable[str] | None, create: bool = False) -> Metadata:
        """See the interface; ``PartitionMetadata.address`` is empty. Raises KafkaConnectionError."""
        names = None if topics is None else list(topics)
        for _ in attempts():
            response = self._cluster.refresh(names, create)
            if not any(one.error_code == LeaderNotAvailableError.errno for one in response.topics):
                break
        brokers = [(one.node_id, one.host, one.port) for one in response.brokers]
        described = {one.name: _described(one) for one in response.topics}
        return Metadata(response.cluster_id or "", response.controller_id, brokers, described)

    def create_topics(
        self,
        topics: Mapping[str, TopicSpec],
        *,
        validate_only: bool = False,
    ) -> dict[str, Outcome]:
        topic_class = CreateTopicsRequest.CreatableTopic
        request = CreateTopicsRequest(
            topics=[
                topic_class(
                    name=name,
                    num_partitions=spec.partitions,
                    replication_factor=-1,
                    assignments=[],
                    configs=[
                        topic_class.CreatableTopicConfig(name=key, value=value)
                        for key, value in spec.configs.items()
                    ],
                )
                for name, spec in topics.items()
            ],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )
        answers = ask_controller(
            self._cluster, request, topics, lambda response: {one.name: one for one in response.topics}
        )
        self._cluster.forget_leaders(topics)
        return answers

    def create_partitions(self, totals: Mapping[str, int]) -> dict[str, Outcome]:
        topic_class = CreatePartitionsRequest.CreatePartitionsTopic
        request = CreatePartitionsRequest(
            topics=[topic_class(name=name, count=total, assignments=None) for name, total in totals.items()],
            timeout_ms=self._timeout_ms,
            validate_only=False,
        )
        answers = ask_controller(
            self._cluster, request, totals, lambda response: {one.name: one for one in response.results}
        )
        self._cluster.forget_leaders(totals)
        return answers

    def delete_topics(self, names: Iterable[str]) -> dict[str, Outcome]:
        wanted = list(names)
        request = DeleteTopicsRequest(topic_names=wanted, timeout_ms=self._timeout_ms)
        answers = ask_controller(
            self._cluster, request, wanted, lambda response: {one.name: one for one in response.responses}
        )
        self._cluster.forget_leaders(wanted)
        return answers

    @property
    def _timeout_ms(self) -> int:
        return int(self._cluster.request_timeout * 1000)


def _described(topic: Any) -> TopicMetadata:
    error = for_code(topic.error_code) if topic.error_code else None
    partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
    return TopicMetadata(
        topic.name,
        topic.topic_id or _NO_ID,
        error,
        [
            PartitionMetadata(
                one.partition_index,
                "",
                True,
                NO_EPOCH if one.leader_epoch is None else one.leader_epoch,
                None if one.leader_id < 0 else one.leader_id,
            )
            for one in partitions
            if error is None
        ],
    )
