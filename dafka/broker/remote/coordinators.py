"""Requests to the coordinator of a group or a transactional id, which may move."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafka.errors import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IncompatibleBrokerVersion,
    KafkaError,
    NotCoordinatorError,
    RequestTimedOutError,
    for_code,
)

from dafka.broker.interface.groups import Error
from dafka.broker.remote.cluster import GROUP, LOST, Cluster
from dafka.broker.remote.retrying import attempts

Described = TypeVar("Described")
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
    lost. Raises a KafkaError when all attempts have failed.
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


def describe_each(
    cluster: Cluster,
    groups: Iterable[str],
    request: Callable[[str], Any],
    described: Callable[[Any], Described],
    failed: Callable[[Error, str], Described],
) -> dict[str, Described]:
    """Ask the coordinator of each group to describe it.

    ``request`` makes the request for a group. ``described`` makes the result from the description in a
    response, ``failed`` from an error and its message, if the coordinator cannot be asked. Raises
    IncompatibleBrokerVersion.
    """
    found = {}
    for group in groups:
        try:
            response = ask_coordinator(
                cluster, GROUP, group, request(group), lambda found: [one.error_code for one in found.groups]
            )
            if not response.groups:
                raise CoordinatorNotAvailableError(
                    f"the coordinator of group {group!r} says nothing about it"
                )
        except IncompatibleBrokerVersion:
            raise
        except KafkaError as error:
            found[group] = failed(unavailable(error), str(error))
        else:
            found[group] = described(response.groups[0])
    return found


def partition_errors(response: Any) -> list[int]:
    """The error codes of all partitions of a response by topics."""
    return [one.error_code for topic in response.topics or () for one in topic.partitions]


def unavailable(error: KafkaError) -> Error:
    """The error of a call whose coordinator could not be asked."""
    return type(error) if isinstance(error, BrokerResponseError) else CoordinatorNotAvailableError
