"""The authorized operations that are reported to clients."""

from __future__ import annotations

from kafka.protocol.admin import ACLOperation

from dafka.broker.server.answers.operations import CLUSTER_OPERATIONS, GROUP_OPERATIONS, TOPIC_OPERATIONS


def test_without_an_authorizer_all_operations_of_a_resource_are_reported():
    every = CLUSTER_OPERATIONS | GROUP_OPERATIONS | TOPIC_OPERATIONS
    assert {one.name for one in every} == {ACLOperation(int(one)).name for one in every}
    assert {one.name for one in GROUP_OPERATIONS} == {
        *("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    }
    assert len(TOPIC_OPERATIONS) == 8 and len(CLUSTER_OPERATIONS) == 7
