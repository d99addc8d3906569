"""Topics: a list that stays fast, one of them, and every change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timezone
from typing import Any

from kafka.errors import KafkaError

from dafka.broker.interface.records import EARLIEST, LATEST
from dafka.broker.interface.topics import TopicMetadata, TopicSpec
from dafka.broker.looking.outcomes import check
from dafka.broker.looking.places import Place, offsets_of, parse_place
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.errors import ApiError
from dafka.console.routes import FLAG, PARTITION, TEXT, TOPIC, Parameter, Routes, list_of, thing

routes = Routes()

_TOTAL = {"type": "integer", "minimum": 1, "maximum": 100_000}
THE_TOPIC = Parameter("topic", TOPIC, "The topic's name", required=True)
SETTINGS = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 100_000}}


@routes.add(
    "GET",
    "/topics",
    "A page of the list of topics",
    Parameter("search", TEXT, "Only names with this in them, in any case of letters", default=""),
    Parameter("internal", FLAG, "Also those that begin with two underscores", default=False),
    Parameter("sort", {"enum": ["name", "partitions"]}, "By what", default="name"),
    Parameter("descending", FLAG, "The largest first", default=False),
    Parameter("skip", {"type": "integer", "minimum": 0, "maximum": 10_000_000}, "So many before", default=0),
    Parameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": limits.TOPICS_SHOWN}, "At most", default=100
    ),
)
def list_topics(
    desk: Desk, search: str, internal: bool, sort: str, descending: bool, skip: int, limit: int
) -> dict[str, Any]:
    found = desk.call("metadata", None).topics
    wanted = search.lower()
    matching = [name for name in found if wanted in name.lower() and (internal or not name.startswith("__"))]
    matching.sort(reverse=descending)
    if sort == "partitions":
        matching.sort(key=lambda name: len(found[name].partitions), reverse=descending)
    page = [found[name] for name in matching[skip : skip + limit]]
    records, sizes = _records(desk, page), _sizes(desk, [one.name for one in page])
    return {
        "total": len(found),
        "matching": len(matching),
        "topics": [
            {
                "name": one.name,
                "partitions": len(one.partitions),
                "internal": one.name.startswith("__"),
                "records": records.get(one.name),
                "bytes": None if sizes is None else sum(sizes.get(one.name, {}).values()),
            }
            for one in page
        ],
    }


@routes.add("GET", "/topics/{topic}", "A topic's partitions with their offsets and sizes", THE_TOPIC)
def get_topic(desk: Desk, topic: str) -> dict[str, Any]:
    found = existing(desk, topic)
    own = None if desk.broker.is_remote else desk.call("metadata", ()).controller_id
    keys = [(topic, one.number) for one in found.partitions]
    first, end, stable = (
        desk.call("list_offsets", dict.fromkeys(keys, place), read_committed=committed)
        for place, committed in ((EARLIEST, False), (LATEST, False), (LATEST, True))
    )
    sizes = (_sizes(desk, [topic]) or {}).get(topic, {})

    def offset(listed: dict[Any, Any], key: tuple[str, int]) -> int | None:
        one = listed.get(key)
        return None if one is None or one.error is not None else one.offset

    return {
        "name": topic,
        "id": str(found.topic_id),
        "internal": topic.startswith("__"),
        "partitions": [
            {
                "partition": one.number,
                "leader": own if one.leader is None else one.leader,
                "leader_epoch": one.leader_epoch,
                "writable": one.writable,
                "address": one.address,
                "first": offset(first, (topic, one.number)),
                "end": offset(end, (topic, one.number)),
                "last_stable": offset(stable, (topic, one.number)),
                "bytes": sizes.get(one.number),
            }
            for one in sorted(found.partitions)
        ],
    }


@routes.add(
    "GET", "/topics/{topic}/producers", "The idempotent producers that its partitions know", THE_TOPIC
)
def get_producers(desk: Desk, topic: str) -> dict[str, Any]:
    keys = [(topic, one.number) for one in existing(desk, topic).partitions]
    found = desk.call("describe_producers", keys)
    rows = [
        {
            "partition": number,
            "producer_id": one.producer_id,
            "epoch": one.epoch,
            "last_sequence": one.last_sequence,
            "last_timestamp": one.last_timestamp,
            "transaction_start": None if one.transaction_start < 0 else one.transaction_start,
        }
        for (_, number), outcome in sorted(found.items())
        if outcome.error is None
        for one in outcome.producers
    ]
    return {"total": len(rows), "producers": rows[: limits.FOUND]}


@routes.add(
    "POST",
    "/topics",
    "Create a topic, or only check whether it could be",
    body=thing(["name"], name=TOPIC, partitions=_TOTAL, configs=SETTINGS, check_only=FLAG),
)
def create_topic(desk: Desk, body: Any) -> dict[str, Any]:
    name = body["name"]
    spec = TopicSpec(body.get("partitions", -1), body.get("configs", {}))
    check(desk.call("create_topics", {name: spec}, validate_only=body.get("check_only", False)))
    return {"name": name}


@routes.add("DELETE", "/topics/{topic}", "Delete a topic with its records", THE_TOPIC)
def delete_topic(desk: Desk, topic: str) -> dict[str, Any]:
    check(desk.call("delete_topics", [topic]))
    return {"name": topic}


@routes.add(
    "POST", "/topics/{topic}/partitions", "Add partitions", THE_TOPIC, body=thing(["total"], total=_TOTAL)
)
def add_partitions(desk: Desk, topic: str, body: Any) -> dict[str, Any]:
    check(desk.call("create_partitions", {topic: body["total"]}))
    return {"name": topic, "partitions": body["total"]}


@routes.add(
    "POST",
    "/topics/{topic}/empty",
    "Delete the records of a topic, or the older ones, and keep the topic",
    THE_TOPIC,
    body=thing(partitions=list_of(PARTITION, 100_000), before=TEXT),
)
def empty_topic(desk: Desk, topic: str, body: Any) -> dict[str, Any]:
    """``before``: latest, an offset, a time, 7d, -1000 ..."""
    keys = chosen(desk, topic, body.get("partitions"))
    offsets = offsets_of(desk, place_of(body.get("before", "latest")), keys)
    outcomes = desk.call("delete_records", offsets)
    check(outcomes)
    return {
        "partitions": [
            {"partition": number, "first": one.low_watermark} for (_, number), one in sorted(outcomes.items())
        ]
    }


def place_of(text: str) -> Place:
    """The place that is meant: a time that names no zone is UTC, as the pages show times."""
    return parse_place(text, timezone.utc)


def existing(desk: Desk, topic: str) -> TopicMetadata:
    """A topic. Raises RefusedError if there is none."""
    found: TopicMetadata = desk.call("metadata", [topic]).topics[topic]
    check({f"topic {topic}": found})
    return found


def chosen(desk: Desk, topic: str, partitions: Iterable[int] | None) -> list[tuple[str, int]]:
    """The partitions of a topic, or those that are named. Raises RefusedError and ApiError."""
    numbers = sorted(one.number for one in existing(desk, topic).partitions)
    wanted = numbers if partitions is None else sorted(set(partitions))
    if missing := set(wanted) - set(numbers):
        raise ApiError(f"{topic} has no partition {min(missing)}, but {len(numbers)} partitions")
    return [(topic, number) for number in wanted]


def _records(desk: Desk, topics: list[TopicMetadata]) -> dict[str, int]:
    """How many offsets each of some topics has, as far as that is not too much to ask."""
    keys: list[tuple[str, int]] = []
    for topic in topics:
        if len(keys) + len(topic.partitions) <= limits.PARTITIONS_ASKED:
            keys += [(topic.name, one.number) for one in topic.partitions]
    first, end = (desk.call("list_offsets", dict.fromkeys(keys, place)) for place in (EARLIEST, LATEST))
    found: dict[str, int] = {}
    for key in keys:
        if first[key].error is None and end[key].error is None:
            found[key[0]] = found.get(key[0], 0) + end[key].offset - first[key].offset
    return found


def _sizes(desk: Desk, topics: list[str]) -> dict[str, dict[int, int]] | None:
    """Octets of each partition of some topics; None if the broker does not say."""
    try:
        folders = desk.call("log_directories", topics)
    except (KafkaError, NotImplementedError):
        return None
    found: dict[str, dict[int, int]] = {}
    for folder in folders:
        for (topic, number), size in folder.sizes.items():
            sizes = found.setdefault(topic, {})
            sizes[number] = sizes.get(number, 0) + size
    return found
