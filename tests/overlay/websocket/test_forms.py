"""Values as JSON: nothing is lost, everything is JSON, and what is not of a form is refused by name."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay.websocket.values import values

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import Address, Count, Enum, Port, Subnet, Timespan, Timestamp, encode
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.errors import DuplicateElement, InvalidForm
from dafka.overlay.websocket.forms.messages import Failure, data_octets, read_input
from dafka.overlay.websocket.forms.reading import value_of
from dafka.overlay.websocket.forms.scalars import port_of, subnet_of, timespan_of, timestamp_of
from dafka.overlay.websocket.forms.writing import TooManyPieces, octets, string, written
from dafka.overlay.wire.envelope import LOCAL


def form(value: object) -> dict[str, object]:
    return json.loads(octets("{" + written(value) + "}"))


@settings(max_examples=40)
@given(values)
def test_a_value_survives_its_json_form(value):
    data = read_input(1, data_octets(b"/t", value).decode())
    assert not isinstance(data, Failure)
    assert encode(data.value) == encode(value)


@settings(max_examples=40)
@given(values)
def test_written_values_are_json_in_utf_8_and_ascii_where_the_value_is(value):
    text = data_octets("/t", value).decode("utf-8")
    json.loads(text, parse_constant=pytest.fail)


@given(st.binary(max_size=60).filter(lambda topic: not topic.startswith(LOCAL)))
def test_topics_are_octets_too(topic):
    data = read_input(1, data_octets(topic, None).decode())
    assert data.topic == topic


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (5e-324, 5e-324),
        ("\x00\x01\v\x1f\x7f", "\x00\x01\v\x1f\x7f"),
        (b"\xff\x80ok", "\udcff\udc80ok"),
        ("🦆", "🦆"),
        (Port(22, 0), "22/?"),
        (Subnet(Address.of("10.0.0.0"), 104), "10.0.0.0/8"),
        (Subnet(Address(bytes(10) + b"\xff\xff" + bytes(4)), 90), "::ffff:0:0/90"),
        (Timestamp(-1), "1969-12-31T23:59:59.999999999"),
        (Timestamp(1_000), "1970-01-01T00:00:00.000001"),
        (Timestamp(-(2**63)), "1677-09-21T00:12:43.145224192"),
        (Timestamp(2**63 - 1), "2262-04-11T23:47:16.854775807"),
        (Timespan(-1_500_000_000), "-1500ms"),
        (Timespan(2**63 - 1), "9223372036854775807ns"),
        (Enum("Notice::ACTION_\x07"), "Notice::ACTION_\x07"),
        ([], []),
        ({}, []),
        (frozenset(), []),
    ],
)
def test_values_without_a_form_in_json_have_one_all_the_same(value, data):
    assert form(value)["data"] == data


def test_python_s_own_containers_stand_for_ours():
    assert form([{1: {"a"}}]) == form(({1: frozenset(["a"])},))
    assert form({"k": [1]})["data"] == [{"key": form("k"), "value": form((1,))}]


@pytest.mark.parametrize(
    "value",
    [
        object(),
        [{"k": object()}],
        Count(-1),
        Count(2**64),
        2**63,
        Port(1, 7),
        Address(b"123"),
        Timestamp(2**80),
        "\ud800x\udc7f",
    ],
)
def test_anything_but_a_value_is_not_written(value):
    with pytest.raises(InvalidValue):
        data_octets(b"/t", value)


def test_a_long_string_is_escaped_in_pieces(monkeypatch):
    monkeypatch.setattr(limits, "ESCAPED_AT_ONCE", 3)
    text = 'ab"\\\n\x00€🦆' * 10 + "\udcff"
    assert string(text) == json.dumps(text, ensure_ascii=False)


def test_large_values_can_be_left_for_later():
    assert written([1] * 10, most=100)
    with pytest.raises(TooManyPieces):
        written([[1] * 100] * 100, most=1000)
    with pytest.raises(TooManyPieces):
        written(dict.fromkeys(range(1000), 1), most=1000)


def nested(depth: int) -> str:
    inner = '{"@data-type":"vector","data":['
    return inner * depth + "]}" * depth


@pytest.mark.parametrize(
    "text",
    [
        '{"@data-type":"count","data":18446744073709551616}',
        '{"@data-type":"count","data":true}',
        '{"@data-type":"count","data":-1}',
        '{"@data-type":"integer","data":-9223372036854775809}',
        '{"@data-type":"integer","data":' + "1" * 4000 + "}",
        '{"@data-type":"integer","data":' + "1" * 5000 + "}",
        '{"@data-type":"real","data":1e999}',
        '{"@data-type":"real","data":"infinity"}',
        '{"@data-type":"real","data":7}',
        '{"@data-type":"boolean","data":1}',
        '{"@data-type":"string","data":null}',
        '{"@data-type":"string","data":"\\ud800"}',
        '{"@data-type":"enum-value","data":"\\udbff"}',
        '{"@data-type":"port","data":"65536/tcp"}',
        '{"@data-type":"port","data":"-1/tcp"}',
        '{"@data-type":"port","data":80}',
        '{"@data-type":"port","data":"٣/tcp"}',
        '{"@data-type":"address","data":"fe80::1%eth0"}',
        '{"@data-type":"address","data":"1.2.3"}',
        '{"@data-type":"address","data":""}',
        '{"@data-type":"address","data":16909060}',
        '{"@data-type":"subnet","data":"10.0.0.0"}',
        '{"@data-type":"subnet","data":"10.0.0.0/33"}',
        '{"@data-type":"subnet","data":"10.0.0.0/255.0.0.0"}',
        '{"@data-type":"subnet","data":"::/129"}',
        '{"@data-type":"timestamp","data":"2022-02-30T00:00:00"}',
        '{"@data-type":"timestamp","data":"2262-04-11T23:47:16.854775808"}',
        '{"@data-type":"timestamp","data":"0001-01-01T00:00:00"}',
        '{"@data-type":"timestamp","data":"0001-01-01T00:00:00+14:00"}',
        '{"@data-type":"timestamp","data":"2022-01-01T00:00:00+99:00"}',
        '{"@data-type":"timestamp","data":"2022-01-01T00:00:00.0123456789"}',
        '{"@data-type":"timespan","data":"9223372036854775808ns"}',
        '{"@data-type":"timespan","data":"1e99h"}',
        '{"@data-type":"timespan","data":"' + "9" * 100 + 'ns"}',
        '{"@data-type":"timespan","data":"infs"}',
        '{"@data-type":"table","data":[{"key":{"@data-type":"count","data":1}}]}',
        '{"@data-type":"table","data":[[]]}',
        '{"@data-type":"set","data":{}}',
        '{"@data-type":"vector","data":[1]}',
        '{"@data-type":["count"],"data":1}',
        '{"@data-type":"count"}',
        '{"topic":5,"@data-type":"none"}',
        nested(MOST_NESTED + 1),
        "[" * 100_000,
        '{"a":' * 100_000,
        nested(100_000),
    ],
    ids=lambda text: text[:50],
)
def test_values_out_of_range_or_of_another_form_are_refused(text):
    result = read_input(3, text)
    assert isinstance(result, Failure)
    assert result.code == "deserialization_failed"
    assert result.context.startswith(("input #3 contained invalid data", "input #3 contained malformed JSON"))


def test_values_may_be_nested_as_deep_as_between_nodes():
    assert not isinstance(read_input(1, nested(MOST_NESTED)), Failure)


def test_duplicates_are_refused_as_libbroker_does():
    one = '{"@data-type":"count","data":1}'
    assert "caused an internal error" in read_input(1, f'{{"@data-type":"set","data":[{one},{one}]}}').context
    entry = f'{{"key":{one},"value":{one}}}'
    assert (
        "caused an internal error"
        in read_input(1, f'{{"@data-type":"table","data":[{entry},{entry}]}}').context
    )
    with pytest.raises(DuplicateElement):
        value_of({"@data-type": "set", "data": [{"@data-type": "none"}, {"@data-type": "none"}]})


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (
            timestamp_of,
            "2022-04-10T07:00:00.1-02:30",
            1_649_583_000_100_000_000 - 9_000_000_000_000 + 9_000_000_000_000,
        ),
        (timestamp_of, "1677-09-21T00:12:43.145224192", -(2**63)),
        (timespan_of, "0.30000000000000004s", 300_000_000),
        (timespan_of, "1e-9s", 1),
        (timespan_of, "-1.5min", -90_000_000_000),
        (port_of, "80", Port(80, 1)),
        (port_of, "80/sctp", Port(80, 0)),
        (subnet_of, "10.1.2.3/8", Subnet.of("10.0.0.0/8")),
    ],
)
def test_people_may_write_values_in_other_ways(read, text, value):
    assert read(text) == value


def test_topics_of_an_endpoint_itself_are_not_for_clients():
    result = read_input(7, '{"topic":"<$>/local/data/statuses","@data-type":"none"}')
    assert result == Failure("invalid_data", "input #7 is on <$>/local/, where no client may publish")


def test_reading_refuses_anything_but_an_object():
    for wrong in (None, 5, "x", [], {"data": 1}, {"@data-type": "set", "data": "x"}):
        with pytest.raises(InvalidForm):
            value_of(wrong)
