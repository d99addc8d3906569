"""The state of the members of a Streams group that survives a restart, and its rows.

Its topology is in a table of its own: :mod:`dafka.broker.groups.streams.kept`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dafka.broker.groups.kept_rows import (
    Format,
    Row,
    optional_seconds,
    optional_text,
    seconds_of,
    seconds_row,
    with_target,
)
from dafka.broker.groups.since import Since, is_part, part_of, part_row
from dafka.broker.groups.streams.tasks import NOTHING, Roles, Share, size
from dafka.broker.interface.streams_groups import Endpoint
from dafka.log import shapes


class SavedGroup(NamedTuple):
    """``members`` is how many there were, those that are not kept included.

    ``assignment_epoch`` is that of their targets; None in rows of before these were kept.
    """

    members: int
    standbys: int | None
    assignment_epoch: int | None = None


class SavedMember(NamedTuple):
    """A member, by the words of :class:`dafka.broker.groups.streams.member.Member`."""

    member_id: str
    epoch: int
    previous_epoch: int
    rack: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    endpoint: Endpoint | None
    tags: Mapping[str, str]
    rebalance_timeout: float
    assigned: Roles
    revoking: Roles
    since: Since[str]
    target: Roles | None = None
    """None: what is assigned."""


def _roles_row(roles: Roles) -> Row:
    return [{name: sorted(numbers) for name, numbers in share.items()} for share in roles]


def _roles_of(row: Row) -> Roles:
    def share(of: Mapping[str, list[int]]) -> Share:
        return {name: frozenset(numbers) for name, numbers in of.items() if numbers}

    return Roles(*map(share, row))


def _member_row(one: SavedMember) -> Row:
    return [
        *one[:8],
        None if one.endpoint is None else list(one.endpoint),
        dict(one.tags),
        seconds_row(one.rebalance_timeout),
        _roles_row(one.assigned),
        _roles_row(one.revoking),
        {name: part_row(epochs) for name, epochs in one.since.items()},
        None if one.target is None else _roles_row(one.target),
    ]


def _read_member(row: Row) -> SavedMember:
    endpoint, tags, rebalance, assigned, revoking, since, *target = row[8:]
    return SavedMember._make(
        (
            *row[:8],
            None if endpoint is None else Endpoint(*endpoint),
            tags,
            seconds_of(rebalance),
            _roles_of(assigned),
            _roles_of(revoking),
            {name: part_of(epochs) for name, epochs in since.items()},
            _roles_of(target[0]) if target and target[0] is not None else None,
        )
    )


_SHARE = shapes.mapping_of(shapes.list_of(shapes.natural))
_ROLES: Any = shapes.row_of(*(_SHARE for _ in Roles._fields))

_WHOLE = (shapes.natural, shapes.either(shapes.natural, shapes.nothing))
_MEMBER = (
    shapes.text,
    shapes.number,
    shapes.number,
    optional_text,
    shapes.text,
    shapes.text,
    shapes.number,
    shapes.text,
    shapes.either(shapes.row_of(shapes.text, shapes.natural), shapes.nothing),
    shapes.mapping_of(shapes.text),
    optional_seconds,
    _ROLES,
    _ROLES,
    shapes.mapping_of(is_part),
)

FORMAT = Format(
    list,
    _member_row,
    with_target(_WHOLE, shapes.natural),
    with_target(_MEMBER, shapes.either(_ROLES, shapes.nothing)),
    lambda row: SavedGroup(*row),
    _read_member,
    lambda one: size(one.assigned) + size(one.revoking) + size(one.target or NOTHING),
)
