"""Requests to the coordinator of a group or a transactional id, which may move."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafka.errors import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorError,
    RequestTimedOutError,
    for_code,
)

from dafka.broker.interface.groups import Error
from dafka.broker.remote.cluster import GROUP, LOST, Cluster
from dafka.broker.remote.retrying import attempts

MOVED = (NotCoordinatorError, CoordinatorNotAvailableError, CoordinatorLoadInProgressError)


def ask_coordinator(
    cluster: Cluster,
    kind: int,
    key: str,
    request: Any,
    errors: Callable[[Any], Iterable[int]] = lambda response: (response.error_code,),
    *,
    again: bool = True,
    **options: Any,
) -> Any:
    """Send a request to a coordinator, and again while it moves; kafka-python's response.

    ``errors`` are the codes in a response. ``again``: whether a request may be repeated whose connection was
    lost. Raises a KafkaError when none of the attempts has succeeded.
    """
    failure: KafkaError = CoordinatorNotAvailableError()
    for _ in attempts():
        node = cluster.coordinator(kind, key)
        try:
            response = cluster.ask(node, request, **options)
        except LOST as error:
            cluster.forget_coordinator(kind, key)
            failure = CoordinatorNotAvailableError(str(error))
            if not again or isinstance(error, RequestTimedOutError):
                break
            continue
        moved = [for_code(code) for code in errors(response) if code and for_code(code) in MOVED]
        if not moved:
            return response
        failure = moved[0]()
        if not isinstance(failure, CoordinatorLoadInProgressError):
            cluster.forget_coordinator(kind, key)
    raise failure


def ask_described(cluster: Cluster, group: str, request: Any) -> Any:
    """Ask a group's coordinator to describe it: the one description in the response. Raises KafkaError."""
    response = ask_coordinator(
        cluster, GROUP, group, request, lambda response: [one.error_code for one in response.groups]
    )
    if not response.groups:
        raise CoordinatorNotAvailableError(f"the coordinator of group {group!r} says nothing about it")
    return response.groups[0]


def partition_errors(response: Any) -> list[int]:
    """The error codes of all partitions of a response by topics."""
    return [one.error_code for topic in response.topics or () for one in topic.partitions]


def unavailable(error: KafkaError) -> Error:
    """The error of a call whose coordinator could not be asked."""
    return type(error) if isinstance(error, BrokerResponseError) else CoordinatorNotAvailableError
