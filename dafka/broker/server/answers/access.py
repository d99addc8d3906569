"""Answers about accounts and access control lists, and about quotas, which this broker does not have.

Describing those finds none, removing a missing one is answered as by Kafka, and setting one is refused.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafka.errors import (
    DuplicateResourceError,
    IllegalSaslStateError,
    InvalidRequestError,
    SecurityDisabledError,
    UnsupportedVersionError,
)
from kafka.protocol.admin.acl import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from kafka.protocol.admin.client_quotas import AlterClientQuotasResponse, DescribeClientQuotasResponse
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)

from dafka.broker.codec.acls import created, filter_of
from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.access import (
    CredentialDeletion,
    CredentialUpsertion,
    DeletedAcls,
    DescribedAccount,
)
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.interface.outcome import Outcome
from dafka.broker.server.context import Context

_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_QUOTA_ENTITIES = ("user", "client-id", "ip")
_ANY_NAME = 2  # the match type of a quota filter that accepts any name

_Quota = AlterClientQuotasResponse.EntryData
_Resource = DescribeAclsResponse.DescribeAclsResource
_User = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def describe_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The entries by pattern."""
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


def create_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
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
    result = DeleteAclsResponse.DeleteAclsFilterResult
    try:
        outcomes = broker.delete_acls([filter_of(one) for one in request.filters])
    except SecurityDisabledError as refused:
        outcomes = [DeletedAcls(SecurityDisabledError, (), str(refused.args[0]))] * len(request.filters)
    return DeleteAclsResponse(
        throttle_time_ms=0,
        filter_results=[
            result(
                error_code=error_code(one.error),
                error_message=error_message(one.error, one.detail),
                matching_acls=[
                    result.DeleteAclsMatchingAcl(
                        error_code=0,
                        error_message=None,
                        resource_type=int(acl.resource_type),
                        resource_name=acl.name,
                        pattern_type=int(acl.pattern),
                        principal=acl.principal,
                        host=acl.host,
                        operation=int(acl.operation),
                        permission_type=int(acl.permission),
                    )
                    for acl in one.acls
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
        error_message=None,
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


def describe_client_quotas(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """There are no quotas."""
    error, detail = _check_filter(request.components)
    return DescribeClientQuotasResponse(
        throttle_time_ms=0,
        error_code=error_code(error),
        error_message=error_message(error, detail),
        entries=None if error else [],
    )


def _check_filter(components: list[Any]) -> tuple[Error | None, str]:
    kinds = [one.entity_type for one in components]
    for one in components:
        if one.entity_type not in _QUOTA_ENTITIES:
            return UnsupportedVersionError, f"there are no quotas for {one.entity_type!r}"
        if kinds.count(one.entity_type) > 1:
            return InvalidRequestError, f"the filter has {one.entity_type} more than once"
        if one.match_type == _ANY_NAME and one.match is not None:
            return InvalidRequestError, f"the filter is for any {one.entity_type} and names {one.match!r}"
    return None, ""


def alter_client_quotas(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Quotas cannot be set, and removing one changes nothing."""
    entries = []
    for entry in request.entries:
        error: Error | None = None
        if any(one.entity_type not in _QUOTA_ENTITIES for one in entry.entity) or not entry.entity:
            error, detail = InvalidRequestError, f"quotas are for {', '.join(_QUOTA_ENTITIES)}"
        elif any(not change.remove for change in entry.ops):
            error, detail = UnsupportedVersionError, "this broker has no quotas"
        entries.append(
            _Quota(
                error_code=error_code(error),
                error_message=error_message(error, detail) if error else None,
                entity=[
                    _Quota.EntityData(entity_type=one.entity_type, entity_name=one.entity_name)
                    for one in entry.entity
                ],
            )
        )
    return AlterClientQuotasResponse(throttle_time_ms=0, entries=entries)


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
