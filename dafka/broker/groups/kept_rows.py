"""The common parts of the rows of members, in JSON: partitions by topic, octets, the join data of a member.

The rows themselves are made where the groups of each type are; :mod:`dafka.broker.groups.kept_members` writes
them, and reads them when the broker starts. The first part of each is the type of the group.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple
from uuid import UUID

from dafka.broker.groups.since import Since, is_part, part_of, part_row
from dafka.broker.interface.groups import JoinRequest
from dafka.broker.limits import KEPT_MEMBER_OCTETS, KEPT_MEMBER_TEXT
from dafka.hub.turns import in_pieces
from dafka.log import shapes
from dafka.protocol.json_text import read_json

Row = list[Any]
Saved = tuple[Any, ...]
"""What is kept of a member, or of a whole group: values that never change."""


class Format(NamedTuple):
    """How the rows of groups of one type are written and read.

    ``is_whole`` and ``is_member`` say whether a row can be one, without the type of the group in front.
    ``whole_items`` and ``member_items`` say how many partitions, names and the like there are in one.
    """

    whole: Callable[[Any], Row]
    member: Callable[[Any], Row]
    is_whole: shapes.Check
    is_member: shapes.Check
    read_whole: Callable[[Row], Any]
    read_member: Callable[[Row], Any]
    member_items: Callable[[Any], int]
    whole_items: Callable[[Any], int] = lambda whole: 0


_PART = 500


def octets_of_row(row: Row) -> bytes:
    """A row in JSON, for a thread beside the hub: nothing else runs while the encoder has the interpreter's
    lock, so it gets a part after the other."""
    return ("[" + ",".join(map(_json, row)) + "]").encode("ascii")


def kept_row(row: Row, *, is_large: bool) -> Row | bytes | None:
    """The row as it is written, packed if it is large: half as large, for mostly it is the hexadecimal digits
    of topics' ids. None if it is too large."""
    octets = octets_of_row(row)
    if len(octets) > KEPT_MEMBER_TEXT:
        return None
    stored = zlib.compress(octets, zlib.Z_BEST_SPEED) if is_large else octets
    if len(stored) > KEPT_MEMBER_OCTETS:
        return None
    return stored if is_large else row


def _json(value: Any) -> str:
    if type(value) is dict:
        return "{" + ",".join(f"{json.dumps(key)}:{_json(one)}" for key, one in value.items()) + "}"
    if type(value) is not list:
        return json.dumps(value)
    if len(value) > _PART:
        return "[" + ",".join(_json(part)[1:-1] for part in in_pieces(value, _PART)) + "]"
    if any(type(one) in (list, dict) for one in value):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)


def row_of_octets(stored: Any) -> Any:
    """A row as it was written: packed, or in JSON, as large rows were before, or neither. Raises
    ValueError."""
    if type(stored) is not bytes:
        return stored
    if stored[:1] == b"[":
        return read_json(stored)
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(stored, KEPT_MEMBER_TEXT)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed: {error}") from error
    if not unpacking.eof:
        raise ValueError("it is not whole, or too large")
    return read_json(text)


optional_text = shapes.either(shapes.text, shapes.nothing)
optional_seconds = shapes.either(shapes.seconds, shapes.nothing)
TEXTS = shapes.list_of(shapes.text)


def is_partitions(value: Any) -> bool:
    """Whether this can be the row of partitions by topic."""
    return _is_by_topic(value, shapes.list_of(shapes.natural))


optional_partitions = shapes.either(is_partitions, shapes.nothing)


def with_target(parts: Sequence[shapes.Check], last: shapes.Check) -> shapes.Check:
    """Whether a row has these parts, and the last one, which is about targets; or is of before these were
    kept, and does not have it."""
    return shapes.either(shapes.row_of(*parts, last), shapes.row_of(*parts))


def is_since(value: Any) -> bool:
    """Whether this can be the row of what each partition has been had since."""
    return _is_by_topic(value, is_part)


def _is_by_topic(value: Any, check: shapes.Check) -> bool:
    return type(value) is dict and all(
        len(topic) == 32 and set(topic) <= _HEX and check(each) for topic, each in value.items()
    )


_HEX = frozenset("0123456789abcdef")


def partitions_row(partitions: Mapping[UUID, Collection[int]]) -> dict[str, list[int]]:
    """Partitions by topic."""
    return {topic.hex: sorted(numbers) for topic, numbers in partitions.items()}


def partitions_of(row: Mapping[str, Iterable[int]]) -> dict[UUID, frozenset[int]]:
    """The partitions of a row, without topics of which there are none."""
    found = {UUID(topic): frozenset(numbers) for topic, numbers in row.items()}
    return {topic: numbers for topic, numbers in found.items() if numbers}


def since_row(since: Since[UUID]) -> dict[str, list[list[Any]]]:
    """The epochs from which on a member has had its partitions."""
    return {topic.hex: part_row(epochs) for topic, epochs in since.items()}


def since_of(row: Mapping[str, list[list[Any]]]) -> Since[UUID]:
    """The same, of a row."""
    return {UUID(topic): part_of(epochs) for topic, epochs in row.items()}


def seconds_row(seconds: float) -> float | None:
    """Seconds, which may be without end."""
    return None if seconds == inf else seconds


def seconds_of(row: float | None) -> float:
    """The same, of a row."""
    return inf if row is None else float(row)


# -- members with the classic protocol ---------------------------------------------------------------


def octets_row(octets: bytes) -> str:
    """Octets as text."""
    return b64encode(octets).decode()


def octets_of(row: str) -> bytes:
    """The same, of a row that :func:`is_octets` has passed."""
    return b64decode(row)


def is_octets(value: Any) -> bool:
    """Whether this can be the row of octets."""
    try:
        return type(value) is str and octets_row(b64decode(value, validate=True)) == value
    except ValueError:
        return False


_FLAGS = ("require_known_member", "can_skip_assignment", "knows_partitions")
is_join = shapes.row_of(
    shapes.seconds,
    shapes.seconds,
    shapes.text,
    shapes.list_of(shapes.row_of(shapes.text, is_octets)),
    optional_text,
    shapes.text,
    shapes.text,
    *(shapes.flag for _ in _FLAGS),
)


def join_row(request: JoinRequest) -> Row:
    """The join data of a member, without its id."""
    return [
        request.session_timeout,
        request.rebalance_timeout,
        request.protocol_type,
        [[name, octets_row(metadata)] for name, metadata in request.protocols],
        request.instance_id,
        request.client_id,
        request.client_host,
        *(getattr(request, flag) for flag in _FLAGS),
    ]


def join_of(member_id: str, row: Row) -> JoinRequest:
    """The same, of a row."""
    session, rebalance, kind, protocols, *rest = row
    decoded = [(name, octets_of(metadata)) for name, metadata in protocols]
    return JoinRequest(member_id, session, rebalance, kind, decoded, *rest)


class SavedClassic(NamedTuple):
    """The saved state of a member of a classic group."""

    member_id: str
    request: JoinRequest
    assignment: bytes


class SavedGeneration(NamedTuple):
    """The saved state of a classic group; ``settled``: whether its members have this generation's assignment.

    ``members`` is how many it had, those that are not kept included.
    """

    members: int
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    settled: bool


def _read_classic(row: Row) -> SavedClassic:
    member_id, request, assignment = row
    return SavedClassic(member_id, join_of(member_id, request), octets_of(assignment))


CLASSIC = Format(
    list,
    lambda one: [one.member_id, join_row(one.request), octets_row(one.assignment)],
    shapes.row_of(shapes.natural, shapes.natural, optional_text, optional_text, optional_text, shapes.flag),
    shapes.row_of(shapes.text, is_join, is_octets),
    lambda row: SavedGeneration(*row),
    _read_classic,
    lambda one: (sum(len(metadata) for _, metadata in one.request.protocols) + len(one.assignment)) // 64,
)
