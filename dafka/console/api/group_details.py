"""Details of some kinds of groups: states of delivery of share groups, topologies of Kafka Streams."""

from __future__ import annotations

from typing import Any

from kafka.errors import ClusterAuthorizationFailedError, KafkaError

from dafka.broker.interface.groups import GroupType
from dafka.broker.interface.streams_groups import Subtopology, Tasks, TaskShare
from dafka.broker.looking.outcomes import RefusedError, check
from dafka.console import limits
from dafka.console.desk import Desk


def details(desk: Desk, name: str, kind: GroupType) -> dict[str, Any]:
    """``deliveries`` of a share group, ``topology`` and ``tasks`` of a streams group; null otherwise.

    ``deliveries`` is null as well where the broker does not tell them: one elsewhere only tells its stored
    states, to users with the right CLUSTER_ACTION; ``acquired`` and ``ahead`` are null then.
    """
    found: dict[str, Any] = {"deliveries": None, "topology": None, "tasks": None}
    if kind is GroupType.SHARE:
        found["deliveries"] = _deliveries(desk, name)
    elif kind is GroupType.STREAMS:
        found |= _streams(desk, name)
    return found


def _deliveries(desk: Desk, name: str) -> list[dict[str, Any]] | None:
    try:
        standings = desk.call("share_standings", name)
        check({f"group {name}": standings})
    except (KafkaError, RefusedError, NotImplementedError):
        return None
    if any(one.error is ClusterAuthorizationFailedError for one in standings.partitions.values()):
        return None
    return [
        {
            "topic": topic,
            "partition": number,
            "start": one.start,
            "end": one.end,
            "ahead": one.ahead,
            "available": one.available,
            "acquired": one.acquired,
            "acknowledged": one.acknowledged,
            "archived": one.archived,
            "deliveries": {str(times): count for times, count in sorted(one.deliveries.items())},
            "holders": {
                member: one.holders[member] for member in sorted(one.holders)[: limits.HEADERS_SHOWN]
            },
        }
        for (topic, number), one in sorted(standings.partitions.items())[: limits.PARTITIONS_ASKED]
        if one.error is None
    ]


def _streams(desk: Desk, name: str) -> dict[str, Any]:
    group = desk.call("describe_streams_groups", [name])[name]
    check({f"group {name}": group})
    topology = None
    if group.topology is not None:
        topology = {
            "epoch": group.topology.epoch,
            "subtopologies": [_subtopology(one) for one in group.topology.subtopologies[: limits.FOUND]],
        }
    tasks = [
        {
            "member": one.member_id,
            "client": one.client_id,
            "epoch": one.epoch,
            "topology_epoch": one.topology_epoch,
            "process": one.process_id,
            "endpoint": None if one.endpoint is None else f"{one.endpoint.host}:{one.endpoint.port}",
            "assigned": _shares(one.assigned),
            "target": _shares(one.target),
        }
        for one in group.members[: limits.FOUND]
    ]
    return {"topology": topology, "tasks": tasks}


def _subtopology(one: Subtopology) -> dict[str, Any]:
    return {
        "name": one.name,
        "sources": sorted(one.sources),
        "repartition_sources": [topic.name for topic in one.repartition_sources],
        "repartition_sinks": sorted(one.repartition_sinks),
        "changelogs": [topic.name for topic in one.changelogs],
    }


def _shares(share: TaskShare) -> dict[str, list[str]]:
    """Tasks by role, as Kafka Streams names them: subtopology_partition."""
    return {
        "active": _names(share.active),
        "standby": _names(share.standby),
        "warmup": _names(share.warmup),
    }


def _names(tasks: Tasks) -> list[str]:
    names = [f"{name}_{number}" for name, numbers in sorted(tasks.items()) for number in sorted(numbers)]
    return names[: limits.PARTITIONS_ASKED]
