"""The format strings of ``dafka kafka consume``."""

from __future__ import annotations

import json
import shutil
import subprocess
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
        (r"%R%s", b"\0\0\0\2v\xff"),
        (r"\x4\n", b"\4\n"),
        (r"\65\065\101\1a", b"A5e\1a"),
    ],
)
def test_a_format_is_filled_in(text, shown):
    assert parse_format(text)(RECORD) == shown


@pytest.mark.parametrize("text", ["%", "%z", "\\", r"\q", r"\x"])
def test_an_unknown_field_or_escape_of_a_format_is_named(text):
    with pytest.raises(
        ValueError, match=r"is not an? (field|escape), there are|nothing behind the [%\\] at its end"
    ):
        parse_format(text)


def test_the_length_of_null_is_minus_one():
    assert parse_format("%R")(SimpleNamespace(value=None)) == b"\xff\xff\xff\xff"


@pytest.mark.skipif(shutil.which("kcat") is None, reason="there is no kcat here")
@pytest.mark.parametrize(
    "text",
    ["%k|%K|%s|%S|%t|%p|%o|%T|%h;", "%R%s", r"\x41\n", r"\x4\n", r"\101\n", r"\65\065\n", r"a\\\t%%\r\n"],
)
def test_a_format_means_what_it_means_to_kcat(text, terminal, topic):
    records = [
        {"key": "k", "value": "one", "headers": {"a": "1", "b": ""}, "timestamp": 5},
        {"key": "", "value": "", "timestamp": 1_700_000_000_000},
        {"value_base64": "AP8K", "key": "é", "timestamp": 7},
        {"value": "ü" * 300, "timestamp": 8},
    ]
    terminal.run("produce", topic, "--json", stdin="\n".join(map(json.dumps, records)))
    kcat = subprocess.run(
        ["kcat", "-b", terminal.servers, "-C", "-t", topic, "-e", "-q", "-f", text],
        capture_output=True,
        timeout=200,
        check=True,
    )
    assert terminal.octets("consume", topic, "--exit", "-f", text) == kcat.stdout != b""


def test_octets_that_are_not_text_are_base64_in_json():
    assert json_line(RECORD) == (
        b'{"topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": null, "value_base64": "dv8=", '
        b'"headers": [{"name": "a", "value": "1"}, {"name": "b", "value": null}]}\n'
    )
