"""What lines mean as records."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.broker.looking.rows import NewRecord, RowError, json_row, octets, text_rows
from dafka.cli.kafka.formats import json_line

OCTETS = st.none() | st.binary(max_size=8) | st.text(max_size=8).map(str.encode)


@given(OCTETS, OCTETS, st.lists(st.tuples(st.text(max_size=3), OCTETS), max_size=2))
def test_a_record_survives_being_printed_and_read_as_json(key, value, headers):
    record = SimpleNamespace(
        topic="t", partition=1, offset=2, timestamp=3, key=key, value=value, headers=headers
    )
    assert json_row(json_line(record)) == NewRecord(key, value, headers, 1, 3)


def test_other_values_stand_for_themselves_as_json():
    assert json_row(b'{"key": 7, "value": {"a": [1, "\xc3\xa9"]}}') == NewRecord(
        b"7", '{"a":[1,"é"]}'.encode(), []
    )


@pytest.mark.parametrize(
    "row",
    [
        "[1]",
        "{",
        "[" * 100_000,
        {"x": 1},
        {"partition": -1},
        {"partition": True},
        {"partition": 2**31},
        {"timestamp": "now"},
        {"timestamp": 2**62 + 1},
        {"value": "a", "headers": [{"name": "\ud800"}]},
        {"key": "a", "key_base64": "YQ=="},
        {"value_base64": "a"},
        {"value_base64": 1},
        {"value": "\ud800"},
        {"headers": 1},
        {"headers": [1]},
        {"headers": [{"value": "a"}]},
    ],
    ids=lambda row: str(row)[:30],
)
def test_anything_but_a_record_is_refused(row):
    with pytest.raises(RowError):
        json_row((row if isinstance(row, str) else json.dumps(row)).encode())


def test_a_record_that_is_nested_too_deep_is_refused():
    with pytest.raises(RowError, match="nested more than 300 deep"):
        json_row(b'{"value": ' + b"[" * 500 + b"]" * 500 + b"}")


def test_a_record_may_have_no_time_or_one_before_1970():
    assert json_row(b'{"value":"a","timestamp":-1}').timestamp == -1


def test_lines_of_text():
    assert text_rows(None, None, None)(b"a:b") == NewRecord(None, b"a:b", [])
    assert text_rows(b"k", None, b"")(b"") == NewRecord(b"k", None, [])
    assert text_rows(None, b"::", None)(b"a::b::c") == NewRecord(b"a", b"b::c", [])
    with pytest.raises(RowError, match="there is no ':' in it"):
        text_rows(None, b":", None)(b"ab")


def test_octets_are_text_where_they_can_be():
    assert [octets("k", one) for one in (None, "é".encode(), b"\xff")] == [
        {"k": None},
        {"k": "é"},
        {"k_base64": "/w=="},
    ]
