"""What is kept of a share group is the same when it was read again."""

from __future__ import annotations

import json
from uuid import UUID

from dafka.broker.share.kept import FORMAT, SavedGroup, SavedMember


def test_a_member_is_read_as_it_was():
    told = {UUID(int=1): frozenset({0, 1})}
    for member in (
        SavedMember("x", 5, 4, "r", "c", "/h", frozenset({"t"}), told),
        SavedMember("x", 5, 4, None, "c", "/h", frozenset(), {}),
    ):
        row = json.loads(json.dumps(FORMAT.member(member)))
        assert FORMAT.is_member(row) and not FORMAT.is_member([*row, 1])
        assert FORMAT.read_member(row) == member


def test_a_group_is_read_as_it_was():
    row = FORMAT.whole(SavedGroup(2))
    assert FORMAT.is_whole(row) and FORMAT.read_whole(row) == SavedGroup(2)
    assert not FORMAT.is_whole([-1])
