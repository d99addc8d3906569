"""The JSON forms beside those that libbroker wrote and took."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from overlay.vectors import Vector, native, vectors

from dafka.overlay.values import decode, encode
from dafka.overlay.websocket.errors import InvalidForm
from dafka.overlay.websocket.forms.messages import (
    Failure,
    data_octets,
    failure_octets,
    read_from_server,
    read_input,
    read_subscriptions,
)
from dafka.overlay.wire.envelope import decode_envelope

BETTER = {
    "-7.500000": "-7.5",
    "7.000000": "7.0",
    f"{1e300:.6f}": "1e+300",
    '"\x01"': '"\\u0001"',
    '"2022-04-10T07:00:00.123"': '"2022-04-10T07:00:00.123456789"',
}
"""What libbroker wrote, and what is written here: all digits of numbers, all of a time, JSON in each case."""


def forms() -> list[tuple[Vector, str]]:
    """Values that a node of libbroker received, and the JSON that it made of them."""
    return [
        (one, one.meaning.partition("receiver's JSON form: ")[2])
        for one in native()
        if "receiver's JSON form: " in one.meaning
    ]


def inputs() -> list[tuple[str, int, str, str | None]]:
    """What a client sent in one session, its number, and what came of it: data, an error, or unknown."""
    rows = [one for one in vectors() if re.match(r"ws-(session/0[56]|data/|error/)", one.name)]
    found: list[tuple[str, int, str, str | None]] = []
    for one, following in pairwise(rows):
        if one.direction == "client->server" and one.meaning.startswith("op=1 "):
            became = None
            if following.direction == "server->other-client":
                became = following.meaning.partition(": ")[2]
            elif following.meaning.startswith('op=1 {"type":"error"'):
                became = following.meaning.removeprefix("op=1 ")
            found.append((one.name, len(found) + 1, one.meaning.removeprefix("op=1 "), became))
    return found


def ours(form: str) -> str:
    """A message of libbroker's as it is written here."""
    for theirs, better in BETTER.items():
        if form.endswith(f'"data":{theirs}}}'):
            return form.removesuffix(f"{theirs}}}") + better + "}"
    return form


@pytest.mark.parametrize(("vector", "form"), [pytest.param(*one, id=one[0].name) for one in forms()])
def test_values_have_the_forms_that_libbroker_wrote(vector, form):
    payload = decode_envelope(vector.message).payload
    written = data_octets(b"/t", decode(payload)).decode()
    expected = '{"type":"data-message","topic":"/t",' + form[1:]
    if vector.name.startswith("data-real-"):
        number, recorded = (
            json.loads(re.sub(r":(-?(inf|nan))}", r':"\1"}', one)) for one in (written, expected)
        )
        assert float(number["data"]) == pytest.approx(float(recorded["data"]), abs=1e-6, nan_ok=True)
        assert encode(read_input(1, written).value) == payload
    elif vector.name == "data-timestamp-1969":
        assert written.endswith('"1969-12-31T23:59:59.500"}')
    else:
        assert written == expected


@pytest.mark.parametrize(("vector", "form"), [pytest.param(*one, id=one[0].name) for one in forms()])
def test_a_client_reads_what_libbroker_wrote_also_where_that_is_not_json(vector, form):
    value = read_from_server('{"type":"data-message","topic":"/t",' + form[1:]).value
    lossy = {"data-real-min-normal", "data-timestamp-1969"}
    assert vector.name in lossy or encode(value) == decode_envelope(vector.message).payload


@pytest.mark.parametrize(
    ("name", "number", "text", "became"), [pytest.param(*one, id=f"{one[0]}-{one[1]}") for one in inputs()]
)
def test_messages_are_taken_and_refused_as_libbroker_does(name, number, text, became):
    result = read_input(number, text)
    if isinstance(result, Failure):
        assert failure_octets(result).decode() == became or name == "ws-error/19"  # a first fragment
    else:
        written = data_octets(result.topic, result.value).decode()
        assert became is None or name == "ws-session/05" or written == ours(became)


def test_all_recorded_messages_were_looked_at():
    assert len(inputs()) == 62
    assert sum(1 for *_, became in inputs() if became and "error" in became) == 21
    assert len(forms()) == 53


def test_an_address_that_does_not_parse_is_refused_like_anything_else():
    # libbroker ends the connection.
    text = '{"type": "data-message", "topic": "/t/x", "@data-type": "address", "data": "10.0.0.0/8"}'
    assert read_input(51, text) == Failure("deserialization_failed", "input #51 contained invalid data")


@pytest.mark.parametrize("text", ["{}", '["/a", 5]', "x", '"/a"', '[{"a":1}]', "", "[", '["\\ud800"]'])
def test_a_first_message_that_names_no_prefixes_is_refused_by_name(text):
    # libbroker does not answer.
    failure = read_subscriptions(text)
    assert failure.code == "deserialization_failed"
    assert "first message" in failure.context


def test_a_first_message_names_the_prefixes():
    assert read_subscriptions('["/client", "/both", ""]').prefixes == (b"/client", b"/both", b"")
    assert read_subscriptions("[]").prefixes == ()


def test_a_server_that_speaks_of_something_else_is_refused():
    for text in [
        "[]",
        "{}",
        '{"type":"data-message","topic":5}',
        '{"type":"ack","endpoint":5}',
        '{"type":"x"}',
    ]:
        with pytest.raises(InvalidForm):
            read_from_server(text)
