"""Answers about delegation tokens (KIP-48): there are none, as in a Kafka without a secret for them.

Apache Kafka has tokens only if ``delegation.token.secret.key`` is set. Without it a client that has said who
it is learns that they are off, and any other one that it must say so first.
"""

from __future__ import annotations

from typing import Any

from kafka.errors import DelegationTokenAuthDisabledError, DelegationTokenRequestNotAllowedError, UnknownError

from dafka.broker.codec.errors import error_code
from dafka.broker.codec.messages.delegation_tokens import (
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenResponse,
)
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.server.context import Context
from dafka.security.principals import ANONYMOUS

_NEVER = -1


def _refusal(context: Context) -> int:
    anonymous = context.principal == ANONYMOUS
    return error_code(
        DelegationTokenRequestNotAllowedError if anonymous else DelegationTokenAuthDisabledError
    )


def create_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    code = _refusal(context)
    kind, _, name = context.principal.partition(":")
    if request.owner_principal_name and request.owner_principal_type is None:  # half an owner
        code = error_code(UnknownError)
        kind, _, name = ANONYMOUS.partition(":")
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
        token_id="",
        hmac=b"",
        throttle_time_ms=0,
    )


def renew_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return RenewDelegationTokenResponse(
        error_code=_refusal(context), expiry_timestamp_ms=_NEVER, throttle_time_ms=0
    )


def expire_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return ExpireDelegationTokenResponse(
        error_code=_refusal(context), expiry_timestamp_ms=_NEVER, throttle_time_ms=0
    )


def describe_delegation_token(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return DescribeDelegationTokenResponse(error_code=_refusal(context), tokens=[], throttle_time_ms=0)
