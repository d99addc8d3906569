from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.overlay.bridge.json_forms import dumps, from_json, loads, to_json
from dafka.overlay.errors import InvalidValue
from dafka.overlay.values import Address, Count, Enum, Port, Set, Subnet, Table, Timespan, Timestamp, Value
from dafka.overlay.values.encoder import encode

AS_JSON: list[tuple[Value, Any]] = [
    (None, None),
    (True, True),
    (Count(2**64 - 1), 2**64 - 1),
    (-3, -3),
    (1.5, 1.5),
    (math.nan, "NaN"),
    (-math.inf, "-Infinity"),
    ("ü", "ü"),
    ("\udcff", "\\xff"),
    (Address.of("10.0.0.1"), "10.0.0.1"),
    (Subnet.of("10.0.0.0/8"), "10.0.0.0/8"),
    (Port.of("80/tcp"), "80/tcp"),
    (Timestamp(1_500_000_000), 1.5),
    (Timespan(-250_000_000), -0.25),
    (Enum("Log::WRITER_ASCII"), "Log::WRITER_ASCII"),
    (Set([2, 1]), [1, 2]),
    ((1, ("a",)), [1, ["a"]]),
    (Table({"a": Port.of("1/udp")}), {"a": "1/udp"}),
    (Table({1: "a"}), [{"key": 1, "value": "a"}]),
    (Table({}), {}),
]


@pytest.mark.parametrize(("value", "expected"), AS_JSON, ids=[str(index) for index in range(len(AS_JSON))])
def test_values_as_json(value: Value, expected: Any) -> None:
    assert to_json(value) == expected
    assert type(to_json(value)) is type(expected)


def test_written_json_is_one_line_of_utf_8_that_every_parser_takes() -> None:
    octets = dumps(to_json((math.inf, "a\nü", "\udcff")))
    assert b"\n" not in octets
    assert json.loads(octets, parse_constant=pytest.fail) == ["Infinity", "a\nü", "\\xff"]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_becomes_a_value_that_is_the_same_json(parsed: Any) -> None:
    value = from_json(loads(dumps(parsed)))
    encode(value)
    assert to_json(value) == parsed


@pytest.mark.parametrize("octets", [b"", b"{", b"\xff", b"nonsense", b"[" * 100_000])
def test_anything_but_json_is_refused(octets: bytes) -> None:
    with pytest.raises(InvalidValue):
        loads(octets)


@pytest.mark.parametrize("text", ["18446744073709551616", "-9223372036854775809", "[" * 101 + "]" * 101])
def test_json_that_a_value_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        from_json(json.loads(text))


def test_json_that_is_nested_too_deep_is_not_read() -> None:
    with pytest.raises(InvalidValue, match="nested more than 100 deep"):
        loads(b"[" * 500 + b"]" * 500)


@pytest.mark.parametrize("form", [("[", "]"), ('{"a":', "}")])
def test_json_may_be_nested_as_deeply_as_values(form: tuple[str, str]) -> None:
    text = form[0] * 100 + "1" + form[1] * 100
    encode(from_json(json.loads(text)))
