"""The cluster as a whole."""

from __future__ import annotations

import time
from typing import Any

from kafka.errors import KafkaError

from dafka.broker.interface.records import EARLIEST, LATEST
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.routes import Routes

routes = Routes()


@routes.add("GET", "/cluster", "Brokers, what this console may do, and how full the disks are")
def get_cluster(desk: Desk) -> dict[str, Any]:
    found = desk.call("metadata", ())
    return {
        "cluster_id": found.cluster_id,
        "controller": found.controller_id,
        "brokers": [{"id": id_, "host": host, "port": port} for id_, host, port in found.brokers],
        "embedded": not desk.broker.is_remote,
        "writes": desk.writes,
        "user": desk.user,
        "disks": _disks(desk),
    }


@routes.add("GET", "/rates", "Totals that grow, for the curves of the overview; taken once a second")
def get_rates(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = desk.sampled(_rates)
    return found


def _rates(desk: Desk) -> dict[str, Any]:
    topics = desk.call("metadata", None).topics.values()
    keys = [(one.name, part.number) for one in topics for part in one.partitions]
    asked = keys[: limits.PARTITIONS_ASKED]
    end, first = (desk.call("list_offsets", dict.fromkeys(asked, place)) for place in (LATEST, EARLIEST))
    known = [key for key in asked if end[key].error is None and first[key].error is None]
    written = sum(end[key].offset for key in known)
    return {
        "time": time.time(),
        "topics": len(topics),
        "partitions": len(keys),
        "groups": len(desk.call("list_groups")),
        "written": written,
        "records": written - sum(first[key].offset for key in known),
        "bytes": _bytes(desk),
        "partial": len(asked) < len(keys),
        "longest_turn": None if desk.broker.is_remote else int(1e6 * desk.hub.turns.longest),
    }


def _bytes(desk: Desk) -> int | None:
    try:
        folders = desk.call("log_directories", None)
    except (KafkaError, NotImplementedError):
        return None
    return sum(sum(one.sizes.values()) for one in folders)


def _disks(desk: Desk) -> list[dict[str, Any]]:
    """The folders of records; none if the broker does not say."""
    try:
        folders = desk.call("log_directories", ())
    except (KafkaError, NotImplementedError):
        return []
    return [
        {"path": one.path, "total": one.total_bytes, "usable": one.usable_bytes}
        for one in folders
        if one.error is None
    ]
