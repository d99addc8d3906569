"""Access control lists in the fields of kafka-python's messages."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, TypeVar

from kafka.protocol.admin.acl import CreateAclsRequest

from dafka.security.acls.terms import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

E = TypeVar("E", bound=IntEnum)


def member(kind: type[E], number: int) -> E:
    """The member of that number; of an unknown number UNKNOWN, as in Kafka."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def acl_of(pattern: Any, entry: Any) -> Acl:
    """An entry, from what a response says of its pattern and of itself."""
    return Acl(
        member(ResourceType, pattern.resource_type),
        pattern.resource_name,
        member(PatternType, pattern.pattern_type),
        entry.principal,
        entry.host,
        member(Operation, entry.operation),
        member(Permission, entry.permission_type),
    )


def acls_of_resources(resources: Iterable[Any]) -> list[Acl]:
    """The entries of a DescribeAcls response."""
    return [acl_of(resource, entry) for resource in resources for entry in resource.acls]


def creation_of(acl: Acl) -> Any:
    """An entry of a CreateAcls request."""
    return CreateAclsRequest.AclCreation(
        resource_type=int(acl.resource_type),
        resource_name=acl.name,
        resource_pattern_type=int(acl.pattern),
        principal=acl.principal,
        host=acl.host,
        operation=int(acl.operation),
        permission_type=int(acl.permission),
    )


def created(creation: Any) -> Acl:
    """The inverse of :func:`creation_of`."""
    return Acl(
        member(ResourceType, creation.resource_type),
        creation.resource_name or "",
        member(PatternType, creation.resource_pattern_type),
        creation.principal or "",
        creation.host or "",
        member(Operation, creation.operation),
        member(Permission, creation.permission_type),
    )


def filter_fields(wanted: AclFilter) -> dict[str, Any]:
    """The fields of a filter, in DescribeAcls and DeleteAcls requests."""
    return {
        "resource_type_filter": int(wanted.resource_type),
        "resource_name_filter": wanted.name,
        "pattern_type_filter": int(wanted.pattern),
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": int(wanted.operation),
        "permission_type": int(wanted.permission),
    }


def filter_of(asked: Any) -> AclFilter:
    """The inverse of :func:`filter_fields`."""
    return AclFilter(
        member(ResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        member(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        member(Operation, asked.operation),
        member(Permission, asked.permission_type),
    )
