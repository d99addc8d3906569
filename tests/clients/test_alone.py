"""What tools ask of a cluster is answered as by an Apache Kafka of one node, with the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from broker.server.admin_samples import ANY_ACL
from broker.server.client import WireClient
from clients.conftest import MakeTopic
from clients.servers import Server
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeUserScramCredentialsRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

FINE, UNKNOWN_PARTITION, UNSUPPORTED_VERSION, INVALID_PARTITIONS = 0, 3, 35, 37
INVALID_ASSIGNMENT, INVALID_REQUEST, SECURITY_DISABLED, LOG_DIR_NOT_FOUND = 39, 42, 54, 57
NO_REASSIGNMENT, NOT_FOUND, INVALID_UPDATE = 85, 91, 95

NODE, STRANGER = "node", 77


@pytest.fixture
def wire(server: Server) -> Iterator[WireClient]:
    with WireClient(server) as wire:  # type: ignore[arg-type]  # it has an address, too
        yield wire


@pytest.fixture
def node(wire: WireClient) -> int:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    return int(wire.ask(request, 9).brokers[0].node_id)


@pytest.mark.parametrize(
    ("count", "assignments", "error"),
    [
        (2, None, FINE),
        (2, [[NODE]], FINE),
        (2, [], INVALID_ASSIGNMENT),
        (2, [[]], INVALID_ASSIGNMENT),
        (2, [[STRANGER]], INVALID_ASSIGNMENT),
        (2, [[NODE, NODE]], INVALID_ASSIGNMENT),
        (3, [[NODE]], INVALID_ASSIGNMENT),
        (1, None, INVALID_PARTITIONS),
        (1, [], INVALID_PARTITIONS),
        (0, [], INVALID_PARTITIONS),
    ],
)
def test_partitions_are_added_where_the_assignments_say_what_is_true(
    wire: WireClient, node: int, new_topic: MakeTopic, count: int, assignments: Any, error: int
) -> None:
    part = CreatePartitionsRequest.CreatePartitionsTopic
    if assignments is not None:
        assignments = [
            part.CreatePartitionsAssignment(broker_ids=[node if one == NODE else one for one in brokers])
            for brokers in assignments
        ]
    topic = part(name=new_topic(1), count=count, assignments=assignments)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
    (answer,) = wire.ask(request, 3).results
    assert answer.error_code == error
    assert bool(answer.error_message) == bool(error)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("replicas", "number", "error"),
    [
        ([NODE], 0, FINE),
        ([NODE, STRANGER], 0, INVALID_ASSIGNMENT),
        ([STRANGER], 0, INVALID_ASSIGNMENT),
        ([NODE, NODE], 0, INVALID_ASSIGNMENT),
        ([], 0, INVALID_ASSIGNMENT),
        (None, 0, NO_REASSIGNMENT),
        ([NODE], 9, UNKNOWN_PARTITION),
    ],
)
def test_partitions_stay_where_they_are(
    wire: WireClient, node: int, new_topic: MakeTopic, version: int, replicas: Any, number: int, error: int
) -> None:
    moved = AlterPartitionReassignmentsRequest.ReassignableTopic
    brokers = None if replicas is None else [node if one == NODE else one for one in replicas]
    partition = moved.ReassignablePartition(partition_index=number, replicas=brokers)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        allow_replication_factor_change=True,
        topics=[moved(name=new_topic(1), partitions=[partition])],
    )
    answer = wire.ask(request, version)
    assert answer.error_code == FINE
    assert answer.responses[0].partitions[0].error_code == error


@pytest.mark.parametrize("version", [1, 2])
def test_replicas_stay_in_their_folder(wire: WireClient, new_topic: MakeTopic, version: int) -> None:
    topic = new_topic(1)
    (folder,) = wire.ask(DescribeLogDirsRequest(topics=None), 4).results

    def move(path: str, name: str, number: int) -> int:
        moved = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        topics = [moved.AlterReplicaLogDirTopic(name=name, partitions=[number])]
        request = AlterReplicaLogDirsRequest(dirs=[moved(path=path, topics=topics)])
        return int(wire.ask(request, version).results[0].partitions[0].error_code)

    assert move(folder.log_dir, topic, 0) == FINE
    assert move(folder.log_dir, topic, 7) == UNKNOWN_PARTITION
    assert move(folder.log_dir, "no-such-topic", 0) == UNKNOWN_PARTITION
    assert move("/nowhere", topic, 0) == LOG_DIR_NOT_FOUND
    assert move("relative", topic, 0) == LOG_DIR_NOT_FOUND


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_node_is_the_only_voter(wire: WireClient, node: int, new_topic: MakeTopic, version: int) -> None:
    def describe(name: str) -> Any:
        part = DescribeQuorumRequest.TopicData
        topics = [part(topic_name=name, partitions=[part.PartitionData(partition_index=0)])]
        return wire.ask(DescribeQuorumRequest(topics=topics), version)

    answer = describe("__cluster_metadata")
    partition = answer.topics[0].partitions[0]
    assert (answer.error_code, partition.error_code, partition.leader_id) == (FINE, FINE, node)
    assert [one.replica_id for one in partition.current_voters] == [node]
    assert partition.current_voters[0].log_end_offset == partition.high_watermark
    assert list(partition.observers) == []
    if version == 2:
        assert [one.node_id for one in answer.nodes] == [node]
    assert describe(new_topic(1)).topics[0].partitions[0].error_code == UNKNOWN_PARTITION


@pytest.mark.parametrize("version", [0, 1])
def test_filters_and_entities_of_quotas_are_checked(wire: WireClient, version: int) -> None:
    part = DescribeClientQuotasRequest.ComponentData

    def describe(*filters: tuple[str, int, str | None]) -> Any:
        components = [part(entity_type=kind, match_type=how, match=name) for kind, how, name in filters]
        return wire.ask(DescribeClientQuotasRequest(components=components, strict=False), version)

    assert (describe().error_code, list(describe().entries)) == (FINE, [])
    assert describe(("user", 2, None)).error_code == FINE
    assert describe(("user", 0, "a"), ("client-id", 1, None)).error_code == FINE
    assert describe(("nonsense", 2, None)).error_code == UNSUPPORTED_VERSION
    assert describe(("user", 2, "a")).error_code == INVALID_REQUEST
    assert describe(("user", 0, "a"), ("user", 0, "b")).error_code == INVALID_REQUEST

    entry = AlterClientQuotasRequest.EntryData

    def alter(kind: str, remove: bool) -> int:
        change = entry.OpData(key="producer_byte_rate", value=1000.0, remove=remove)
        entity = [entry.EntityData(entity_type=kind, entity_name="a")]
        entries = [entry(entity=entity, ops=[change])]
        request = AlterClientQuotasRequest(entries=entries, validate_only=True)
        return int(wire.ask(request, version).entries[0].error_code)

    assert alter("user", remove=True) == FINE
    assert alter("nonsense", remove=False) == INVALID_REQUEST
    assert alter("user", remove=False) == FINE


UP, DOWN, FORCED = 1, 2, 3
REFUSED_LEVELS = [
    ("nonsense", 1, UP),
    ("metadata.version", 29, UP),
    ("metadata.version", 29, DOWN),
    ("metadata.version", 29, FORCED),
    ("metadata.version", 6, DOWN),
    ("metadata.version", 31, UP),
    ("eligible.leader.replicas.version", 2, UP),
    ("eligible.leader.replicas.version", -1, UP),
    ("eligible.leader.replicas.version", 0, UP),
    ("eligible.leader.replicas.version", 0, 7),
]


def features(wire: WireClient) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    return {one.name: one.max_version_level for one in wire.ask(request, 4).finalized_features}


def update(wire: WireClient, version: int, name: str, level: int, type_: int = UP) -> int:
    part = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=name, max_version_level=level, allow_downgrade=type_ != UP, upgrade_type=type_
    )
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[part], validate_only=False)
    response = wire.ask(request, version)
    assert [one.feature for one in response.results or ()] in ([], [name])
    return int(response.error_code)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_levels_of_features_that_cannot_be_had_are_refused(wire: WireClient, version: int) -> None:
    before = features(wire)
    assert before["metadata.version"] == 30
    assert update(wire, version, "metadata.version", 30) == FINE
    for wanted in REFUSED_LEVELS:
        if version or wanted[2] == UP:  # version 0 cannot say more
            assert update(wire, version, *wanted) == INVALID_UPDATE, wanted
    assert features(wire) == before


def test_levels_of_features_go_down_and_up(wire: WireClient) -> None:
    name = "eligible.leader.replicas.version"
    before = features(wire)
    assert before[name] == 1
    assert update(wire, 0, name, 0, DOWN) == INVALID_UPDATE
    for type_ in (DOWN, FORCED):
        assert update(wire, 2, name, 0, type_) == FINE
        assert name not in features(wire)
        assert update(wire, 2, name, 1, type_) == INVALID_UPDATE
        assert update(wire, 0, name, 1) == FINE
    assert features(wire) == before


def test_there_are_no_users(wire: WireClient) -> None:
    everybody = wire.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert (everybody.error_code, list(everybody.results)) == (FINE, [])
    one = DescribeUserScramCredentialsRequest.UserName(name="a")
    (answer,) = wire.ask(DescribeUserScramCredentialsRequest(users=[one]), 0).results
    assert (answer.user, answer.error_code) == ("a", NOT_FOUND)
    deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="a", mechanism=1)
    request = AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])
    assert [one.error_code for one in wire.ask(request, 0).results] == [NOT_FOUND]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_there_is_no_authorizer(wire: WireClient, version: int) -> None:
    assert wire.ask(DescribeAclsRequest(**ANY_ACL), version).error_code == SECURITY_DISABLED
    creation = CreateAclsRequest.AclCreation(
        resource_type=2,
        resource_name="t",
        resource_pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    answers = wire.ask(CreateAclsRequest(creations=[creation, creation]), version).results
    assert [one.error_code for one in answers] == [SECURITY_DISABLED] * 2
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**ANY_ACL)])
    answers = wire.ask(request, version).filter_results
    assert [one.error_code for one in answers] == [SECURITY_DISABLED]
