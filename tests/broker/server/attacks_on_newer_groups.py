"""Requests of the newer groups that are as large as they may be."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from broker.clients import batch
from broker.server.attack_scene import SLOW, Scene, sending, topic_of
from broker.server.client import WireClient, encoded
from broker.server.samples import produce, streams_heartbeat
from broker.server.share_samples import share_acknowledge, share_fetch

from dafka.broker.codec.messages.consumer_group import ConsumerGroupHeartbeatRequest
from dafka.broker.codec.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from dafka.broker.codec.messages.streams_group import StreamsGroupHeartbeatRequest
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.limits import TOPOLOGY_NAMES
from dafka.hub.hub import get_hub

IN_FLIGHT = 4000  # the most that a group may be set to, unless the broker is started with more
ACCEPT, RELEASE = 1, 2
_names = count()


def acknowledge_each(scene: Scene) -> Callable[[], None]:
    """Half as many records as partitions, or all that may be in flight; every other one is given back."""
    number = next(_names)
    group, topic, records = f"sharers-{number}", f"shared-{number}", min(scene.partitions // 2, IN_FLIGHT)
    scene.ask(topic_of(topic, 1), 5)
    scene.ask(produce(topic, batch(*[b"x"] * records)), 9)
    core = scene.broker._running.core  # type: ignore[union-attr]
    hub = get_hub()
    topic_id = hub.run(core.metadata, [topic]).topics[topic].topic_id
    settings = {
        "share.auto.offset.reset": "earliest",
        "share.partition.max.record.locks": str(IN_FLIGHT),
    }
    changes = [ConfigChange(name, ConfigOperation.SET, value) for name, value in settings.items()]
    (outcome,) = hub.run(core.alter_configs, {Resource(ResourceType.GROUP, group): changes}).values()
    assert outcome.error is None, outcome

    def acknowledge() -> None:
        with WireClient(scene.broker) as wire:
            _acknowledge(wire, group, topic, topic_id, records)

    return acknowledge


def _acknowledge(wire: WireClient, group: str, topic: str, topic_id: Any, records: int) -> None:
    who = {"group_id": group, "member_id": "member"}
    beat = ShareGroupHeartbeatRequest(**who, member_epoch=0, rack_id=None, subscribed_topic_names=[topic])
    assert not wire.ask(beat, 1).error_code
    acquired, session = 0, 0
    while acquired < records:
        asked = share_fetch(topic_id, session, **who, max_records=records, max_wait_ms=1000)
        answer = wire.ask(asked, 1)
        assert not answer.error_code
        session += 1
        for one in answer.responses:  # none, if there was nothing yet
            for some in one.partitions[0].acquired_records:
                acquired += some.last_offset - some.first_offset + 1
    each = share_acknowledge(topic_id, session)
    each.group_id, each.member_id = group, "member"
    Batch = ShareAcknowledgeRequest.AcknowledgeTopic.AcknowledgePartition.AcknowledgementBatch
    each.topics[0].partitions[0].acknowledgement_batches = [
        Batch(
            first_offset=offset,
            last_offset=offset,
            acknowledge_types=[RELEASE if offset % 2 else ACCEPT],
        )
        for offset in range(records)
    ]
    (partition,) = wire.ask(each, 1).responses[0].partitions
    assert not partition.error_code


def alter_share_offsets(scene: Scene) -> Callable[[], None]:
    """Of all partitions, by a group without members."""
    topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    one = topic.AlterShareGroupOffsetsRequestPartition
    partitions = [one(partition_index=number, start_offset=0) for number in range(scene.partitions)]
    request = AlterShareGroupOffsetsRequest(
        group_id=f"altered-{next(_names)}", topics=[topic(topic_name=scene.topic, partitions=partitions)]
    )
    return sending(scene, encoded(request, 0))


def share_very_many_partitions(scene: Scene) -> Callable[[], None]:
    """The first ShareFetch of a session names a tenth of the partitions, all of which have yet to be opened,
    and the next one waits for them."""
    number = next(_names)
    topic = f"shared-{number}"
    partitions = max(scene.partitions // 10, 1)
    scene.ask(topic_of(topic, partitions), 5)
    core = scene.broker._running.core  # type: ignore[union-attr]
    topic_id = get_hub().run(core.metadata, [topic]).topics[topic].topic_id
    who = {"group_id": f"sharers-{number}", "member_id": "member"}
    named = ShareFetchRequest.FetchTopic
    of_all = named(
        topic_id=topic_id,
        partitions=[
            named.FetchPartition(partition_index=one, acknowledgement_batches=[]) for one in range(partitions)
        ],
    )

    def share() -> None:
        with WireClient(scene.broker) as wire:
            wire.socket.settimeout(SLOW)
            beat = ShareGroupHeartbeatRequest(
                **who, member_epoch=0, rack_id=None, subscribed_topic_names=[topic]
            )
            assert not wire.ask(beat, 1).error_code
            for session, topics in enumerate(([of_all], [], [])):
                asked = share_fetch(topic_id, session, **who, topics=topics, max_wait_ms=300)
                assert not wire.ask(asked, 1).error_code

    return share


def get_a_large_assignment(scene: Scene) -> Callable[[], None]:
    """A member of a consumer group reads half as many topics as there are partitions, of ten each."""
    number = next(_names)
    names = [f"read-{number}-{one}" for one in range(min(scene.partitions // 2, 9000))]
    core = scene.broker._running.core  # type: ignore[union-attr]
    get_hub().run(core.create_topics, dict.fromkeys(names, TopicSpec(10)))

    def beat(epoch: int, **joining: Any) -> Any:
        said = {
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "topic_partitions": None,
            **joining,
        }
        return ConsumerGroupHeartbeatRequest(
            group_id=f"readers-{number}",
            member_id="member",
            member_epoch=epoch,
            instance_id=None,
            rack_id=None,
            subscribed_topic_regex=None,
            server_assignor=None,
            **{**said, **joining},
        )

    def read() -> None:
        joining = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": names, "topic_partitions": []}
        with WireClient(scene.broker) as wire:
            answer = wire.ask(beat(0, **joining), 1)
            deadline = time.monotonic() + SLOW
            while answer.assignment is None or not answer.assignment.topic_partitions:
                assert time.monotonic() < deadline
                time.sleep(0.01)
                answer = wire.ask(beat(answer.member_epoch), 1)
            assert len(answer.assignment.topic_partitions) == len(names)

    return read


def join_with_a_large_topology(scene: Scene) -> Callable[[], None]:
    """One of as many subtopologies as there may be, or a twentieth as many as partitions."""
    number = next(_names)
    subtopologies = min(scene.partitions // 20, TOPOLOGY_NAMES // 3) + 1
    names = [f"source-{number}-{one}" for one in range(subtopologies)]
    core = scene.broker._running.core  # type: ignore[union-attr]
    get_hub().run(core.create_topics, dict.fromkeys(names, TopicSpec(1)))
    topology = StreamsGroupHeartbeatRequest.Topology
    joins = streams_heartbeat(
        names[0],
        group_id=f"streams-{number}",
        topology=topology(
            epoch=0,
            subtopologies=[
                topology.Subtopology(
                    subtopology_id=str(place),
                    source_topics=[name],
                    source_topic_regex=[],
                    state_changelog_topics=[
                        topology.Subtopology.TopicInfo(
                            name=f"{name}-changelog", partitions=0, replication_factor=0, topic_configs=[]
                        )
                    ],
                    repartition_sink_topics=[],
                    repartition_source_topics=[],
                    copartition_groups=[],
                )
                for place, name in enumerate(names)
            ],
        ),
    )
    return sending(scene, encoded(joins, 0))
