"""The subset of ZPL that the C daemons' configuration files use."""

from __future__ import annotations

import pytest

from dafka.cli.zpl import ZplError, parse_zpl


def test_values_have_the_path_of_the_names_above_them() -> None:
    text = "beacon\n    interval = 1000\nstore\n    db = storedb\n    offset\n        reset = latest\n"
    assert parse_zpl(text) == {
        "beacon/interval": "1000",
        "store/db": "storedb",
        "store/offset/reset": "latest",
    }


def test_empty_lines_and_comments_are_passed_over() -> None:
    assert parse_zpl("# first\n\nverbose = 1   # not quiet\n    # indented\n") == {"verbose": "1"}


@pytest.mark.parametrize(
    ("written", "value"),
    [('"a # b"', "a # b"), ("'a b'", "a b"), ("a b  ", "a b"), ("''", ""), ('"', '"')],
)
def test_a_value_may_be_quoted(written: str, value: str) -> None:
    assert parse_zpl(f"name = {written}") == {"name": value}


def test_a_name_with_neither_a_value_nor_names_below_it_has_none() -> None:
    assert parse_zpl("store\nbeacon\n    interval = 5\n") == {"store": None, "beacon/interval": "5"}


def test_a_section_may_come_twice() -> None:
    assert parse_zpl("a\n    b = 1\na\n    c = 2\n") == {"a/b": "1", "a/c": "2"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 1\n= 5", "line 2 is not 'name'"),
        ("a\n   b = 1", "line 2 is indented by 3 blanks"),
        ("a\n        b = 1", "line 2 is indented by 8 blanks"),
        ("a = 1\nb = 2\na = 3", "line 3 gives a a second value"),
    ],
)
def test_an_error_names_the_line(text: str, says: str) -> None:
    with pytest.raises(ZplError, match=says):
        parse_zpl(text)
