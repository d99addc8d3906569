"""Tables and JSON."""

from __future__ import annotations

from dafka.broker.looking.outcomes import printable
from dafka.cli.kafka.output import show


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
