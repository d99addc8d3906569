"""Metadata and FindCoordinator: which brokers, topics and partitions there are, and who leads them."""

from __future__ import annotations

import re
from typing import Any

from kafka.errors import InvalidRequestError, UnknownError, UnknownTopicIdError, UnknownTopicOrPartitionError
from kafka.protocol.metadata.find_coordinator import CoordinatorType, FindCoordinatorResponse
from kafka.protocol.metadata.metadata import MetadataResponse

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.codec.limits import INLINE_ITEMS
from dafka.broker.interface.admin import Resource, ResourceType
from dafka.broker.interface.broker import BrokerInterface, Error, Metadata, TopicMetadata
from dafka.broker.server.answers.naming import (
    NO_UUID,
    prefer_ids,
    topic_fields,
    topic_names,
    version_of,
)
from dafka.broker.server.answers.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from dafka.broker.server.context import Context, Mutations
from dafka.hub.worker import REQUESTS

SHARES_SINCE = 6
"""The version of FindCoordinator that knows of share partitions."""

IDS_SINCE = 12
"""The version of Metadata that knows topics by id."""

_PARTITIONS, _AUTO_CREATE = "num.partitions", "auto.create.topics.enable"
_Topic = MetadataResponse.MetadataResponseTopic
_Partition = _Topic.MetadataResponsePartition


def metadata(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Brokers, and topics by name or id. Unlike in Kafka, a topic that is named twice is answered once."""
    version = version_of(request)
    refused = _refusal(request, version)
    if refused is not None:
        return _all_refused(request, refused)
    prefer_ids(request)
    create = bool(request.allow_auto_topic_creation) if version >= 4 else True
    unknown: list[Any] = []
    if request.topics is None or (version == 0 and not request.topics):
        found = broker.metadata(None)
    else:
        names = [topic.name for topic in request.topics if topic.name is not None]
        ids = [topic.topic_id for topic in request.topics if topic.name is None]
        by_id = topic_names(broker, ids)
        unknown = [one for one in dict.fromkeys(ids) if one not in by_id]
        every = dict.fromkeys([*names, *(by_id[one] for one in ids if one in by_id)])
        if create and context.mutations is not None:
            found = _with_created(broker, every, context.mutations)
        else:
            found = broker.metadata(every, create)
    most = sum(len(topic.partitions) for topic in found.topics.values())
    if most + len(found.topics) > INLINE_ITEMS:
        return REQUESTS.run(_response, found, unknown, request, version, context)
    return _response(found, unknown, request, version, context)


def _refusal(request: Any, version: int) -> Error | None:
    """The error of a request that names a topic by nothing, or in another way than its version knows."""
    topics = request.topics or ()
    if version < IDS_SINCE:
        return InvalidRequestError if any(one.name is None or _has_id(one) for one in topics) else None
    if any(map(_has_id, topics)):  # as in Kafka, ids alone count then
        request.topics = [one for one in topics if _has_id(one)]
        return None
    return UnknownError if any(one.name is None for one in topics) else None


def _has_id(topic: Any) -> bool:
    return topic.topic_id not in (None, NO_UUID)


def _all_refused(request: Any, error: Error) -> Any:
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[],
        cluster_id=None,
        controller_id=-1,
        topics=[
            _Topic(
                error_code=error_code(error),
                name=topic.name or "",
                topic_id=topic.topic_id or NO_UUID,
                partitions=[],
                authorized_operations=None,
            )
            for topic in request.topics
        ],
        authorized_operations=None,
        error_code=error_code(error),
    )


def _with_created(broker: BrokerInterface, names: dict[str, None], mutations: Mutations) -> Metadata:
    """The topics, those that do not exist created as far as the client may."""
    found = broker.metadata(names)
    node = Resource(ResourceType.BROKER, str(found.controller_id))
    described = broker.describe_configs({node: [_PARTITIONS, _AUTO_CREATE]})[node]
    settings = {one.name: one.value for one in described.entries}
    if settings[_AUTO_CREATE] != "true":
        return found  # nothing is made, and nothing counts
    size = int(settings[_PARTITIONS] or 1)
    missing = [n for n, one in found.topics.items() if one.error is UnknownTopicOrPartitionError]
    wanted = {name: None for name in missing if mutations.may(size, strict=True)}
    created = broker.metadata(wanted, True).topics if wanted else {}
    return found._replace(topics={**found.topics, **created})


def _response(found: Metadata, unknown: list[Any], request: Any, version: int, context: Context) -> Any:
    with_operations = bool(request.include_topic_authorized_operations)
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
            for number, host, port in context.brokers(found)
        ],
        cluster_id=found.cluster_id,
        controller_id=node,
        topics=topics,
        authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else None,
        error_code=0,
    )


def _topic(topic: TopicMetadata, node: int, with_operations: bool) -> Any:
    return _Topic(
        **topic_fields(topic, _Partition, node),
        authorized_operations=TOPIC_OPERATIONS if with_operations else None,
    )


def find_coordinator(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """This broker coordinates every group and every transactional id."""
    version = version_of(request)
    number, host, port = context.brokers(broker.metadata(()))[0]
    known = version == 0 or request.key_type in (CoordinatorType.GROUP, CoordinatorType.TRANSACTION)
    of_shares = version >= SHARES_SINCE and request.key_type == CoordinatorType.SHARE
    error = None if known else InvalidRequestError
    if version < 4:
        if error is not None:
            number, host, port = -1, "", -1
        return FindCoordinatorResponse(
            throttle_time_ms=0,
            error_code=error_code(error),
            error_message=error_message(error) or "NONE",  # Kafka's word
            node_id=number,
            host=host,
            port=port,
        )
    here = {
        "node_id": number,
        "host": host,
        "port": port,
        "error_code": 0,
        "error_message": "",
    }
    return FindCoordinatorResponse(
        throttle_time_ms=0,
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key,
                **(here if known or (of_shares and _is_share_partition(key)) else _NO_COORDINATOR),
            )
            for key in request.coordinator_keys
        ],
    )


_is_share_partition = re.compile(r"(?s:.+):[\w-]{22}:\d{1,10}", re.ASCII).fullmatch
"""GROUP:TOPIC_ID:PARTITION"""

_NO_COORDINATOR = {
    "node_id": -1,
    "host": "",
    "port": -1,
    "error_code": error_code(InvalidRequestError),
    "error_message": error_message(InvalidRequestError),
}
