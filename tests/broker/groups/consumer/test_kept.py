"""What is kept of a consumer group is the same when it was read again."""

from __future__ import annotations

import json
from math import inf
from uuid import UUID

from dafka.broker.groups.consumer.kept import FORMAT, SavedGroup, SavedMember
from dafka.broker.interface.groups import JoinRequest

T = UUID(int=1)
MEMBER = SavedMember(
    *("x", 5, 4, "i", "r", "c", "/h", frozenset({"t", "u"}), "u.*", "range", 60.0),
    {T: frozenset({0, 2})},
    {T: frozenset({1})},
    {T: {3: frozenset({0}), 4: frozenset({1})}},
    None,
)


def read_again(member):
    row = json.loads(json.dumps(FORMAT.member(member)))
    assert FORMAT.is_member(row) and not FORMAT.is_member(row[:-2])
    return FORMAT.read_member(row)


def test_a_member_is_read_as_it_was():
    assert read_again(MEMBER) == MEMBER
    bare = MEMBER._replace(instance_id=None, regex=None, rebalance_timeout=inf, assigned={}, since={})
    assert read_again(bare) == bare
    moving = MEMBER._replace(target={T: frozenset({0})})
    assert read_again(moving) == moving


def test_so_is_one_with_the_classic_protocol():
    classic = MEMBER._replace(classic=JoinRequest("x", 10.0, 60.0, "consumer", [("range", b"\xff")], "i"))
    assert read_again(classic) == classic


def test_a_group_is_read_as_it_was():
    group = SavedGroup(2, {"u.*": frozenset({"u"}), "v": frozenset()}, 7)
    row = json.loads(json.dumps(FORMAT.whole(group)))
    assert FORMAT.is_whole(row) and FORMAT.read_whole(row) == group


def test_rows_of_before_targets_were_kept_can_be_read():
    member, whole = FORMAT.member(MEMBER)[:-1], FORMAT.whole(SavedGroup(2, {}, 7))[:-1]
    assert FORMAT.is_member(member) and FORMAT.read_member(member) == MEMBER
    assert FORMAT.is_whole(whole) and FORMAT.read_whole(whole) == SavedGroup(2, {}, None)
