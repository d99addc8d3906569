"""Answers about voters and brokers that come and go: a cluster of one node keeps the one it has."""

from __future__ import annotations

from typing import Any

from kafka.errors import (
    BrokerIdNotRegisteredError,
    InconsistentClusterIdError,
    InvalidRequestError,
    RequestTimedOutError,
    UnsupportedVersionError,
    VoterNotFoundError,
)

from dafka.broker.codec.errors import error_code
from dafka.broker.codec.messages.cluster import (
    AddRaftVoterResponse,
    RemoveRaftVoterResponse,
    UnregisterBrokerResponse,
)
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.server.answers.naming import NO_UUID
from dafka.broker.server.context import Context

_CONTROLLER = "CONTROLLER"  # the listener of voters


def add_raft_voter(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Nobody else could be a voter: there are no other brokers."""
    error, detail = _wrong_request(broker, request)
    if error is None:
        if all(listener.name != _CONTROLLER for listener in request.listeners):
            error, detail = InvalidRequestError, f"The request has no endpoint for listener {_CONTROLLER}."
        else:
            error, detail = _no_voters(broker, "adding")
    if error is None:
        error, detail = RequestTimedOutError, f"New voter {request.voter_id} is not ready to receive requests"
    return AddRaftVoterResponse(throttle_time_ms=0, error_code=error_code(error), error_message=detail)


def remove_raft_voter(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The only voter stays."""
    error, detail = _wrong_request(broker, request)
    if error is None:
        error, detail = _no_voters(broker, "removing")
    if error is None:
        error, detail = VoterNotFoundError, f"Cannot remove voter {request.voter_id} from the set of voters"
    return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=error_code(error), error_message=detail)


def unregister_broker(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The only broker stays."""
    number = request.broker_id
    error: Error = BrokerIdNotRegisteredError
    detail = f"Broker ID {number} is not currently registered"
    if number == broker.metadata(()).controller_id:
        error, detail = InvalidRequestError, f"Broker {number} is the only one, and answers this request"
    return UnregisterBrokerResponse(throttle_time_ms=0, error_code=error_code(error), error_message=detail)


def _wrong_request(broker: BrokerInterface, request: Any) -> tuple[Error | None, str]:
    """The error of another cluster's request, or of one without a voter."""
    own, named = broker.metadata(()).cluster_id, request.cluster_id
    if named not in (None, own):
        return InconsistentClusterIdError, f'The given id "{named}" doesn\'t match the cluster id "{own}"'
    if request.voter_id < 0 or request.voter_directory_id in (None, NO_UUID):
        return InvalidRequestError, "The request didn't include a valid voter"
    return None, ""


def _no_voters(broker: BrokerInterface, doing: str) -> tuple[Error | None, str]:
    if broker.features().levels.get("kraft.version", 0):
        return None, ""
    return (
        UnsupportedVersionError,
        f"Cluster doesn't support {doing} voter because the kraft.version feature is 0",
    )
