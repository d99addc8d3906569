"""Values of many megabytes hold the interpreter no longer than short ones, and nobody sees another result."""

from __future__ import annotations

import json
import sys
import time

import pytest

from dafka.broker.looking.rows import octets
from dafka.console.decoding.decoder import Decoder
from dafka.console.records import long_values
from dafka.console.records.expressions import parse
from dafka.console.records.long_values import PIECE, contains, csv_cell, json_of, octets_of, text_of
from dafka.console.records.shown import BatchFacts, Record

LARGE = 10_000_000
TURN = 0.02  # seconds of the hub's turn: it waits for other threads that hold the interpreter
FACTS = BatchFacts(0, 1, 1, None, -1, -1, -1, 0, False)

ODD = [
    b"",
    b"short",
    b"x" * (3 * PIECE),
    "aé€😀".encode() * PIECE,
    b"\xff" * (PIECE + 1),
    b"y" * (PIECE - 1) + "😀".encode() * 2 + b"\xf0\x9f" * 3 + b"z" * PIECE + b"\xf0\x9f\x98",
]


@pytest.mark.parametrize("content", ODD, ids=range(len(ODD)))
def test_results_are_those_of_one_call(content):
    for errors in ("replace", "backslashreplace"):
        assert text_of(content, errors) == content.decode("utf-8", errors)
    assert octets_of("value", content) == octets("value", content)
    text = content.decode("utf-8", "surrogateescape")
    for row in ({"a": text, "b": [{"c": text}, None, 1.5], "d": {}}, [[text, ""]], text, []):
        assert "".join(json_of(row)) == json.dumps(row)
        given = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        assert "".join(json_of(row, ascii=False, compact=True)) == given
    quoted = content + b'"\n"'
    cell = "".join(csv_cell(quoted))
    assert cell == '"' + quoted.decode("utf-8", "backslashreplace").replace('"', '""') + '"'


@pytest.mark.parametrize("before", [0, PIECE - 3, PIECE - 1, PIECE, 2 * PIECE + 5])
def test_a_word_is_found_wherever_it_stands(before):
    content = b"a" * before + b"needle" + b"b" * PIECE
    assert contains(content, b"needle") and contains(content.decode(), "needle")
    assert contains(content, b"a" * before + b"need") and contains(content, b"")
    assert not contains(content, b"needles") and not contains(content, b"x" * (2 * PIECE))


def test_octets_that_are_missing_stay_missing():
    assert octets_of("key", None) == {"key": None}


def longest_call(do):
    """Seconds of processor time between two moments at which the interpreter may go to another thread."""
    longest, before = 0.0, time.thread_time()

    def seen(*event):
        nonlocal longest, before
        now = time.thread_time()
        longest, before = max(longest, now - before), time.thread_time()

    sys.setprofile(seen)
    try:
        do()
    finally:
        sys.setprofile(None)
    return longest


def matching(expression, value):
    record = Record(0, 0, 0, None, value, [], FACTS)
    return lambda: parse(expression, Decoder(None))(record)


@pytest.mark.parametrize(
    "do",
    [
        lambda: all(json_of({"headers": [{"name": "a", "value": "\x01" * LARGE}]})),
        lambda: octets_of("value", b"\xff" * LARGE),
        lambda: all(csv_cell(b'"' * LARGE)),
        lambda: all(csv_cell(b"\xff" * LARGE)),
        matching('value contains "aaaaaaaab" or value contains "aaab"', b"a" * LARGE),
        matching("aaaaaaaab", b"a" * LARGE),
        matching('value contains "b"', b"\xff" * LARGE),
        matching("value > 5", b"9" * LARGE),
    ],
    ids=["json", "base64", "quotes", "csv", "contains", "word", "replace", "number"],
)
def test_no_call_holds_the_interpreter_for_long(do):
    assert min(longest_call(do) for _ in range(3)) < TURN


def test_a_value_is_decoded_once_for_all_comparisons(monkeypatch):
    calls = []
    text_of = long_values.text_of
    monkeypatch.setattr(long_values, "text_of", lambda *given: calls.append(given) or text_of(*given))
    assert not matching(" or ".join(['value contains "b"'] * 50), b"a" * 100)()
    assert len(calls) == 1
