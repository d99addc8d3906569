"""``KafkaAdminClient``: kafka-python's own class over a broker in this process.

kafka-python's admin client turns each of its methods into Kafka requests and the responses into the
dictionaries it returns. All of that is used as it is; only the connection underneath is ours:
:class:`RequestAnswerer` takes the place of kafka-python's connection manager and answers a request by
calling the broker. A request that it has no answer for raises what kafka-python raises for a broker too
old to know it, ``IncompatibleBrokerVersion``.

The methods that work so far: ``create_topics``, ``delete_topics``, ``list_topics``, ``describe_topics``,
``wait_for_topics``, ``create_partitions`` and ``describe_cluster``.
"""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable
from typing import Any

from kafka.admin import ACLOperation
from kafka.admin.client import KafkaAdminClient as _TheirAdminClient
from kafka.errors import (
    IncompatibleBrokerVersion,
    InvalidReplicationFactorError,
    KafkaConfigurationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from compat.kafka._client import API_VERSION, Client
from compat.kafka._metrics import Registry
from compat.kafka._mirror import counterpart_names
from dafka.broker.interface import TopicSpec

# What everybody may do, there being no authorizer: what Kafka reports then.
_CLUSTER_OPERATIONS = frozenset(
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
_TOPIC_OPERATIONS = frozenset(
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


class KafkaAdminClient(_TheirAdminClient):
    """Administers a broker in this process; methods and configuration are kafka-python's.

    Raises:
        KafkaConfigurationError: unknown configuration keys.
        KafkaTimeoutError: no broker at ``bootstrap_servers``.
    """

    def __init__(self, **configs: Any) -> None:
        unknown = set(configs).difference(self.DEFAULT_CONFIG)
        if unknown:
            raise KafkaConfigurationError(f"Unrecognized configs: {unknown}")
        self.config = copy.copy(self.DEFAULT_CONFIG)
        self.config.update(configs)
        self._metrics = Registry(self.config)
        self._broker = Client(self.config)
        self._manager = self._net = RequestAnswerer(self._broker)
        self._controller_id = None
        self._closed = False

    def close(self) -> None:
        """End the use of the broker; a second call does nothing."""
        if getattr(self, "_closed", True):
            return
        self._closed = True
        self._manager.closed = True
        self._metrics.close()


class RequestAnswerer:
    """What kafka-python's admin methods need of its connection manager, answered by the broker."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._answers: dict[type, Callable[[Any], Any]] = {
            MetadataRequest: self._metadata,
            CreateTopicsRequest: self._create_topics,
            DeleteTopicsRequest: self._delete_topics,
            CreatePartitionsRequest: self._create_partitions,
        }
        self.broker_version = API_VERSION
        self.closed = False

    def run(self, method: Callable[..., Any], *args: Any) -> Any:
        """Run one of the admin client's coroutine functions to its end, in the calling thread."""
        if self.closed:
            raise self._client.closed_error("KafkaAdminClient is closed")
        coroutine = method(*args)
        try:
            coroutine.send(None)
        except StopIteration as finished:
            return finished.value
        coroutine.close()
        raise RuntimeError(f"{method.__name__} waits for something that is not an answer of the broker")

    async def send(self, request: Any, node_id: Any = None) -> Any:
        """The response to a request."""
        answer = self._answers.get(type(request))
        if answer is None:
            raise IncompatibleBrokerVersion(f"this broker does not answer {type(request).__name__}")
        return answer(request)

    async def sleep(self, seconds: float) -> None:
        """Wait, where kafka-python's methods do so between two attempts."""
        time.sleep(seconds)

    @property
    def cluster(self) -> Any:
        """kafka-python's cache of metadata, which only methods that do not work here ask for."""
        raise IncompatibleBrokerVersion("this broker does not answer what the method needs to know")

    # -- answers ---------------------------------------------------------------------------------

    def _metadata(self, request: Any) -> Any:
        names: list[str] | None = None
        ids: dict[uuid.UUID, None] = {}
        if request.topics is not None:
            names = [topic.name for topic in request.topics if topic.name is not None]
            ids = {topic.topic_id: None for topic in request.topics if topic.name is None}
        # Topics asked for by id are found among all of them.
        metadata = self._client.call(self._client.broker.metadata, None if ids else names)
        found = dict(metadata.topics)
        if ids:
            by_id = {topic.topic_id: name for name, topic in found.items()}
            wanted = [*(names or ()), *(by_id[one] for one in ids if one in by_id)]
            topics = [self._topic(name, found.get(name)) for name in wanted]
            topics += [self._unknown_id(one) for one in ids if one not in by_id]
        elif names is None:
            topics = [self._topic(name, topic) for name, topic in found.items()]
        else:
            topics = [self._topic(name, found.get(name)) for name in names]
        node = MetadataResponse.MetadataResponseBroker
        return MetadataResponse(
            brokers=[
                node(node_id=node_id, host=host, port=port, rack=None)
                for node_id, host, port in metadata.brokers
            ],
            cluster_id=metadata.cluster_id,
            controller_id=metadata.controller_id,
            topics=topics,
            authorized_operations=_CLUSTER_OPERATIONS,
        )

    @staticmethod
    def _topic(name: str, topic: Any) -> Any:
        described = MetadataResponse.MetadataResponseTopic
        error = UnknownTopicOrPartitionError if topic is None else topic.error
        if error is not None:
            return described(
                error_code=error.errno, name=name, partitions=[], authorized_operations=_TOPIC_OPERATIONS
            )
        partition = described.MetadataResponsePartition
        return described(
            error_code=0,
            name=name,
            topic_id=topic.topic_id,
            is_internal=False,
            partitions=[
                partition(
                    error_code=0,
                    partition_index=one.number,
                    leader_id=0,
                    leader_epoch=0,
                    replica_nodes=[0],
                    isr_nodes=[0],
                    offline_replicas=[],
                )
                for one in topic.partitions
            ],
            authorized_operations=_TOPIC_OPERATIONS,
        )

    @staticmethod
    def _unknown_id(topic_id: uuid.UUID) -> Any:
        return MetadataResponse.MetadataResponseTopic(
            error_code=UnknownTopicIdError.errno,
            name=None,
            topic_id=topic_id,
            partitions=[],
            authorized_operations=_TOPIC_OPERATIONS,
        )

    def _create_topics(self, request: Any) -> Any:
        errors: dict[str, Any] = {}
        specs = {}
        for topic in request.topics:
            if topic.replication_factor not in (-1, 1) and not topic.assignments:
                errors[topic.name] = InvalidReplicationFactorError
                continue
            partitions = len(topic.assignments) or topic.num_partitions
            configs = {config.name: config.value for config in topic.configs or ()}
            specs[topic.name] = TopicSpec(partitions, configs)
        if request.validate_only:
            errors.update(dict.fromkeys(specs))
        else:
            errors.update(self._client.call(self._client.broker.create_topics, specs))
        created = [name for name, error in errors.items() if error is None and not request.validate_only]
        metadata = self._client.call(self._client.broker.metadata, created)
        result = CreateTopicsResponse.CreatableTopicResult
        results = []
        for topic in request.topics:
            error = errors.get(topic.name)
            made = metadata.topics.get(topic.name) if topic.name in created else None
            results.append(
                result(
                    name=topic.name,
                    topic_id=None if made is None else made.topic_id,
                    error_code=_code(error),
                    error_message=_message(error),
                    num_partitions=-1 if made is None else len(made.partitions),
                    replication_factor=-1 if made is None else 1,
                )
            )
        return CreateTopicsResponse(topics=results)

    def _delete_topics(self, request: Any) -> Any:
        names = {}
        by_id = {}
        if any(topic.name is None for topic in request.topics):
            metadata = self._client.call(self._client.broker.metadata, None)
            by_id = {topic.topic_id: name for name, topic in metadata.topics.items()}
        for topic in request.topics:
            names[topic.name or topic.topic_id] = topic.name or by_id.get(topic.topic_id)
        errors = self._client.call(
            self._client.broker.delete_topics, [name for name in names.values() if name is not None]
        )
        result = DeleteTopicsResponse.DeletableTopicResult
        results = []
        for topic in request.topics:
            name = names[topic.name or topic.topic_id]
            error = UnknownTopicIdError if name is None else errors.get(name)
            results.append(
                result(
                    name=name, topic_id=topic.topic_id, error_code=_code(error), error_message=_message(error)
                )
            )
        return DeleteTopicsResponse(responses=results)

    def _create_partitions(self, request: Any) -> Any:
        create = self._client.broker.create_partitions
        counts = {topic.name: topic.count for topic in request.topics}
        errors = dict.fromkeys(counts) if request.validate_only else self._client.call(create, counts)
        result = CreatePartitionsResponse.CreatePartitionsTopicResult
        return CreatePartitionsResponse(
            results=[
                result(name=name, error_code=_code(error), error_message=_message(error))
                for name, error in errors.items()
            ]
        )


def _code(error: Any) -> int:
    return 0 if error is None else error.errno


def _message(error: Any) -> str | None:
    return None if error is None else str(error) if isinstance(error, Exception) else error.__name__


__getattr__ = counterpart_names(__name__)
