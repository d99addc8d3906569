"""Tables and JSON."""

from __future__ import annotations

import click
import pytest
from kafka.errors import InvalidTopicError

from dafka.broker.interface.outcome import Outcome
from dafka.cli.kafka.output import check, octets, printable, show


def test_a_table_has_headings_and_numbers_to_the_right(capsys):
    show([{"a_b": "x", "n": 5, "z": 1}, {"a_b": None, "n": 10, "z": 2}], False, ["a_b", "n"])
    assert capsys.readouterr().out == "A B      N\nx        5\n-       10\n"


def test_json_has_all_there_is(capsys):
    show([{"a": "x", "z": None}], True, ["a"])
    assert capsys.readouterr().out == '{"a": "x", "z": null}\n'


def test_control_characters_do_not_reach_the_terminal(capsys):
    show([{"a": "x\x1b[2J\ny"}], False, ["a"])
    assert capsys.readouterr().out == "A\nx\\x1b[2J\\ny\n"
    assert printable("é ü") == "é ü"


def test_octets_are_text_where_they_can_be():
    assert [octets("k", one) for one in (None, "é".encode(), b"\xff")] == [
        {"k": None},
        {"k": "é"},
        {"k_base64": "/w=="},
    ]


def test_what_was_refused_is_named_in_lines():
    check({"a": Outcome(None), "b": None})
    with pytest.raises(click.ClickException) as raised:
        check({("t", 1): InvalidTopicError, "b": Outcome(InvalidTopicError, "why\x1b")})
    assert raised.value.message == "t-1: InvalidTopicError\nb: InvalidTopicError: why\\x1b"
