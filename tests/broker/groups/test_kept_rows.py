"""What is kept of members is the same when it was read again, and what cannot be a row is known."""

from __future__ import annotations

import json
from math import inf
from uuid import uuid4

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


def test_a_large_row_is_packed_and_read_again_in_json_too():
    ids = {uuid4().hex: [0] for _ in range(1000)}
    row = ["consumer", ids]
    octets = rows.octets_of_row(row)
    stored = rows.kept_row(row, is_large=True)
    assert 2 * len(stored) < len(octets) * 1.25
    assert rows.kept_row(row, is_large=False) is row
    assert rows.row_of_octets(stored) == rows.row_of_octets(octets) == row


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_packed_row_that_is_not_whole_is_not_read(cut):
    stored = rows.kept_row(["consumer", list(range(1000))], is_large=True)
    with pytest.raises(ValueError, match="not whole"):
        rows.row_of_octets(stored[:-cut])


def test_octets_that_are_no_row_are_not_read():
    with pytest.raises(ValueError, match="cannot be decompressed"):
        rows.row_of_octets(b"no row")


def test_a_packed_row_takes_a_bounded_amount_of_memory(monkeypatch):
    stored = rows.kept_row(["x" * 10_000], is_large=True)
    monkeypatch.setattr(rows, "KEPT_MEMBER_TEXT", 1000)
    with pytest.raises(ValueError, match="too large"):
        rows.row_of_octets(stored)
    assert rows.kept_row(["x" * 10_000], is_large=True) is None


@pytest.mark.parametrize(
    "wrong", [None, 1, [], {"x": [1]}, {"0" * 32: [-1]}, {"0" * 32: 1}, {"g" * 32: [1]}, {"0" * 31: [1]}]
)
def test_values_that_cannot_be_partitions_are_recognised(wrong):
    assert not rows.is_partitions(wrong)


@pytest.mark.parametrize("wrong", [None, "?", "AA", "AA=A", 1, "AAE\n"])
def test_values_that_cannot_be_octets_are_recognised(wrong):
    assert not rows.is_octets(wrong)
