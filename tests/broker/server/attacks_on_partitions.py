"""Requests for very many partitions of one topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.clients import batch
from broker.server.attack_scene import (
    SMALL,
    Scene,
    metadata_topic,
    requests_for,
    sending,
    topic_of,
)
from broker.server.client import encoded
from broker.server.samples import fetch, produce
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    DeleteRecordsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
)
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import MetadataRequest

from dafka.broker.interface.topics import TopicSpec
from dafka.hub.hub import get_hub


def create_topic(scene: Scene) -> Callable[[], None]:
    requests = requests_for(scene.topic, scene.partitions)
    return sending(scene, *(encoded(request, version) for request, version in requests))


def extend_topic(scene: Scene) -> Callable[[], None]:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(
        name=scene.topic, count=scene.partitions + 1000, assignments=None
    )
    return sending(
        scene, encoded(CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False), 1)
    )


def all_metadata() -> Any:
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def metadata_of_all(scene: Scene) -> Callable[[], None]:
    return sending(scene, encoded(all_metadata(), 9), connections=8)


def metadata_of_the_topic(scene: Scene) -> Callable[[], None]:
    request = MetadataRequest(topics=[metadata_topic(scene.topic)], allow_auto_topic_creation=False)
    return sending(scene, encoded(request, 1))


def describe_partitions(scene: Scene) -> Callable[[], None]:
    request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2000, cursor=None)
    return sending(scene, *[encoded(request, 0)] * 5)


def describe_log_dirs(scene: Scene) -> Callable[[], None]:
    return sending(scene, encoded(DescribeLogDirsRequest(topics=None), 1))


def describe_configs(scene: Scene) -> Callable[[], None]:
    """A tenth as many topics as there are partitions, with the documentation of all their settings."""
    names = [f"configured-{scene.topic}-{number}" for number in range(scene.partitions // 10)]
    core = scene.broker._running.core  # type: ignore[union-attr]
    get_hub().run(core.create_topics, dict.fromkeys(names, TopicSpec(1)))
    described = DescribeConfigsRequest.DescribeConfigsResource
    resources = [described(resource_type=2, resource_name=name, configuration_keys=None) for name in names]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True)
    return sending(scene, encoded(request, 4))


def fetch_quiet_partitions(scene: Scene) -> Callable[[], None]:
    offsets = [0] * scene.partitions
    once = encoded(fetch(scene.topic, *offsets, wait=300), 11)
    return sending(scene, once, once)


def fetch_in_a_session(scene: Scene) -> Callable[[], None]:
    """A full fetch, then incremental ones, each of which waits for records that do not come."""
    full = encoded(fetch(scene.topic, *[0] * scene.partitions, session_epoch=0), 11)

    def send() -> None:
        with scene.attackers() as (client,):
            client.socket.sendall(full)
            session = int.from_bytes(client.receive_frame()[10:14], "big")
            assert session or scene.partitions > 200_000
            for epoch in range(1, 6):
                more = fetch(scene.topic, wait=200, session_id=session, session_epoch=epoch, topics=[])
                client.socket.sendall(encoded(more, 11))
                client.receive_frame()

    return send


def produce_to_all(scene: Scene) -> Callable[[], None]:
    content = batch(b"x")
    return sending(scene, encoded(produce(scene.topic, *[content] * scene.partitions), 9))


def produce_many_batches(scene: Scene) -> Callable[[], None]:
    return sending(scene, encoded(produce(SMALL, batch(b"x") * min(scene.partitions, 190_000)), 9))


def produce_a_large_record(scene: Scene) -> Callable[[], None]:
    """As large as a topic's configuration allows, or smaller by as much as there are fewer partitions."""
    size = min(2000 * scene.partitions, 10_000_000)
    scene.ask(topic_of("large", 1, max_message_bytes="20000000"), 5)
    return sending(scene, *5 * [encoded(produce("large", batch(bytes(size))), 9)])


def list_offsets(scene: Scene) -> Callable[[], None]:
    listed = ListOffsetsRequest.ListOffsetsTopic
    one = listed.ListOffsetsPartition
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[
            listed(
                name=scene.topic,
                partitions=[
                    one(partition_index=number, current_leader_epoch=-1, timestamp=-1)
                    for number in range(scene.partitions)
                ],
            )
        ],
    )
    return sending(scene, encoded(request, 5))


def offsets_for_epochs(scene: Scene) -> Callable[[], None]:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    one = topic.OffsetForLeaderPartition
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            topic(
                topic=scene.topic,
                partitions=[
                    one(partition=number, current_leader_epoch=-1, leader_epoch=0)
                    for number in range(scene.partitions)
                ],
            )
        ],
    )
    return sending(scene, encoded(request, 3))


def delete_records(scene: Scene) -> Callable[[], None]:
    topic = DeleteRecordsRequest.DeleteRecordsTopic
    one = topic.DeleteRecordsPartition
    partitions = [one(partition_index=number, offset=0) for number in range(scene.partitions)]
    request = DeleteRecordsRequest(topics=[topic(name=scene.topic, partitions=partitions)], timeout_ms=10_000)
    return sending(scene, encoded(request, 1))
