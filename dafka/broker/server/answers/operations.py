"""The authorized operations that Kafka reports without an authorizer: all of each kind of resource."""

from __future__ import annotations

from dafka.security.acls.terms import OPERATIONS, ResourceType

CLUSTER_OPERATIONS = OPERATIONS[ResourceType.CLUSTER]
TOPIC_OPERATIONS = OPERATIONS[ResourceType.TOPIC]
GROUP_OPERATIONS = OPERATIONS[ResourceType.GROUP]
