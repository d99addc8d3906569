"""Requests that change topics and configurations, answered by the controller or by a broker with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafka.errors import BrokerResponseError, KafkaError, NetworkExceptionError, NotControllerError

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.groups import Error
from dafka.broker.interface.outcome import Outcome
from dafka.broker.remote.cluster import LOST, Cluster
from dafka.broker.remote.nodes import Node
from dafka.broker.remote.retrying import attempts

K = TypeVar("K")


def ask_controller(
    cluster: Cluster,
    request: Any,
    keys: Iterable[K],
    results: Callable[[Any], dict[K, Any]],
    node_name: str = "",
) -> dict[K, Outcome]:
    """Ask the controller, or the broker of that name, to change something; the outcome for each key.

    A change whose connection is lost is not repeated: NetworkExceptionError says that it may have been made.
    ``results`` finds what a response says of each key.
    """
    keys = list(keys)
    for _ in attempts():
        try:
            found = results(cluster.ask(broker_named(cluster, node_name), request, wait=0.0))
        except KafkaError as error:
            return dict.fromkeys(keys, Outcome(failed(error), str(error)))
        if not any(one.error_code == NotControllerError.errno for one in found.values()):
            break
        cluster.controller_id = -1  # it has moved
    return {
        key: Outcome(error_of(found[key].error_code), getattr(found[key], "error_message", None) or "")
        if key in found
        else Outcome(NetworkExceptionError, "the broker has not answered for it")
        for key in keys
    }


def broker_named(cluster: Cluster, name: str) -> Node:
    """The broker whose id a resource is named by, or the controller."""
    return cluster.node(int(name)) if name.lstrip("-").isdigit() else cluster.controller()


def failed(error: KafkaError) -> Error:
    """The error of a request that was not answered."""
    if isinstance(error, BrokerResponseError) and not isinstance(error, LOST):
        return type(error)
    return NetworkExceptionError
