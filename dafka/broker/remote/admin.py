"""The administrative part of a remote broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any

import gevent
from kafka.errors import (
    BrokerResponseError,
    KafkaError,
    NetworkExceptionError,
    NotControllerError,
)
from kafka.protocol.admin import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
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
    Outcome,
    Resource,
    ResourceType,
)
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.remote.cluster import LOST, Cluster
from dafka.broker.remote.leaders import ask_leaders
from dafka.broker.remote.limits import RETRIES, RETRY_BACKOFF
from dafka.broker.remote.nodes import Node


class RemoteAdmin(AdminInterface):
    """Administration of a cluster; its class has a ``cluster``.

    A change whose connection is lost is not repeated: NetworkExceptionError says that it may have been made.
    """

    cluster: Cluster

    # -- topics ---------------------------------------------------------------------------------

    def create_topics(
        self,
        topics: Mapping[str, TopicSpec],
        *,
        validate_only: bool = False,
        details: MutableMapping[str, str] | None = None,
    ) -> dict[str, Error | None]:
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
        answers = self._change(request, topics, lambda response: {one.name: one for one in response.topics})
        self.cluster.forget_leaders(topics)
        if details is not None:
            details.update({name: outcome.detail for name, outcome in answers.items() if outcome.detail})
        return {name: outcome.error for name, outcome in answers.items()}

    def create_partitions(self, totals: Mapping[str, int]) -> dict[str, Error | None]:
        topic_class = CreatePartitionsRequest.CreatePartitionsTopic
        request = CreatePartitionsRequest(
            topics=[topic_class(name=name, count=total, assignments=None) for name, total in totals.items()],
            timeout_ms=self._timeout_ms,
            validate_only=False,
        )
        answers = self._change(request, totals, lambda response: {one.name: one for one in response.results})
        self.cluster.forget_leaders(totals)
        return {name: outcome.error for name, outcome in answers.items()}

    def delete_topics(self, names: Iterable[str]) -> dict[str, Error | None]:
        wanted = list(names)
        request = DeleteTopicsRequest(topic_names=wanted, timeout_ms=self._timeout_ms)
        answers = self._change(
            request, wanted, lambda response: {one.name: one for one in response.responses}
        )
        self.cluster.forget_leaders(wanted)
        return {name: outcome.error for name, outcome in answers.items()}

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
                response = self.cluster.ask(self._broker(node_name), request)
            else:
                response = self.cluster.ask_any(request)
        except KafkaError as error:
            return dict.fromkeys(resources, DescribedConfigs(_failed(error), (), str(error)))
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
                self._change(
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
            request = DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=self._timeout_ms)
            response = self.cluster.ask(node, request, wait=0.0)
            return {
                (topic.name, one.partition_index): DeletedRecords(error_of(one.error_code), one.low_watermark)
                for topic in response.topics
                for one in topic.partitions
            }

        return ask_leaders(self.cluster, offsets, ask, DeletedRecords)

    def log_directories(self, topics: Iterable[str] | None = None) -> list[LogDirectory]:
        """The folders of all brokers. Raises KafkaError: one of them cannot be asked."""
        wanted = None
        if topics is not None:
            described = self.cluster.refresh(topics)
            wanted = [
                DescribeLogDirsRequest.DescribableLogDirTopic(
                    topic=topic.name, partitions=[one.partition_index for one in topic.partitions]
                )
                for topic in described.topics
            ]
        directories = []
        for node in self.cluster.nodes:
            response = self.cluster.ask(node, DescribeLogDirsRequest(topics=wanted), wait=0.0)
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

    # -- inside ---------------------------------------------------------------------------------

    @property
    def _timeout_ms(self) -> int:
        return int(self.cluster.request_timeout * 1000)

    def _broker(self, name: str) -> Node:
        return self.cluster.node(int(name)) if name.lstrip("-").isdigit() else self.cluster.controller()

    def _change(
        self, request: Any, keys: Iterable[Any], results: Any, node_name: str = ""
    ) -> dict[Any, Outcome]:
        """Ask the controller, or a broker by its name; the outcome for each key."""
        keys = list(keys)
        for attempt in range(RETRIES + 1):
            if attempt:
                gevent.sleep(RETRY_BACKOFF)
                self.cluster.controller_id = -1  # it has moved
            try:
                node = self._broker(node_name)
                found = results(self.cluster.ask(node, request, wait=0.0))
            except KafkaError as error:
                return dict.fromkeys(keys, Outcome(_failed(error), str(error)))
            if not any(one.error_code == NotControllerError.errno for one in found.values()):
                break
        return {
            key: Outcome(error_of(found[key].error_code), getattr(found[key], "error_message", None) or "")
            if key in found
            else Outcome(NetworkExceptionError, "the broker has not answered for it")
            for key in keys
        }


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


def _failed(error: KafkaError) -> Error:
    if isinstance(error, BrokerResponseError) and not isinstance(error, LOST):
        return type(error)
    return NetworkExceptionError
