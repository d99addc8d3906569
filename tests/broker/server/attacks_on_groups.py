"""Requests about very many groups, members and committed offsets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import gevent
from broker.server.attack_scene import (
    Scene,
    sending,
)
from broker.server.client import encoded
from kafka.protocol.admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)

from dafka.broker.groups.times import GROUPS
from dafka.broker.interface.groups import CommittedOffset, JoinRequest
from dafka.broker.limits import GROUP_MAX_SIZE
from dafka.hub.hub import get_hub
from dafka.hub.turns import Pace, in_pieces, next_turn


def commit(topic_name: str, group: str, count: int) -> bytes:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    one = topic.OffsetCommitRequestPartition
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[
            topic(
                name=topic_name,
                partitions=[
                    one(
                        partition_index=number,
                        committed_offset=0,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for number in range(count)
                ],
            )
        ],
    )
    return encoded(request, 7)


def commit_offsets(scene: Scene) -> Callable[[], None]:
    return sending(scene, commit(scene.topic, "group", scene.partitions))


def fetch_all_offsets(scene: Scene) -> Callable[[], None]:
    request = OffsetFetchRequest(group_id="group", topics=None, require_stable=False)
    return sending(scene, encoded(request, 7))


def delete_offsets(scene: Scene) -> Callable[[], None]:
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partitions = [
        topic.OffsetDeleteRequestPartition(partition_index=number) for number in range(scene.partitions)
    ]
    return sending(
        scene,
        encoded(
            OffsetDeleteRequest(group_id="group", topics=[topic(name=scene.topic, partitions=partitions)]), 0
        ),
    )


def list_very_many_groups(scene: Scene) -> Callable[[], None]:
    """As many as there are partitions, each of which has committed an offset."""
    _commit_one_each(scene, [f"many-{one}" for one in range(scene.partitions)])
    return sending(scene, encoded(ListGroupsRequest(states_filter=[], types_filter=[]), 5))


def delete_very_many_groups(scene: Scene) -> Callable[[], None]:
    """A tenth as many as there are partitions, each of which has committed an offset."""
    names = [f"deleted-{one}" for one in range(scene.partitions // 10)]
    _commit_one_each(scene, names)
    return sending(scene, encoded(DeleteGroupsRequest(groups_names=names), 2))


def forget_very_many_groups(scene: Scene) -> Callable[[], None]:
    """As many as there are partitions, which had members and have no offsets."""
    core = scene.broker._running.core  # type: ignore[union-attr]
    rows = {(GROUPS, f"forgotten-{one}"): 0 for one in range(scene.partitions)}
    hub = get_hub()
    hub.run(lambda: [core._writer.put_and_wait(dict(some)) for some in in_pieces(rows.items(), 500)])
    (search,) = (one for _, one in core._expiry._due if one.what == "committed offsets")
    return lambda: hub.run(search.forget, Pace().rest)


def _commit_one_each(scene: Scene, groups: list[str]) -> None:
    core = scene.broker._running.core  # type: ignore[union-attr]
    offsets = {(scene.topic, 0): CommittedOffset(0)}

    def commit_all() -> None:
        for some in in_pieces(groups, 500):
            gevent.joinall([gevent.spawn(core.commit_offsets, one, offsets) for one in some])

    get_hub().run(commit_all)


def describe_large_group(scene: Scene) -> Callable[[], None]:
    """One with as many members as it may have, all of which have their assignments."""
    core = scene.broker._running.core  # type: ignore[union-attr]
    group = f"described-{next(_groups)}"
    request = JoinRequest("", 600.0, 600.0, "consumer", [("range", b"x" * 100)])

    def member() -> None:
        next_turn()
        joined = core.join_group(group, request)
        assignments = {one.member_id: b"x" * 100 for one in joined.members}
        core.sync_group(group, joined.generation, joined.member_id, assignments=assignments)

    def join_all() -> None:
        members = min(scene.partitions // 10, GROUP_MAX_SIZE)
        greens = [gevent.spawn(member) for _ in Pace().over(range(members))]
        gevent.joinall(greens, timeout=5.0)
        for green in Pace().over(greens):
            green.kill(block=False)

    get_hub().run(join_all)
    described = DescribeGroupsRequest(groups=[group] * 5, include_authorized_operations=False)
    return sending(scene, encoded(described, 5))


def join_large_group(scene: Scene) -> Callable[[], None]:
    """As many members as a group may have, or a tenth of the partitions, all of which join at once."""
    core = scene.broker._running.core  # type: ignore[union-attr]
    members = min(scene.partitions // 10, GROUP_MAX_SIZE)
    group = f"large-{next(_groups)}"

    def join_all() -> None:
        request = JoinRequest("", 10.0, 1.0, "consumer", [("range", b"x" * 100)])

        def join() -> None:
            next_turn()
            core.join_group(group, request)

        greens = []
        for _ in Pace().over(range(members)):
            greens.append(gevent.spawn(join))
        gevent.joinall(greens, timeout=5.0)
        for green in Pace().over(greens):
            green.kill(block=False)

    return lambda: get_hub().run(join_all)


_groups = count()
