"""What is kept of members is the same when it was read again, and what cannot be a row is known."""

from __future__ import annotations

import json
from math import inf

import pytest

from dafka.broker.groups import kept_rows as rows
from dafka.broker.groups.kept_rows import CLASSIC, SavedClassic, SavedGeneration
from dafka.broker.interface.groups import JoinRequest

REQUEST = JoinRequest(
    "x", 10.5, 60.0, "consumer", [("range", b"\x00\xff")], "i", "c", "/h", True, False, True
)


def through(encode, check, decode, value):
    row = json.loads(json.dumps(encode(value)))
    assert check(row)
    return decode(row)


def test_a_classic_member_and_its_group_are_read_as_they_were():
    member = SavedClassic("x", REQUEST, b"\x01\xfe")
    assert through(CLASSIC.member, CLASSIC.is_member, CLASSIC.read_member, member) == member
    group = SavedGeneration(3, 7, "consumer", None, "x", True)
    assert through(CLASSIC.whole, CLASSIC.is_whole, CLASSIC.read_whole, group) == group


def test_seconds_without_end_are_kept():
    for seconds in (1.5, inf):
        assert rows.seconds_of(json.loads(json.dumps(rows.seconds_row(seconds)))) == seconds


def test_a_row_that_is_nested_too_deep_is_not_read():
    with pytest.raises(ValueError, match="nested more than 300 deep"):
        rows.row_of_octets(b"[" * 500 + b"]" * 500)


@pytest.mark.parametrize(
    "wrong", [None, 1, [], {"x": [1]}, {"0" * 32: [-1]}, {"0" * 32: 1}, {"g" * 32: [1]}, {"0" * 31: [1]}]
)
def test_values_that_cannot_be_partitions_are_recognised(wrong):
    assert not rows.is_partitions(wrong)


@pytest.mark.parametrize("wrong", [None, "?", "AA", "AA=A", 1, "AAE\n"])
def test_values_that_cannot_be_octets_are_recognised(wrong):
    assert not rows.is_octets(wrong)
