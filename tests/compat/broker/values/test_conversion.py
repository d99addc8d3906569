"""Python's objects as values, and values as Python's objects, beside the values' own encoding."""

from __future__ import annotations

import datetime
import enum
import ipaddress
import types
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.broker import Address, Count, Data, Enum, ImmutableData, Port, Subnet, Timespan, Timestamp
from compat.broker._values.conversion import HashableReadOnlyDict, to_immutable, to_python, to_value
from dafka.overlay import values
from dafka.overlay.errors import InvalidValue
from dafka.overlay.values import decode, encode

UTC = datetime.timezone.utc


def objects(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(of, max_size=4).map(tuple),
        st.frozensets(of, max_size=4),
        st.dictionaries(of, of, max_size=4).map(HashableReadOnlyDict),
    )


SCALARS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False).filter(lambda real: not real.is_integer()),
    st.text("aä\0\n\U0001f600"),
    st.integers(0, 2**64 - 1).map(Count),
    st.text("ab:").map(Enum),
    st.ip_addresses(v=4),
    st.ip_addresses(v=6).filter(lambda ip: ip.ipv4_mapped is None),
    st.builds(Port, st.integers(0, 65535), st.sampled_from(list(Port.Protocol))),
    st.timedeltas(datetime.timedelta(days=-300), datetime.timedelta(days=300)),
)
OBJECTS = st.recursive(SCALARS, objects, max_leaves=12)


@settings(max_examples=50)
@given(OBJECTS)
def test_objects_come_back_after_a_journey(thing: Any):
    assert to_immutable(decode(encode(to_value(thing)))) == thing


@settings(max_examples=50)
@given(OBJECTS)
def test_values_of_objects_are_those_that_are_decoded(thing: Any):
    value = to_value(thing)
    assert Data(thing)._value == value
    there = decode(encode(value))
    assert type(there) is type(value)
    assert values.order_key(there) == values.order_key(value)


def test_containers():
    assert to_python(to_value([1, (2,)])) == (1, (2,))
    assert to_python(to_value(frozenset({1, 2}))) == {1, 2}
    assert type(to_python(to_value(frozenset({1, 2})))) is set
    assert to_python(to_value(types.MappingProxyType({"a": [1]}))) == {"a": (1,)}


def test_to_broker_true_and_1_are_two_elements_and_come_back_as_python_has_them():
    assert str(Data({True: "a", 2: "b"})) == "{T -> a, 2 -> b}"
    assert to_python(values.Set([True, 1, values.Count(1)])) == {1, Count(1)}


def test_the_same_string_as_text_and_as_octets_is_one_element():
    assert to_python(to_value({"a", b"a"})) == {"a"}
    assert to_python(to_value({"a": 1, b"a": 2})) == {"a": 2}


def test_strings_that_are_not_utf_8_come_as_octets():
    assert to_python(to_value(b"plain")) == "plain"
    assert to_python(to_value("häß".encode())) == "häß"
    assert to_python(to_value(b"\x82\xff")) == b"\x82\xff"
    assert to_python(to_value([b"\xed\xa0\x80"])) == (b"\xed\xa0\x80",)


def test_spans_of_time():
    span = datetime.timedelta(days=-1, seconds=3, microseconds=7)
    assert to_value(span) == values.Timespan((-86400 + 3) * 10**9 + 7000)
    assert to_python(to_value(span)) == span
    assert to_python(values.Timespan(1_500)) == datetime.timedelta(microseconds=2)
    assert to_python(values.Timespan(2**63 - 1)) > datetime.timedelta(days=100_000)


def test_points_of_time_come_in_utc():
    there = datetime.datetime(2023, 5, 3, 9, 27, 57, tzinfo=UTC)
    assert to_python(to_value(there)) == there
    assert to_python(to_value(there)).tzinfo is UTC
    east = there.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    assert to_value(east) == to_value(there)
    local = datetime.datetime(2023, 5, 3, 9, 27, 57)
    assert to_python(to_value(local)).timestamp() == local.timestamp()


def test_times_out_of_range_are_refused():
    with pytest.raises(OverflowError, match="64 bits"):
        to_value(datetime.datetime(2300, 1, 1, tzinfo=UTC))
    for local in (datetime.datetime.min, datetime.datetime.max):
        with pytest.raises(OverflowError, match="64 bits"):
            to_value(local)
    with pytest.raises(OverflowError, match="64 bits"):
        to_value(datetime.timedelta(days=200_000))


def test_networks():
    for text in ("10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "fc00::/7", "::/0", "::1/128"):
        network = ipaddress.ip_network(text)
        assert str(Data(network)) == text
        assert to_python(to_value(network)) == network


def test_networks_of_a_peer_that_does_not_clear_bits():
    mapped = values.Address.of("10.1.2.3")
    assert to_python(values.Subnet(mapped, 104)) == ipaddress.ip_network("10.0.0.0/8")
    assert to_python(values.Subnet(mapped, 5)) == ipaddress.ip_network("::/5")


def test_integers_have_64_bits():
    assert to_value(-(2**63)) == -(2**63)
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError, match="64 bits"):
            to_value([number])


class Colour(enum.IntEnum):
    RED = 3


class Name(str):
    pass


class Point(tuple):
    pass


def test_objects_of_derived_classes_are_taken_for_those_of_their_bases():
    assert type(to_value(Colour.RED)) is int
    assert type(to_value(Name("x"))) is str
    assert to_value([Name("x"), Point((1, Colour.RED))]) == ("x", (1, 3))


def test_the_bindings_own_classes():
    ip = Address(bytes([10, 1, 2, 3]), 4)
    assert to_python(to_value(ip)) == ipaddress.ip_address("10.1.2.3")
    assert to_python(to_value(Subnet(ip, 8))) == ipaddress.ip_network("10.0.0.0/8")
    assert to_python(to_value(Timespan(5.0))) == datetime.timedelta(seconds=5)
    assert to_python(to_value(Timestamp(5.0))) == datetime.datetime.fromtimestamp(5, UTC)
    assert to_python(to_value([Data(5), Data([6])])) == (5, (6,))


@pytest.mark.parametrize("wrong", [object(), 1j, bytearray(b"x"), datetime.date(2020, 1, 1), range(3)])
def test_values_without_a_data_type_are_refused_by_name(wrong: object):
    with pytest.raises(TypeError, match=f"unsupported data type: .*{type(wrong).__name__}"):
        to_value([{"key": wrong}])


def test_objects_nested_too_deep_are_refused():
    deep: Any = ()
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(InvalidValue, match="nested"):
        to_value(deep)


def test_half_of_a_surrogate_pair_is_refused():
    with pytest.raises(InvalidValue, match="not Unicode"):
        to_value("\ud800")


def test_sets_of_tables_need_immutable_objects():
    value = values.Set([values.Table({"a": 1}), values.Set([1])])
    with pytest.raises(TypeError, match="unhashable"):
        to_python(value)
    assert to_immutable(value) == {HashableReadOnlyDict({"a": 1}), frozenset({1})}


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.__setitem__("b", 2),
        lambda table: table.__delitem__("a"),
        lambda table: table.__ior__({"b": 2}),
        lambda table: table.pop("a"),
        lambda table: table.popitem(),
        lambda table: table.clear(),
        lambda table: table.update(b=2),
        lambda table: table.setdefault("b", 2),
    ],
)
def test_an_immutable_table_cannot_be_changed(change):
    table = ImmutableData.to_py(Data({"a": 1}))
    assert isinstance(table, dict)
    with pytest.raises(TypeError, match="cannot modify"):
        change(table)
    assert table == {"a": 1}
