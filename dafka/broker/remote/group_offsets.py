"""The common part of requests about a group's offsets: commits, those of transactions, and deletions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafka.errors import CoordinatorNotAvailableError, KafkaError

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.groups import CommittedOffset, Error, TopicPartition
from dafka.broker.remote.cluster import GROUP, Cluster
from dafka.broker.remote.coordinators import ask_coordinator, partition_errors, unavailable


def committed_topics(
    topic_class: Any, partition_class: Any, offsets: Mapping[TopicPartition, CommittedOffset]
) -> list[Any]:
    """The topics of a commit, in its request's classes."""
    topics: dict[str, Any] = {}
    for (name, number), committed in offsets.items():
        topic = topics.setdefault(name, topic_class(name=name, partitions=[]))
        topic.partitions.append(
            partition_class(
                partition_index=number,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return list(topics.values())


def ask_by_partition(
    cluster: Cluster,
    group: str,
    request: Any,
    wanted: Collection[TopicPartition],
    lowest: int = 0,
    highest: int | None = None,
) -> dict[TopicPartition, Error | None]:
    """The coordinator's error for each partition; one for all if it refuses or cannot be reached."""
    try:
        response = ask_coordinator(cluster, GROUP, group, request, _errors, lowest=lowest, highest=highest)
    except KafkaError as error:
        return dict.fromkeys(wanted, unavailable(error))
    refused = error_of(_of_all(response))
    if refused is not None:
        return dict.fromkeys(wanted, refused)
    found = {
        (topic.name, one.partition_index): error_of(one.error_code)
        for topic in response.topics
        for one in topic.partitions
    }
    return {one: found.get(one, CoordinatorNotAvailableError) for one in wanted}


def _errors(response: Any) -> list[int]:
    return [_of_all(response), *partition_errors(response)]


def _of_all(response: Any) -> int:
    return getattr(response, "error_code", None) or 0
