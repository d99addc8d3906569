"""The state of a share group and its members that survives a restart, and its rows."""

from __future__ import annotations

from typing import NamedTuple

from dafka.broker.groups.kept_rows import (
    TEXTS,
    Format,
    Row,
    is_partitions,
    optional_text,
    partitions_of,
    partitions_row,
)
from dafka.broker.groups.modern.assignment import Assignment, size
from dafka.log import shapes


class SavedGroup(NamedTuple):
    """``members`` is how many there were, those that are not kept included."""

    members: int


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


def _member_row(one: SavedMember) -> Row:
    return [*one[:6], sorted(one.topics), partitions_row(one.told)]


def _read_member(row: Row) -> SavedMember:
    return SavedMember._make((*row[:6], frozenset(row[6]), partitions_of(row[7])))


FORMAT = Format(
    list,
    _member_row,
    shapes.row_of(shapes.natural),
    shapes.row_of(
        shapes.text,
        shapes.number,
        shapes.number,
        optional_text,
        shapes.text,
        shapes.text,
        TEXTS,
        is_partitions,
    ),
    lambda row: SavedGroup(*row),
    _read_member,
    lambda one: len(one.topics) + size(one.told),
)
