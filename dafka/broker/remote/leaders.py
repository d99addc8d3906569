"""Requests about partitions, answered by the brokers that lead them; and when to look for another leader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NetworkExceptionError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.remote.cluster import LOST, Cluster
from dafka.broker.remote.nodes import Node
from dafka.broker.remote.retrying import attempts

T = TypeVar("T")


def leader_moved(error: Error | None) -> bool:
    """Whether a broker has refused because another one leads the partition, or none for the moment."""
    if error is None or error is UnknownTopicOrPartitionError or error is NetworkExceptionError:
        return False
    return bool(error.retriable and error.invalid_metadata)


def no_leader(cluster: Cluster, partition: TopicPartition) -> Error:
    """The error for a partition that the metadata has no leader of."""
    return LeaderNotAvailableError if cluster.exists(partition) else UnknownTopicOrPartitionError


def while_leaders_move(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    attempt: Callable[[list[TopicPartition]], dict[TopicPartition, T]],
) -> dict[TopicPartition, T]:
    """Call ``attempt``, and again for the partitions whose leader has moved; the last answer for each."""
    wanted = list(partitions)
    left = wanted
    answers: dict[TopicPartition, T] = {}
    for last in attempts():
        answers.update(attempt(left))
        left = [one for one in left if leader_moved(_error(answers[one]))]
        if not left or last:
            break
        cluster.forget_leaders({topic for topic, _ in left})
    return {one: answers[one] for one in wanted}


def _error(answer: Any) -> Error | None:
    return answer.error  # type: ignore[no-any-return]


def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    ask: Callable[[Node, list[TopicPartition]], dict[TopicPartition, T]],
    failed: Callable[[Error], T],
) -> dict[TopicPartition, T]:
    """Call ``ask`` for each leader with its partitions, and again where the leader has changed.

    ``failed`` makes an answer of an error: LeaderNotAvailableError, UnknownTopicOrPartitionError, and
    NetworkExceptionError for a broker that cannot be reached.
    """

    def attempt(wanted: list[TopicPartition]) -> dict[TopicPartition, T]:
        try:
            led, leaderless = cluster.by_leader(wanted)
        except KafkaConnectionError:
            return {one: failed(NetworkExceptionError) for one in wanted}
        answers = {one: failed(no_leader(cluster, one)) for one in leaderless}
        for node, some in led.items():
            try:
                found = ask(node, some)
            except LOST:
                cluster.forget_leaders({topic for topic, _ in some})
                found = {}
            except IncompatibleBrokerVersion:
                found = {one: failed(IncompatibleBrokerVersion) for one in some}
            answers.update(
                {one: found[one] if one in found else failed(NetworkExceptionError) for one in some}
            )
        return answers

    return while_leaders_move(cluster, partitions, attempt)
