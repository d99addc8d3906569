"""Voters and brokers: the one that there is stays."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    BrokerIdNotRegisteredError,
    InconsistentClusterIdError,
    InvalidRequestError,
    RequestTimedOutError,
    UnsupportedVersionError,
    VoterNotFoundError,
)

from dafka.broker.codec.messages.cluster import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
)
from dafka.broker.interface.features import FeatureUpdate

VOTER = {"cluster_id": None, "voter_id": 5, "voter_directory_id": uuid4()}


def add(**changed: Any) -> Any:
    listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host="localhost", port=9)
    fields = {"listeners": [listener], "timeout_ms": 1000, "ack_when_committed": True}
    return AddRaftVoterRequest(**{**VOTER, **fields, **changed})


def remove(**changed: Any) -> Any:
    return RemoveRaftVoterRequest(**{**VOTER, **changed})


@pytest.mark.parametrize(("make", "level_1"), [(add, RequestTimedOutError), (remove, VoterNotFoundError)])
def test_voters_do_not_change(client: Client, make: Any, level_1: Any):
    found = answered(client, make())
    assert found.error_code == UnsupportedVersionError.errno
    assert "kraft.version feature is 0" in found.error_message
    assert answered(client, make(cluster_id="other")).error_code == InconsistentClusterIdError.errno
    assert client.call("update_features", {"kraft.version": FeatureUpdate(1)}).error is None
    own = client.call("metadata", ()).cluster_id
    assert answered(client, make(cluster_id=own)).error_code == level_1.errno


def test_a_voter_needs_the_listener_of_voters(client: Client):
    assert answered(client, add(listeners=[])).error_code == InvalidRequestError.errno


@pytest.mark.parametrize("make", [add, remove])
@pytest.mark.parametrize(
    "wrong", [{"voter_id": -1}, {"voter_directory_id": UUID(int=0)}, {"voter_directory_id": None}]
)
def test_a_voter_has_a_number_and_a_directory(client: Client, make: Any, wrong: Any):
    assert answered(client, make(**wrong)).error_code == InvalidRequestError.errno
    assert answered(client, make(**wrong, cluster_id="x")).error_code == InconsistentClusterIdError.errno


def test_no_broker_is_unregistered(client: Client):
    own = client.call("metadata", ()).controller_id
    assert answered(client, UnregisterBrokerRequest(broker_id=own)).error_code == InvalidRequestError.errno
    other = answered(client, UnregisterBrokerRequest(broker_id=own + 1))
    assert other.error_code == BrokerIdNotRegisteredError.errno
