"""The overview: rates, times of answers, shortages. Figures that a broker cannot give are null."""

from __future__ import annotations

import time
from typing import Any

from kafka.errors import KafkaError

from dafka.broker.interface.records import EARLIEST, LATEST
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.networks.notices import notice
from dafka.console.routes import Routes

routes = Routes()

_OWN = (
    *("records_in", "octets_in", "records_out", "octets_out"),
    *("longest_turn", "connections", "latencies"),
)


@routes.add(
    "GET",
    "/rates",
    "Totals that grow, for the curves of the overview, and the latest latencies; taken once a second",
)
def get_rates(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = desk.sampled(_rates)
    return found


@routes.add("GET", "/notices", "What the broker has warned of lately, and what is short now")
def get_notices(desk: Desk) -> dict[str, Any]:
    desk.check_operator()
    logged = desk.networks.notices
    return {"notices": [*_short(desk), *([] if logged is None else logged.rows())]}


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
        "disk_left": _disk_left(desk),
        **_own(desk),
    }


def _own(desk: Desk) -> dict[str, Any]:
    """Figures that only a broker of this process has."""
    core = desk.networks.core
    if core is None or not desk.is_operator:
        return dict.fromkeys(_OWN)
    listener = desk.networks.beside.listener
    traffic = core.traffic
    records, octets = core.committed
    return {
        "records_in": records,
        "octets_in": octets,
        "records_out": traffic.records,
        "octets_out": traffic.octets,
        "longest_turn": int(1e6 * desk.hub.turns.longest),
        "connections": None if listener is None else desk.run(listener)["listener_connections"],
        "latencies": {
            "produce": desk.run(traffic.produces.quantiles, 0.5, 0.99),
            "fetch": desk.run(traffic.fetches.quantiles, 0.5, 0.99),
        },
    }


def _bytes(desk: Desk) -> int | None:
    try:
        folders = desk.call("log_directories", None)
    except (KafkaError, NotImplementedError):
        return None
    return sum(sum(one.sizes.values()) for one in folders)


def disks(desk: Desk) -> list[dict[str, Any]]:
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


def _disk_left(desk: Desk) -> int | None:
    """Octets left on the disk that has the least."""
    return min((one["usable"] for one in disks(desk) if one["total"] > 0), default=None)


def _short(desk: Desk) -> list[dict[str, Any]]:
    if not desk.has_broker:
        return []
    found = [
        notice(f"{one['path']}: less than {limits.DISK_LEFT:.0%} of the disk is left")
        for one in disks(desk)
        if one["total"] > 0 and one["usable"] < limits.DISK_LEFT * one["total"]
    ]
    core = desk.networks.core
    if core is None:
        return found
    failure = core.write_failure
    if failure is not None:
        found.append(notice(f"nothing is written any more: {failure}", "error"))
    longest = desk.hub.turns.longest_cpu
    if longest > limits.TURN_WARNED:
        found.append(notice(f"a turn of the hub took {1000 * longest:.0f} ms of processor time"))
    return found
