"""Groups of every protocol: members, lag, offsets."""

from __future__ import annotations

from typing import Any

from dafka.broker.interface.groups import GroupType
from dafka.broker.looking import groups as looking
from dafka.broker.looking.outcomes import RefusedError, check
from dafka.broker.looking.places import offsets_of, within
from dafka.console import limits
from dafka.console.api.group_details import details
from dafka.console.api.topics import chosen, place_of
from dafka.console.desk import Desk
from dafka.console.errors import ApiError, NotThereError
from dafka.console.routes import FLAG, NAME, PARTITION, TEXT, TOPIC, Parameter, Routes, list_of, thing

routes = Routes()

_GROUP = Parameter("name", NAME, "The group", required=True)
_RANGE = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}


@routes.add(
    "GET",
    "/groups",
    "A page of the list of groups",
    Parameter("search", TEXT, "Only names with this in them, in any case of letters", default=""),
    Parameter("type", {"enum": [one.value for one in GroupType]}, "Only of this type"),
    Parameter("state", TEXT, "Only in this state, by Kafka's word: Stable, Empty ..."),
    Parameter("skip", {"type": "integer", "minimum": 0, "maximum": 10_000_000}, "So many before", default=0),
    Parameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": limits.TOPICS_SHOWN}, "At most", default=100
    ),
)
def list_groups(
    desk: Desk, search: str, type: str | None, state: str | None, skip: int, limit: int
) -> dict[str, Any]:
    found = desk.call("list_groups", [state] if state else [], [type] if type else [])
    wanted = search.lower()
    matching = sorted(one for one in found if wanted in one.group.lower())
    return {
        "total": len(found),
        "matching": len(matching),
        "groups": [
            {"name": one.group, "type": one.type.value, "state": one.state, "protocol": one.protocol_type}
            for one in matching[skip : skip + limit]
        ],
    }


@routes.add("GET", "/group", "A group with its members, offsets and lags", _GROUP)
def get_group(desk: Desk, name: str) -> dict[str, Any]:
    if looking.kind_of(desk, name) is None:
        raise NotThereError(f"there is no group {name!r}")
    group = looking.described(desk, name)
    rows = looking.progress(desk, group)
    return {
        "name": name,
        "type": group.type.value,
        "state": group.state,
        "epoch": group.epoch,
        "assignor": group.assignor,
        "lag": sum(row["lag"] or 0 for row in rows),
        "members": [
            {
                "member": one.member,
                "instance": one.instance,
                "client": one.client,
                "host": one.host,
                "partitions": [list(key) for key in sorted(one.partitions)],
            }
            for one in group.members[: limits.FOUND]
        ],
        "partitions": rows[: limits.PARTITIONS_ASKED],
        "total_members": len(group.members),
        "total_partitions": len(rows),
        **details(desk, name, group.type),
    }


@routes.add("DELETE", "/group", "Delete a group without members, with its offsets", _GROUP)
def delete_group(desk: Desk, name: str) -> dict[str, Any]:
    check(desk.call("delete_groups", [name]))
    return {"name": name}


@routes.add(
    "POST",
    "/group/reset",
    "Let a group without members go on from other offsets; without execute only show which",
    _GROUP,
    body=thing(topic=TOPIC, partitions=list_of(PARTITION, 100_000), to=TEXT, by=_RANGE, execute=FLAG),
)
def reset_group(desk: Desk, name: str, body: Any) -> dict[str, Any]:
    """``topic``: only this one, otherwise all that the group has offsets in. ``to``: earliest, latest, an
    offset, -10, a time, 2h; or ``by``: so many records on, or back."""
    if ("to" in body) is ("by" in body):
        raise ApiError("say to where: one of to and by")
    if "partitions" in body and "topic" not in body:
        raise ApiError("partitions are those of a topic: name it")
    kind = looking.kind_of(desk, name)
    before = looking.offsets(desk, name, kind)
    keys = chosen(desk, body["topic"], body.get("partitions")) if "topic" in body else sorted(before)
    if not keys:
        raise NotThereError(f"group {name!r} has no offsets: name a topic")
    if "to" in body:
        new = offsets_of(desk, place_of(body["to"]), keys)
    elif missing := [key for key in keys if key not in before]:
        raise ApiError(f"there is no offset in {missing[0][0]}-{missing[0][1]} to move")
    else:
        new = within(desk, {key: before[key] + body["by"] for key in keys})
    if body.get("execute"):
        _execute(desk, name, kind, new)
    return {
        "executed": bool(body.get("execute")),
        "partitions": [
            {"topic": key[0], "partition": key[1], "offset": before.get(key), "new_offset": offset}
            for key, offset in sorted(new.items())
        ],
    }


@routes.add(
    "POST",
    "/group/remove-member",
    "Take a member out of a group; it may join again",
    _GROUP,
    body=thing(["member"], member=NAME, instance={"type": ["string", "null"], "maxLength": 1000}),
)
def remove_member(desk: Desk, name: str, body: Any) -> dict[str, Any]:
    kind = looking.kind_of(desk, name)
    if kind is None:
        raise NotThereError(f"there is no group {name!r}")
    member, instance = body["member"], body.get("instance")
    error, detail = looking.take_out(desk, name, kind, member, instance, "removed with the console")
    if error is not None:
        raise RefusedError(f"member {member}: {detail or error.description}", [error.__name__])
    return {"member": member}


def _execute(desk: Desk, name: str, kind: GroupType | None, new: dict[tuple[str, int], int]) -> None:
    outcomes = looking.change_offsets(desk, name, kind, new)
    errors = {error.__name__ for error in outcomes.values() if error is not None}
    if errors & {"UnknownMemberIdError", "NonEmptyGroupError"}:
        raise RefusedError(f"group {name} has members: end them first", ["NonEmptyGroupError"])
    check(outcomes)
