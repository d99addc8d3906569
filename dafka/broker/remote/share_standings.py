"""Where the records of a share group stand, from outside: the states that its coordinators have stored.

Brokers store what was acknowledged, refused or given back, and not what a member holds for the first time.
So ``acquired``, ``ahead`` and ``holders`` are not known, and ``available`` counts what a member may hold
again.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from kafka.errors import KafkaError
from kafka.protocol.metadata import FindCoordinatorRequest

from dafka.broker.codec.errors import error_of
from dafka.broker.codec.messages.share_group import ReadShareGroupStateRequest
from dafka.broker.interface.broker import Error, TopicPartition
from dafka.broker.interface.share import ShareStanding, ShareStandings
from dafka.broker.remote.cluster import SHARE, Cluster
from dafka.broker.remote.coordinators import unavailable

_SHARES_SINCE = 6  # the version of FindCoordinator that knows them
_MOST = 2000  # partitions that are asked about
_ANYBODY = -1  # as the leader epoch: a reader does not lead the partition
_AVAILABLE, _ACKNOWLEDGED, _ARCHIVED = 0, 2, 4
_Topic = ReadShareGroupStateRequest.ReadStateData

Places = Mapping[TopicPartition, UUID]
"""Partitions, with the ids of their topics."""


def standings(cluster: Cluster, group: str, places: Places) -> ShareStandings:
    """The standings of these partitions, up to 2000 of them."""
    names = {id_: topic for (topic, _), id_ in places.items()}
    found: dict[TopicPartition, ShareStanding] = {}
    try:
        for node, some in _coordinators(cluster, group, list(places.items())[:_MOST]).items():
            topics: dict[UUID, list[Any]] = {}
            for (_, number), id_ in some:
                one = _Topic.PartitionData(partition=number, leader_epoch=_ANYBODY)
                topics.setdefault(id_, []).append(one)
            data = [_Topic(topic_id=id_, partitions=parts) for id_, parts in topics.items()]
            request = ReadShareGroupStateRequest(group_id=group, topics=data)
            for topic in cluster.ask(cluster.node(node), request).results:
                for part in topic.partitions:
                    found[names[topic.topic_id], part.partition] = _standing(part)
    except KafkaError as error:
        return ShareStandings(unavailable(error), {}, str(error))
    return ShareStandings(None, found)


def _coordinators(
    cluster: Cluster, group: str, places: Iterable[tuple[TopicPartition, UUID]]
) -> dict[int, list[tuple[TopicPartition, UUID]]]:
    """The partitions that each broker coordinates. Raises KafkaError."""
    keys = {f"{group}:{_text(id_)}:{key[1]}": (key, id_) for key, id_ in places}
    found: dict[int, list[tuple[TopicPartition, UUID]]] = {}
    if keys:
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=list(keys))
        for one in cluster.ask_any(request, lowest=_SHARES_SINCE, highest=_SHARES_SINCE).coordinators:
            if not one.error_code:
                found.setdefault(one.node_id, []).append(keys[one.key])
    return found


def _text(id_: UUID) -> str:
    """An id as Kafka writes it."""
    return urlsafe_b64encode(id_.bytes).decode().rstrip("=")


def _standing(part: Any) -> ShareStanding:
    error: Error | None = error_of(part.error_code)
    if error is not None:
        return ShareStanding(error)
    counts: Counter[int] = Counter()
    deliveries: Counter[int] = Counter()
    end = part.start_offset
    for run in part.state_batches:
        records = run.last_offset - run.first_offset + 1
        counts[run.delivery_state] += records
        end = max(end, run.last_offset + 1)
        if run.delivery_state == _AVAILABLE:
            deliveries[run.delivery_count] += records
    return ShareStanding(
        None,
        start=part.start_offset,
        end=end,
        ahead=None,
        available=counts[_AVAILABLE],
        acquired=None,
        acknowledged=counts[_ACKNOWLEDGED],
        archived=counts[_ARCHIVED],
        deliveries=deliveries,
    )
