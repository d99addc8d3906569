"""What is kept of a Streams group's members is the same when it was read again."""

from __future__ import annotations

import json

from dafka.broker.groups.streams.kept_members import FORMAT, SavedGroup, SavedMember
from dafka.broker.groups.streams.tasks import NOTHING, Roles
from dafka.broker.interface.streams_groups import Endpoint

MEMBER = SavedMember(
    *("x", 5, 4, "r", "c", "/h", 1, "p", Endpoint("h", 1), {"zone": "a"}, 60.0),
    Roles({"0": frozenset({0, 2})}, {"1": frozenset({1})}),
    Roles({"0": frozenset({1})}),
    {"0": {5: frozenset({0})}},
)


def test_a_member_is_read_as_it_was():
    for member in (
        MEMBER,
        MEMBER._replace(endpoint=None, rack=None, assigned=NOTHING, since={}),
        MEMBER._replace(target=Roles({"0": frozenset({5})})),
    ):
        row = json.loads(json.dumps(FORMAT.member(member)))
        assert FORMAT.is_member(row) and not FORMAT.is_member(row[1:])
        assert FORMAT.read_member(row) == member


def test_a_group_is_read_as_it_was():
    for group in (SavedGroup(2, 1, 7), SavedGroup(1, None, 7)):
        row = json.loads(json.dumps(FORMAT.whole(group)))
        assert FORMAT.is_whole(row) and FORMAT.read_whole(row) == group


def test_rows_of_before_targets_were_kept_can_be_read():
    member, whole = FORMAT.member(MEMBER)[:-1], FORMAT.whole(SavedGroup(2, 1, 7))[:-1]
    assert FORMAT.is_member(member) and FORMAT.read_member(member) == MEMBER
    assert FORMAT.is_whole(whole) and FORMAT.read_whole(whole) == SavedGroup(2, 1, None)
