"""Answers about delegation tokens (KIP-48): there are none, as in a Kafka without a secret for them.

Apache Kafka has tokens only if ``delegation.token.secret.key`` is set. Without it a client that has said who
it is learns that they are off, and any other one that it must say so first.
"""

from __future__ import annotations

from typing import Any

from kafka.errors import (
    DelegationTokenAuthDisabledError,
    DelegationTokenAuthorizationFailedError,
    DelegationTokenRequestNotAllowedError,
    InvalidPrincipalTypeError,
    UnknownError,
)

from dafka.broker.codec.errors import error_code
from dafka.broker.codec.messages.delegation_tokens import (
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenResponse,
)
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.server.context import Context
from dafka.security.acls.terms import Operation, ResourceType
from dafka.security.principals import ANONYMOUS

_NEVER = -1

USER_TYPE = "User"
"""The type of all principals that can have or renew a token."""


def _refusal(context: Context) -> Error:
    """Why a client that has said who it is gets nothing, and any other one."""
    if context.principal == ANONYMOUS:
        return DelegationTokenRequestNotAllowedError
    return DelegationTokenAuthDisabledError


def create_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """For its user, or for another one if it may do that; looked at in the order that Kafka has."""
    requester = owner = _named(context.principal)
    error = _refusal(context)
    if request.owner_principal_name:
        owner = request.owner_principal_type, request.owner_principal_name
    if request.owner_principal_name and request.owner_principal_type is None:  # half an owner
        owner = requester = _named(ANONYMOUS)
        error = UnknownError
    elif error is not DelegationTokenAuthDisabledError:
        pass
    elif owner != requester and not _may_create(context, owner):
        error = DelegationTokenAuthorizationFailedError
    elif any(one.principal_type != USER_TYPE for one in request.renewers):
        error = InvalidPrincipalTypeError
    return CreateDelegationTokenResponse(
        error_code=error_code(error),
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
        token_id="",
        hmac=b"",
        throttle_time_ms=0,
    )


def _named(principal: str) -> tuple[str, str]:
    """Type and name of a principal."""
    kind, _, name = principal.partition(":")
    return kind, name


def _may_create(context: Context, owner: tuple[str, str]) -> bool:
    rights = context.rights
    return rights is None or rights.may(
        "CreateDelegationToken", Operation.CREATE_TOKENS, ResourceType.USER, ":".join(owner)
    )


def renew_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return RenewDelegationTokenResponse(
        error_code=error_code(_refusal(context)), expiry_timestamp_ms=_NEVER, throttle_time_ms=0
    )


def expire_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return ExpireDelegationTokenResponse(
        error_code=error_code(_refusal(context)), expiry_timestamp_ms=_NEVER, throttle_time_ms=0
    )


def describe_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    code = error_code(_refusal(context))
    return DescribeDelegationTokenResponse(error_code=code, tokens=[], throttle_time_ms=0)
