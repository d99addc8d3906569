"""Answers about accounts and access control lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kafka.errors import (
    DuplicateResourceError,
    IllegalSaslStateError,
    InvalidRequestError,
    SecurityDisabledError,
)
from kafka.protocol.admin.acl import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)

from dafka.broker.codec.acls import created, filter_of
from dafka.broker.codec.errors import BadRequestError, error_code, error_message
from dafka.broker.interface.access import (
    CredentialDeletion,
    CredentialUpsertion,
    DeletedAcls,
    DescribedAccount,
)
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.outcome import Outcome
from dafka.broker.server.context import Context

_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "

_Resource = DescribeAclsResponse.DescribeAclsResource
_User = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def describe_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The entries by pattern."""
    _refuse_unknown([request], *_OF_FILTERS)
    try:
        found = broker.describe_acls(filter_of(request))
    except (SecurityDisabledError, InvalidRequestError) as refused:
        return DescribeAclsResponse(
            throttle_time_ms=0,
            error_code=error_code(type(refused)),
            error_message=str(refused.args[0]),
            resources=[],
        )
    patterns: dict[tuple[int, str, int], list[Any]] = {}
    entry = _Resource.AclDescription
    for acl in found:
        patterns.setdefault((acl.resource_type, acl.name, acl.pattern), []).append(
            entry(
                principal=acl.principal,
                host=acl.host,
                operation=int(acl.operation),
                permission_type=int(acl.permission),
            )
        )
    return DescribeAclsResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        resources=[
            _Resource(resource_type=int(kind), resource_name=name, pattern_type=int(pattern), acls=entries)
            for (kind, name, pattern), entries in patterns.items()
        ],
    )


_OF_ENTRIES = "resource_type", "resource_pattern_type", "operation", "permission_type"
_OF_FILTERS = "resource_type_filter", "pattern_type_filter", "operation", "permission_type"


def _refuse_unknown(entries: Iterable[Any], *names: str) -> None:
    """As in Kafka, a request with the number of no type, pattern, operation or permission cannot be read."""
    for one in entries:
        for name in names:
            if getattr(one, name) == 0:
                raise BadRequestError("acl", f"an ACL with {name} 0")


def create_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    _refuse_unknown(request.creations, *_OF_ENTRIES)
    result = CreateAclsResponse.AclCreationResult
    try:
        outcomes = broker.create_acls([created(one) for one in request.creations])
    except SecurityDisabledError as refused:
        outcomes = [Outcome(SecurityDisabledError, str(refused.args[0]))] * len(request.creations)
    return CreateAclsResponse(
        throttle_time_ms=0,
        results=[
            result(
                error_code=error_code(outcome.error),
                error_message=error_message(outcome.error, outcome.detail),
            )
            for outcome in outcomes
        ],
    )


def delete_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    _refuse_unknown(request.filters, *_OF_FILTERS)
    result = DeleteAclsResponse.DeleteAclsFilterResult
    try:
        outcomes = broker.delete_acls([filter_of(one) for one in request.filters])
    except SecurityDisabledError as refused:
        outcomes = [DeletedAcls(SecurityDisabledError, (), str(refused.args[0]))] * len(request.filters)
    return DeleteAclsResponse(
        throttle_time_ms=0,
        filter_results=[
            result(
                error_code=0 if one.left else error_code(one.error),
                error_message=None if one.left else error_message(one.error, one.detail),
                matching_acls=[
                    result.DeleteAclsMatchingAcl(
                        error_code=error_code(error),
                        error_message=error_message(error, one.detail),
                        resource_type=int(acl.resource_type),
                        resource_name=acl.name,
                        pattern_type=int(acl.pattern),
                        principal=acl.principal,
                        host=acl.host,
                        operation=int(acl.operation),
                        permission_type=int(acl.permission),
                    )
                    for error, acl in (
                        *((None, acl) for acl in one.acls),
                        *((one.error, acl) for acl in one.left),
                    )
                ],
            )
            for one in outcomes
        ],
    )


def describe_user_scram_credentials(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Users and their iterations, never what proves a password."""
    wanted = None if not request.users else [one.name for one in request.users]
    twice = {name for name, count in Counter(wanted or ()).items() if count > 1}
    found = broker.describe_accounts(wanted)
    found.update((name, DescribedAccount(DuplicateResourceError, {}, _TWICE + name)) for name in twice)
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message="",
        results=[
            _User(
                user=name,
                error_code=error_code(one.error),
                error_message=error_message(one.error, one.detail),
                credential_infos=[
                    _User.CredentialInfo(mechanism=mechanism, iterations=iterations)
                    for mechanism, iterations in one.iterations.items()
                ],
            )
            for name, one in found.items()
        ],
    )


def alter_user_scram_credentials(broker: BrokerInterface, request: Any, context: Context) -> Any:
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    outcomes = broker.alter_accounts(
        [CredentialDeletion(one.name, one.mechanism) for one in request.deletions],
        [
            CredentialUpsertion(
                one.name, one.mechanism, one.iterations, bytes(one.salt), bytes(one.salted_password)
            )
            for one in request.upsertions
        ],
    )
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=0,
        results=[
            result(
                user=name,
                error_code=error_code(outcome.error),
                error_message=error_message(outcome.error, outcome.detail),
            )
            for name, outcome in outcomes.items()
        ],
    )


def sasl_handshake(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Out of place: at a listener without SASL, or once a client is known.

    In its place :mod:`dafka.broker.server.authentication` answers it, as well as SaslAuthenticate.
    """
    from kafka.protocol.sasl import SaslHandshakeResponse

    return SaslHandshakeResponse(error_code=error_code(IllegalSaslStateError), mechanisms=[])


def sasl_authenticate(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Out of place, too."""
    from kafka.protocol.sasl import SaslAuthenticateResponse

    return SaslAuthenticateResponse(
        error_code=error_code(IllegalSaslStateError),
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
        session_lifetime_ms=0,
    )
