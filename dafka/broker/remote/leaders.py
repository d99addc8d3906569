"""Requests about partitions, answered by the brokers that lead them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import gevent
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NetworkExceptionError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.remote.cluster import LOST, Cluster
from dafka.broker.remote.limits import RETRIES, RETRY_BACKOFF
from dafka.broker.remote.nodes import Node

T = TypeVar("T")


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
    wanted = list(partitions)
    answers: dict[TopicPartition, T] = {}
    for attempt in range(RETRIES + 1):
        if attempt:
            gevent.sleep(RETRY_BACKOFF)
        answers.update(_attempt(cluster, [one for one in wanted if one not in answers], ask, failed))
        again = [one for one, answer in answers.items() if _passes(answer)]
        if not again or attempt == RETRIES:
            break
        cluster.forget_leaders({topic for topic, _ in again})
        for one in again:
            del answers[one]
    return {one: answers[one] for one in wanted}


def _attempt(
    cluster: Cluster,
    wanted: list[TopicPartition],
    ask: Callable[[Node, list[TopicPartition]], dict[TopicPartition, T]],
    failed: Callable[[Error], T],
) -> dict[TopicPartition, T]:
    try:
        led, leaderless = cluster.by_leader(wanted)
    except KafkaConnectionError:
        return {one: failed(NetworkExceptionError) for one in wanted}
    answers = {
        one: failed(LeaderNotAvailableError if cluster.exists(one) else UnknownTopicOrPartitionError)
        for one in leaderless
    }
    for node, some in led.items():
        try:
            found = ask(node, some)
        except LOST:
            cluster.forget_leaders({topic for topic, _ in some})
            found = {}
        except IncompatibleBrokerVersion:
            found = {one: failed(IncompatibleBrokerVersion) for one in some}
        answers.update({one: found[one] if one in found else failed(NetworkExceptionError) for one in some})
    return answers


def _passes(answer: Any) -> bool:
    """Whether another broker leads by now, or nobody for the moment."""
    error = answer.error
    if error is None or error is UnknownTopicOrPartitionError:
        return False
    return bool(error.retriable and error.invalid_metadata) and error is not NetworkExceptionError
