"""The state of a consumer group and its members that survives a restart, and its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from dafka.broker.groups.kept_rows import (
    TEXTS,
    Format,
    Row,
    is_join,
    is_partitions,
    is_since,
    join_of,
    join_row,
    optional_seconds,
    optional_text,
    partitions_of,
    partitions_row,
    seconds_of,
    seconds_row,
    since_of,
    since_row,
)
from dafka.broker.groups.modern.assignment import Assignment, size
from dafka.broker.groups.since import Since
from dafka.broker.interface.groups import JoinRequest
from dafka.log import shapes


class SavedGroup(NamedTuple):
    """``members`` is how many there were, those that are not kept included."""

    members: int
    resolved: Mapping[str, frozenset[str]]


class SavedMember(NamedTuple):
    """A member, by the words of :class:`dafka.broker.groups.consumer.member.Member`."""

    member_id: str
    epoch: int
    previous_epoch: int
    instance_id: str | None
    rack: str | None
    client_id: str
    client_host: str
    names: frozenset[str]
    regex: str | None
    assignor: str | None
    rebalance_timeout: float
    assigned: Assignment
    revoking: Assignment
    since: Since[UUID]
    classic: JoinRequest | None


def _whole_row(group: SavedGroup) -> Row:
    return [group.members, {regex: sorted(topics) for regex, topics in group.resolved.items()}]


def _member_row(one: SavedMember) -> Row:
    return [
        *one[:7],
        sorted(one.names),
        one.regex,
        one.assignor,
        seconds_row(one.rebalance_timeout),
        partitions_row(one.assigned),
        partitions_row(one.revoking),
        since_row(one.since),
        None if one.classic is None else join_row(one.classic),
    ]


def _read_whole(row: Row) -> SavedGroup:
    members, resolved = row
    return SavedGroup(members, {regex: frozenset(topics) for regex, topics in resolved.items()})


def _read_member(row: Row) -> SavedMember:
    names, regex, assignor, rebalance, assigned, revoking, since, classic = row[7:]
    return SavedMember._make(
        (
            *row[:7],
            frozenset(names),
            regex,
            assignor,
            seconds_of(rebalance),
            partitions_of(assigned),
            partitions_of(revoking),
            since_of(since),
            None if classic is None else join_of(row[0], classic),
        )
    )


FORMAT = Format(
    _whole_row,
    _member_row,
    shapes.row_of(shapes.natural, shapes.mapping_of(TEXTS)),
    shapes.row_of(
        shapes.text,
        shapes.number,
        shapes.number,
        optional_text,
        optional_text,
        shapes.text,
        shapes.text,
        TEXTS,
        optional_text,
        optional_text,
        optional_seconds,
        is_partitions,
        is_partitions,
        is_since,
        shapes.either(is_join, shapes.nothing),
    ),
    _read_whole,
    _read_member,
    lambda one: len(one.names) + size(one.assigned) + size(one.revoking),
    lambda group: sum(map(len, group.resolved.values())),
)
