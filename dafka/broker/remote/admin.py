"""The administrative part of a remote broker: configurations, and records on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.errors import (
    KafkaError,
    NetworkExceptionError,
)
from kafka.protocol.admin import (
    AlterConfigsRequest,
    DeleteRecordsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
)

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.admin import (
    AdminInterface,
    ConfigChange,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    DeletedRecords,
    DescribedConfigs,
    LogDirectory,
    Resource,
    ResourceType,
)
from dafka.broker.interface.groups import TopicPartition
from dafka.broker.interface.outcome import Outcome
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.controller import ask_controller, broker_named, failed
from dafka.broker.remote.leaders import ask_leaders
from dafka.broker.remote.nodes import Node


class RemoteAdmin(AdminInterface):
    """Configurations and disks of a cluster's brokers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # -- configuration --------------------------------------------------------------------------

    def describe_configs(
        self, resources: Mapping[Resource, Iterable[str] | None]
    ) -> dict[Resource, DescribedConfigs]:
        answers: dict[Resource, DescribedConfigs] = {}
        for node_name, some in _by_broker(resources).items():
            answers.update(self._describe_configs(node_name, {one: resources[one] for one in some}))
        return answers

    def _describe_configs(
        self, node_name: str, resources: Mapping[Resource, Iterable[str] | None]
    ) -> dict[Resource, DescribedConfigs]:
        resource_class = DescribeConfigsRequest.DescribeConfigsResource
        request = DescribeConfigsRequest(
            resources=[
                resource_class(
                    resource_type=int(one.type),
                    resource_name=one.name,
                    configuration_keys=None if keys is None else list(keys),
                )
                for one, keys in resources.items()
            ],
            include_synonyms=True,
            include_documentation=True,
        )
        try:
            if node_name:
                response = self._cluster.ask(broker_named(self._cluster, node_name), request)
            else:
                response = self._cluster.ask_any(request)
        except KafkaError as error:
            return dict.fromkeys(resources, DescribedConfigs(failed(error), (), str(error)))
        found = {
            Resource(one.resource_type, one.resource_name): DescribedConfigs(
                error_of(one.error_code), [_entry(config) for config in one.configs], one.error_message or ""
            )
            for one in response.results
        }
        missing = DescribedConfigs(NetworkExceptionError, (), "the broker has not answered for it")
        return {one: found.get(one, missing) for one in resources}

    def alter_configs(
        self,
        changes: Mapping[Resource, Sequence[ConfigChange]],
        *,
        replace: bool = False,
        validate_only: bool = False,
    ) -> dict[Resource, Outcome]:
        request_class: Any = AlterConfigsRequest if replace else IncrementalAlterConfigsRequest
        config_class = request_class.AlterConfigsResource.AlterableConfig
        answers: dict[Resource, Outcome] = {}
        for node_name, some in _by_broker(changes).items():
            resources = []
            for one in some:
                configs = []
                for change in changes[one]:
                    fields = {} if replace else {"config_operation": int(change.operation)}
                    configs.append(config_class(name=change.name, value=change.value, **fields))
                resources.append(
                    request_class.AlterConfigsResource(
                        resource_type=int(one.type), resource_name=one.name, configs=configs
                    )
                )
            request = request_class(resources=resources, validate_only=validate_only)
            answers.update(
                ask_controller(
                    self._cluster,
                    request,
                    some,
                    lambda response: {
                        Resource(one.resource_type, one.resource_name): one for one in response.responses
                    },
                    node_name,
                )
            )
        return answers

    # -- records on disk ------------------------------------------------------------------------

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, DeletedRecords]:
        topic_class = DeleteRecordsRequest.DeleteRecordsTopic

        def ask(node: Node, partitions: list[TopicPartition]) -> dict[TopicPartition, DeletedRecords]:
            topics: dict[str, Any] = {}
            for name, number in partitions:
                topic = topics.setdefault(name, topic_class(name=name, partitions=[]))
                one = topic_class.DeleteRecordsPartition(partition_index=number, offset=offsets[name, number])
                topic.partitions.append(one)
            timeout_ms = int(self._cluster.request_timeout * 1000)
            request = DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)
            response = self._cluster.ask(node, request, wait=0.0)
            return {
                (topic.name, one.partition_index): DeletedRecords(error_of(one.error_code), one.low_watermark)
                for topic in response.topics
                for one in topic.partitions
            }

        return ask_leaders(self._cluster, offsets, ask, DeletedRecords)

    def log_directories(self, topics: Iterable[str] | None = None) -> list[LogDirectory]:
        """The folders of all brokers. Raises KafkaError: one of them cannot be asked."""
        wanted = None
        if topics is not None:
            described = self._cluster.refresh(topics)
            wanted = [
                DescribeLogDirsRequest.DescribableLogDirTopic(
                    topic=topic.name, partitions=[one.partition_index for one in topic.partitions]
                )
                for topic in described.topics
            ]
        directories = []
        for node in self._cluster.nodes:
            response = self._cluster.ask(node, DescribeLogDirsRequest(topics=wanted), wait=0.0)
            for one in response.results:
                sizes = {
                    (topic.name, partition.partition_index): partition.partition_size
                    for topic in one.topics
                    for partition in topic.partitions
                }
                directories.append(
                    LogDirectory(
                        error_of(one.error_code), one.log_dir, sizes, one.total_bytes, one.usable_bytes
                    )
                )
        return directories


def _by_broker(resources: Iterable[Resource]) -> dict[str, list[Resource]]:
    """Resources by the id of the broker that must be asked, "" for those that any may answer for."""
    brokers: dict[str, list[Resource]] = {}
    for one in resources:
        brokers.setdefault(one.name if one.type == ResourceType.BROKER else "", []).append(one)
    return brokers


def _entry(config: Any) -> ConfigEntry:
    source = config.config_source
    if source is None or source < 0:  # version 0 only knows whether it is the default
        source = ConfigSource.DEFAULT if config.is_default else ConfigSource.TOPIC
    synonyms = [ConfigSynonym(one.name, one.value, one.source) for one in config.synonyms or ()]
    return ConfigEntry(
        config.name,
        config.value,
        source,
        config.read_only,
        config.is_sensitive,
        config.config_type or ConfigType.UNKNOWN,
        config.documentation,
        synonyms,
    )
