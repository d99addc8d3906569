"""Delegation tokens: they are off, and a client without a login learns that it needs one."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import DelegationTokenAuthDisabledError, DelegationTokenRequestNotAllowedError, UnknownError

from dafka.broker.codec.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from dafka.broker.server import answer
from dafka.broker.server.context import Context

REQUESTS = [
    CreateDelegationTokenRequest(
        owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
    ),
    RenewDelegationTokenRequest(hmac=b"token", renew_period_ms=-1),
    ExpireDelegationTokenRequest(hmac=b"token", expiry_time_period_ms=-1),
    DescribeDelegationTokenRequest(owners=None),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=[type(one).__name__ for one in REQUESTS])
def test_there_are_no_tokens(client: Client, request_: Any):
    def ask(context: Context) -> Any:
        return client.connection.hub.run(answer, client.core, request_, context)

    assert ask(Context()).error_code == DelegationTokenRequestNotAllowedError.errno
    assert ask(Context(principal="User:alice")).error_code == DelegationTokenAuthDisabledError.errno


def test_the_answer_names_the_principal_of_the_request(client: Client):
    alice = Context(principal="User:alice")
    found = client.connection.hub.run(answer, client.core, REQUESTS[0], alice)
    assert (found.principal_type, found.principal_name) == ("User", "alice")
    assert (found.token_requester_principal_name, found.token_id, found.hmac) == ("alice", "", b"")


def test_half_an_owner_is_an_unexpected_error(client: Client):
    request = CreateDelegationTokenRequest(
        owner_principal_type=None, owner_principal_name="bob", renewers=[], max_lifetime_ms=-1
    )
    found = client.connection.hub.run(answer, client.core, request, Context(principal="User:alice"))
    assert (found.error_code, found.principal_name) == (UnknownError.errno, "ANONYMOUS")
