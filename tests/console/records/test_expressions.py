"""The expressions of a search."""

from __future__ import annotations

import msgpack
import pytest

from dafka.console.decoding.decoder import Decoder
from dafka.console.records import expressions
from dafka.console.records.expressions import ExpressionError, parse
from dafka.console.records.shown import BatchFacts, Record

PLAIN = Decoder(None)
FACTS = BatchFacts(0, 1, 1, None, -1, -1, -1, 0, False)
RECORD = Record(
    3,
    17,
    1000,
    b"user-7",
    b'{"amount": 12.5, "items": [{"sku": "A1"}], "ok": true, "none": null, "text": "12"}',
    [("type", b"payment"), ("empty", None)],
    FACTS,
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "amount",
        '"sku"',
        "user-7",
        'key == "user-7"',
        "value.amount > 12 and value.amount <= 12.5",
        'value.items.0.sku starts "A"',
        "value.ok == true and value.none == null",
        "value.text == 12 and value.text >= 11",
        'header.type contains "pay"',
        "header.empty == null",
        "partition == 3 and offset == 17 and timestamp < 2000 and size > 10",
        "not (offset < 10 or partition == 1)",
        'value.missing != "x"',
        'timestamp >= "1970-01-01T00:00:01" and timestamp == "1970-01-01 01:00:01+01:00"',
        '"2h" > timestamp and timestamp == "1000"',
        'value ends "}"',
        'key == "nobody" or not nobody',
    ],
)
def test_matches(text):
    assert parse(text, PLAIN)(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "nobody",
        'key == "user-8"',
        "value.amount > 13",
        "value.missing == 1",
        "value.missing < 1",
        "value.items.7.sku == 1",
        'value.amount contains "1"',
        "key > 5",
        "not amount",
        "header.other == null",
        'timestamp > "1970-01-01T00:00:01Z" or timestamp > "2h"',
    ],
)
def test_does_not_match(text):
    assert not parse(text, PLAIN)(RECORD)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("key ==", "missing at the end"),
        ("(key", "not closed"),
        ('key == "x', "cannot be understood"),
        ("key == == 1", "stands where"),
        ("what == 1", "is not an operand"),
        ("a b", "one thing too many"),
        ("(" * 60, "within each other"),
        ("not " * 200 + "x", "within each other"),
        ("x" * 2001, "at most 2000"),
        (r'key == "\q"', "is not a text"),
        (r'"\q"', "is not a text"),
        ('timestamp > "yesterday"', "is not a time"),
    ],
)
def test_anything_else_is_refused(text, why):
    with pytest.raises(ExpressionError, match=why):
        parse(text, PLAIN)


def test_a_value_that_is_not_json_has_no_fields():
    for value in (None, b"", b"\xff", b"[" * 100_000, b'"x"'):
        assert not parse("value.a == 1", PLAIN)(RECORD._replace(value=value))


def test_a_value_that_is_nested_too_deep_has_no_fields():
    matches = parse("value.a == 1", PLAIN)
    for levels, found in ((250, True), (500, False)):
        value = b'{"a": 1, "b": ' + b"[" * levels + b"]" * levels + b"}"
        assert matches(RECORD._replace(value=value)) is found


def test_json_is_read_once_for_all_comparisons(monkeypatch):
    read = []
    matches = parse(" or ".join(["value.amount == 1"] * 50), PLAIN)

    def loads(content):
        read.append(content)
        return {"amount": 2}

    monkeypatch.setattr(expressions, "parse_json", loads)
    assert not matches(RECORD) and not matches(RECORD) and len(read) == 1


def test_decoded_values_are_compared_by_their_meaning():
    value = msgpack.packb({"user": "Zoë", "n": [1, {"deep": None}]})
    record = RECORD._replace(value=value, key=msgpack.packb([7]))
    raw = Decoder(None, "none", "none")
    for text in (
        'value.user == "Zoë"',
        "value.n.1.deep == null",
        "key.0 == 7",
        r'value contains "\"Zoë\""',
        "null",
    ):
        assert parse(text, PLAIN)(record) and not parse(text, raw)(record), text
    assert parse("value == 5", Decoder(None, value="msgpack"))(RECORD._replace(value=b"\x05"))
