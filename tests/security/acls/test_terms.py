"""What a filter takes, and which entries there cannot be."""

from __future__ import annotations

import pytest
from kafka.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
)
from kafka.admin import (
    ResourceType as TheirResourceType,
)

from dafka.security.acls.terms import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    why_none,
)

READ = Acl(ResourceType.TOPIC, "tea", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)
PREFIX = READ._replace(name="te", pattern=PatternType.PREFIXED)
EVERY = READ._replace(name="*")


def test_the_numbers_are_kafkas():
    for ours, theirs in (
        (ResourceType, TheirResourceType),
        (PatternType, ACLResourcePatternType),
        (Operation, ACLOperation),
        (Permission, ACLPermissionType),
    ):
        assert {one.name: int(one) for one in ours} == {one.name: int(one) for one in theirs}


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (AclFilter(), {READ, PREFIX, EVERY}),
        (AclFilter(ResourceType.GROUP), set()),
        (AclFilter(name="tea"), {READ}),
        (AclFilter(name="te"), {PREFIX}),
        (AclFilter(name="tea", pattern=PatternType.MATCH), {READ, PREFIX, EVERY}),
        (AclFilter(name="te", pattern=PatternType.MATCH), {PREFIX, EVERY}),
        (AclFilter(name="x", pattern=PatternType.MATCH), {EVERY}),
        (AclFilter(pattern=PatternType.MATCH), {READ, PREFIX, EVERY}),
        (AclFilter(pattern=PatternType.PREFIXED), {PREFIX}),
        (AclFilter(name="tea", pattern=PatternType.PREFIXED), set()),
        (AclFilter(name="*", pattern=PatternType.LITERAL), {EVERY}),
        (AclFilter(principal="User:b"), set()),
        (AclFilter(host="1.1.1.1"), set()),
        (AclFilter(operation=Operation.WRITE), set()),
        (AclFilter(operation=Operation.ALL), set()),
        (AclFilter(permission=Permission.DENY), set()),
        (AclFilter(*READ), {READ}),
    ],
)
def test_a_filter_takes(wanted, taken):
    assert {one for one in (READ, PREFIX, EVERY) if wanted.takes(one)} == taken
    assert wanted.only is None or taken <= {wanted.only}


@pytest.mark.parametrize("field", AclFilter._fields)
def test_a_filter_with_all_fields_takes_one_entry(field):
    assert AclFilter(*READ).only == READ
    assert AclFilter(*READ)._replace(**{field: AclFilter._field_defaults[field]}).only is None
    assert AclFilter(*READ)._replace(pattern=PatternType.MATCH).only is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"pattern": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"operation": Operation.ANY}, "Invalid operation ANY"),
        ({"operation": Operation.ALL}, ""),
        ({"permission": Permission.UNKNOWN}, "Invalid permissionType UNKNOWN"),
        (
            {"resource_type": ResourceType.CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"name": ""}, "Invalid empty resource name"),
        ({"principal": "a"}, "principalType:principalName"),
        ({"principal": "User:"}, "principalType:principalName"),
    ],
)
def test_an_entry_that_cannot_be_is_named(change, words):
    found = why_none(READ._replace(**change))
    assert (words in found) if words else not found


def test_a_filter_with_an_unknown_operation_is_unknown():
    assert not AclFilter().is_unknown
    assert AclFilter(operation=Operation.UNKNOWN).is_unknown
