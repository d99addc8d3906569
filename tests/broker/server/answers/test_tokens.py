"""Delegation tokens: they are off, and a client without a login learns that it needs one."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import (
    DelegationTokenAuthDisabledError,
    DelegationTokenAuthorizationFailedError,
    DelegationTokenRequestNotAllowedError,
    InvalidPrincipalTypeError,
    UnknownError,
)

from dafka.broker.codec.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from dafka.broker.server import answer
from dafka.broker.server.context import Context
from dafka.security.acls.terms import Operation, ResourceType

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


class FewRights:
    def may(self, api: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        return (operation, kind, name) == (Operation.CREATE_TOKENS, ResourceType.USER, "User:carol")


@pytest.mark.parametrize(
    ("principal", "rights", "owner", "renewers", "error"),
    [
        ("User:ANONYMOUS", None, "bob", (), DelegationTokenRequestNotAllowedError),
        ("User:alice", None, "bob", (), DelegationTokenAuthDisabledError),
        ("User:alice", None, "User:bob", (), DelegationTokenAuthDisabledError),
        ("User:alice", FewRights(), "bob", ("Team",), DelegationTokenAuthorizationFailedError),
        ("User:alice", FewRights(), "carol", ("User",), DelegationTokenAuthDisabledError),
        ("User:alice", FewRights(), "carol", ("User", "Team"), InvalidPrincipalTypeError),
        ("User:alice", FewRights(), "alice", (), DelegationTokenAuthDisabledError),
    ],
)
def test_a_token_for_another_user_needs_a_right_and_users_renew_it(
    client: Client, principal: str, rights: Any, owner: str, renewers: tuple[str, ...], error: Any
):
    Renewer = CreateDelegationTokenRequest.CreatableRenewers
    request = CreateDelegationTokenRequest(
        owner_principal_type="User",
        owner_principal_name=owner,
        renewers=[Renewer(principal_type=kind, principal_name="dora") for kind in renewers],
        max_lifetime_ms=-1,
    )
    context = Context(principal=principal, rights=rights)
    found = client.connection.hub.run(answer, client.core, request, context)
    assert (found.error_code, found.principal_type, found.principal_name) == (error.errno, "User", owner)
    assert f"User:{found.token_requester_principal_name}" == principal


def test_half_an_owner_is_an_unexpected_error(client: Client):
    request = CreateDelegationTokenRequest(
        owner_principal_type=None, owner_principal_name="bob", renewers=[], max_lifetime_ms=-1
    )
    found = client.connection.hub.run(answer, client.core, request, Context(principal="User:alice"))
    assert (found.error_code, found.principal_name) == (UnknownError.errno, "ANONYMOUS")
