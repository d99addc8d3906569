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
    optional_partitions,
    optional_seconds,
    optional_text,
    partitions_of,
    partitions_row,
    seconds_of,
    seconds_row,
    since_of,
    since_row,
    with_target,
)
from dafka.broker.groups.modern.assignment import NOTHING, Assignment, weight
from dafka.broker.groups.since import Since
from dafka.broker.interface.groups import JoinRequest
from dafka.log import shapes


class SavedGroup(NamedTuple):
    """``members`` is how many there were, those that are not kept included.

    ``assignment_epoch`` is that of their targets; None in rows of before these were kept.
    """

    members: int
    resolved: Mapping[str, frozenset[str]]
    assignment_epoch: int | None


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
    target: Assignment | None = None
    """None: what is assigned."""


def _whole_row(group: SavedGroup) -> Row:
    resolved = {regex: sorted(topics) for regex, topics in group.resolved.items()}
    return [group.members, resolved, group.assignment_epoch]


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
        None if one.target is None else partitions_row(one.target),
    ]


def _read_whole(row: Row) -> SavedGroup:
    members, resolved, *epoch = row
    topics = {regex: frozenset(matched) for regex, matched in resolved.items()}
    return SavedGroup(members, topics, epoch[0] if epoch else None)


def _read_member(row: Row) -> SavedMember:
    names, regex, assignor, rebalance, assigned, revoking, since, classic, *target = row[7:]
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
            partitions_of(target[0]) if target and target[0] is not None else None,
        )
    )


_WHOLE = (shapes.natural, shapes.mapping_of(TEXTS))
_MEMBER = (
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
)

FORMAT = Format(
    _whole_row,
    _member_row,
    with_target(_WHOLE, shapes.natural),
    with_target(_MEMBER, optional_partitions),
    _read_whole,
    _read_member,
    lambda one: len(one.names) + weight(one.assigned) + weight(one.revoking) + weight(one.target or NOTHING),
    lambda group: sum(map(len, group.resolved.values())),
)
