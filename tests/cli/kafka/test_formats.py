"""The format strings of ``dafka kafka consume``."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dafka.cli.kafka.formats import json_line, parse_format

RECORD = SimpleNamespace(
    topic="t",
    partition=1,
    offset=2,
    timestamp=3,
    key=None,
    value=b"v\xff",
    headers=[("a", b"1"), ("b", None)],
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", b""),
        ("%t-%p-%o@%T", b"t-1-2@3"),
        ("%k|%K|%s|%S", b"|-1|v\xff|2"),
        ("%h%%", b"a=1,b=%"),
        ("\udcff%p", b"\xff1"),
        (r"\n\r\t\0\\\x41é", b"\n\r\t\0\\A\xc3\xa9"),
    ],
)
def test_a_format_is_filled_in(text, shown):
    assert parse_format(text)(RECORD) == shown


@pytest.mark.parametrize("text", ["%", "%z", "\\", r"\q", r"\x4"])
def test_an_unknown_field_or_escape_of_a_format_is_named(text):
    with pytest.raises(
        ValueError, match=r"is not an? (field|escape), there are|nothing behind the [%\\] at its end"
    ):
        parse_format(text)


def test_octets_that_are_not_text_are_base64_in_json():
    assert json_line(RECORD) == (
        b'{"topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": null, "value_base64": "dv8=", '
        b'"headers": [{"name": "a", "value": "1"}, {"name": "b", "value": null}]}\n'
    )
