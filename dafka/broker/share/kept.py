"""The state of a share group and its members that survives a restart, and its rows."""

from __future__ import annotations

from typing import NamedTuple

from dafka.broker.groups.kept_rows import (
    TEXTS,
    Format,
    Row,
    is_partitions,
    optional_partitions,
    optional_text,
    partitions_of,
    partitions_row,
    with_target,
)
from dafka.broker.groups.modern.assignment import NOTHING, Assignment, weight
from dafka.log import shapes


class SavedGroup(NamedTuple):
    """``members`` is how many there were, those that are not kept included.

    ``assignment_epoch`` is that of their targets; None in rows of before these were kept.
    """

    members: int
    assignment_epoch: int | None = None


class SavedMember(NamedTuple):
    """A member, by the words of :class:`dafka.broker.share.group.ShareGroupMember`."""

    member_id: str
    epoch: int
    previous_epoch: int
    rack: str | None
    client_id: str
    client_host: str
    topics: frozenset[str]
    told: Assignment
    target: Assignment | None = None
    """None: what it was told."""


def _member_row(one: SavedMember) -> Row:
    target = None if one.target is None else partitions_row(one.target)
    return [*one[:6], sorted(one.topics), partitions_row(one.told), target]


def _read_member(row: Row) -> SavedMember:
    target = None if len(row) < 9 or row[8] is None else partitions_of(row[8])
    return SavedMember._make((*row[:6], frozenset(row[6]), partitions_of(row[7]), target))


_MEMBER = (
    shapes.text,
    shapes.number,
    shapes.number,
    optional_text,
    shapes.text,
    shapes.text,
    TEXTS,
    is_partitions,
)

FORMAT = Format(
    list,
    _member_row,
    with_target([shapes.natural], shapes.natural),
    with_target(_MEMBER, optional_partitions),
    lambda row: SavedGroup(*row),
    _read_member,
    lambda one: len(one.topics) + weight(one.told) + weight(one.target or NOTHING),
)
