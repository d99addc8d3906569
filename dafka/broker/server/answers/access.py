"""Answers about ACLs, SCRAM users and quotas, none of which this broker has.

Describing finds none, removing a missing one is answered as by Kafka, and setting one is refused.
"""

from __future__ import annotations

from typing import Any

from kafka.errors import (
    InvalidRequestError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnsupportedVersionError,
)
from kafka.protocol.admin.acl import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from kafka.protocol.admin.client_quotas import AlterClientQuotasResponse, DescribeClientQuotasResponse
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.server.context import Context

_NO_AUTHORIZER = "this broker has no ACLs"
_QUOTA_ENTITIES = ("user", "client-id", "ip")
_ANY_NAME = 2  # the match type of a quota filter that accepts any name

_Quota = AlterClientQuotasResponse.EntryData
_User = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def describe_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return DescribeAclsResponse(
        throttle_time_ms=0,
        error_code=error_code(SecurityDisabledError),
        error_message=_NO_AUTHORIZER,
        resources=[],
    )


def create_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    result = CreateAclsResponse.AclCreationResult
    refused = result(error_code=error_code(SecurityDisabledError), error_message=_NO_AUTHORIZER)
    return CreateAclsResponse(throttle_time_ms=0, results=[refused for _ in request.creations])


def delete_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    result = DeleteAclsResponse.DeleteAclsFilterResult
    refused = result(
        error_code=error_code(SecurityDisabledError), error_message=_NO_AUTHORIZER, matching_acls=[]
    )
    return DeleteAclsResponse(throttle_time_ms=0, filter_results=[refused for _ in request.filters])


def describe_user_scram_credentials(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """There are no SCRAM users."""
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        results=[
            _User(
                user=one.name,
                error_code=error_code(ResourceNotFoundError),
                error_message=f"there is no SCRAM user {one.name!r}",
                credential_infos=[],
            )
            for one in request.users or ()
        ],
    )


def alter_user_scram_credentials(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """SCRAM users can neither be set nor found for deletion."""
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    errors: dict[str, Error] = {one.name: ResourceNotFoundError for one in request.deletions}
    errors.update({one.name: UnsupportedVersionError for one in request.upsertions})
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=0,
        results=[
            result(user=name, error_code=error_code(error), error_message="this broker has no SCRAM users")
            for name, error in errors.items()
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
