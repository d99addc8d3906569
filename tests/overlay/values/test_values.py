"""Values: every recorded one is written as it was read, and what a stranger sends ends in an error."""

from __future__ import annotations

import math
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay.vectors import native

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import (
    NAN,
    Address,
    Count,
    Enum,
    Port,
    Set,
    Subnet,
    Table,
    Timespan,
    Timestamp,
    decode,
    encode,
    order_key,
)
from dafka.overlay.wire.envelope import DATA, decode_envelope
from dafka.protocol.errors import MalformedMessage

RECORDED = {one.name: one for one in native() if one.name.startswith(("data-", "zeek-event"))}


def payload(name: str) -> bytes:
    return decode_envelope(RECORDED[name].message).payload


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_value_is_written_as_it_was_read(name):
    assert decode_envelope(RECORDED[name].message).kind == DATA
    assert encode(decode(payload(name))) == payload(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data-none", None),
        ("data-boolean-true", True),
        ("data-count-max", Count(2**64 - 1)),
        ("data-integer-min", -(2**63)),
        ("data-real-0.1", 0.1),
        ("data-real-plus-inf", math.inf),
        ("data-real-minus-inf", -math.inf),
        ("data-string-utf8", "Grüße €"),
        ("data-address-v4", Address.of("192.168.9.8")),
        ("data-address-v6", Address.of("2001:db8::1")),
        ("data-subnet-v4", Subnet.of("10.1.2.0/24")),
        ("data-subnet-v6", Subnet.of("2001:db8::/33")),
        ("data-port-udp", Port.of("53/udp")),
        ("data-port-unknown", Port.of("22/?")),
        ("data-timestamp-1969", Timestamp(-500_000_000)),
        ("data-timespan-2h", Timespan(7_200_000_000_000)),
        ("data-enum-foo", Enum("Log::WRITER_ASCII")),
        ("data-set-mixed", Set([None, True, Count(7), "x"])),
        ("data-table-2", Table({"aa": None, "zz": Count(1)})),
        ("data-vector-nested", (Count(42), 23, (Set([Port(1)]),))),
    ],
)
def test_values_are_those_that_libbroker_sent(name, value):
    assert order_key(decode(payload(name))) == order_key(value)
    assert encode(value) == payload(name)


def test_nan_survives():
    assert decode(payload("data-real-nan")) is NAN
    assert encode(float("nan")) == payload("data-real-nan")


def test_addresses_subnets_and_ports_are_printed_as_people_write_them():
    assert str(decode(payload("data-address-v4"))) == "192.168.9.8"
    assert str(decode(payload("data-subnet-v4"))) == "10.1.2.0/24"
    assert str(decode(payload("data-subnet-v6"))) == "2001:db8::/33"
    assert str(decode(payload("data-port-icmp"))) == "8/icmp"


def test_values_equal_in_python_are_several_elements_of_a_set():
    mixed = Set([1.0, 1, Count(1), True, Timestamp(1), Timespan(1)])
    assert [type(element) for element in mixed] == [bool, Count, int, float, Timestamp, Timespan]
    assert decode(encode(mixed)) == mixed
    assert Count(1) in mixed and Count(2) not in mixed and 1 in mixed
    assert Set([Count(1)]) != Set([1])


def test_sets_and_tables_hold_what_python_cannot_hash():
    table = Table([((Table({"a": 1}), Set([(1, 2)])), "deep"), (NAN, "nan")])
    again = decode(encode(table))
    assert again == table
    assert again[Table({"a": 1}), Set([(1, 2)])] == "deep"
    assert again[NAN] == "nan"
    with pytest.raises(KeyError):
        again["missing"]


def test_operators_of_sets_keep_each_element_once():
    assert Set([1, 2]) | Set([2, 3]) == Set([1, 2, 3])
    assert Set([1, 2]) - Set([2]) == Set([1])
    assert Set([1, 2]) & Set([2.0, 2]) == Set([2])


def test_sets_are_sorted_by_octets_and_signs():
    assert list(Set(["ä", "z", "\udcff", "a"])) == ["a", "z", "ä", "\udcff"]
    assert list(Set([5, -5, 0])) == [-5, 0, 5]
    assert list(Set([0.5, -math.inf, NAN, math.inf])) == [-math.inf, 0.5, math.inf, NAN]


def test_octets_that_are_not_utf_8_survive():
    assert encode(decode(b"\x05\x02\xff\xfe")) == b"\x05\x02\xff\xfe"
    assert encode(b"\xff\xfe") == b"\x05\x02\xff\xfe"


def test_pythons_own_containers_are_taken():
    assert decode(encode([1, {"a": {2}}])) == (1, Table({"a": Set([2])}))


@pytest.mark.parametrize(
    "value",
    [
        *(2**63, Count(-1), Count(2**64), Timestamp(2**63), "\ud800", object(), Port(65_536), Port(1, 4)),
        *(Address(b"1"), Subnet(Address(bytes(16)), 129), 1j, ["a", object()], {1: object()}),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value)),  # the same in each worker
)
def test_values_without_a_data_type_are_refused(value):
    with pytest.raises(InvalidValue):
        encode(value)


def test_two_spellings_of_one_string_are_one_element():
    with pytest.raises(InvalidValue, match="twice"):
        Set(["é", "\udcc3\udca9"])


# -- what a stranger may send ---------------------------------------------------------------------


def in_vectors(depth: int, inside: bytes = b"\x00") -> bytes:
    return b"\x0e\x01" * depth + inside


@pytest.mark.parametrize(
    ("octets", "cause"),
    [
        (in_vectors(10_000), "nesting"),
        (b"\x0c\x01" * 10_000 + b"\x00", "nesting"),
        (b"\x0d\x01" * 10_000 + b"\x00", "nesting"),
        (b"\x0e\xff\xff\xff\xff\x0f", "length"),
        (b"\x0d\x02\x00\x00\x00", "length"),
        (b"\x05\xff\xff\xff\xff\x0f", "length"),
        (b"\x05\x05abcd", "length"),
        (b"\x0e\x01\x05\x05abcd", "length"),
        (b"\x05\x80\x80\x80\x80\x80\x00", "varbyte"),
        (b"", "truncated-value"),
        (b"\x02\x00", "truncated-value"),
        (b"\x0e\x01\x02\x00", "truncated-value"),
        (b"\x06" + bytes(15), "truncated-value"),
        (b"\x08\x00", "truncated-value"),
        (b"\x00\x00", "trailing-octets"),
        (b"\x0c\x02\x05\x01a\x05\x01a", "duplicate-element"),
        (b"\x0c\x02\x05\x01a\x05\x81\x00a", "duplicate-element"),
        (b"\x0d\x02\x00\x00\x00\x00", "duplicate-element"),
        (b"\x0c\x02" + (b"\x04" + b"\xff" * 8) * 2, "duplicate-element"),
        (b"\x04\x7f\xf8" + bytes(6), "real"),
        (b"\x0f", "unknown-tag"),
        (b"\x20", "unknown-tag"),
        (b"\x08\x00\x16\x04", "port"),
        (b"\x07" + bytes(16) + b"\x81", "subnet"),
    ],
)
def test_octets_that_are_not_a_value_are_refused_by_name(octets, cause):
    with pytest.raises(MalformedMessage) as caught:
        decode(octets)
    assert caught.value.cause == cause


def test_nesting_up_to_the_bound_is_taken_both_ways():
    deepest = in_vectors(MOST_NESTED)
    assert encode(decode(deepest)) == deepest
    with pytest.raises(InvalidValue, match="nested"):
        encode([decode(deepest)])
    value = []
    for _ in range(10_000):
        value = [value]
    with pytest.raises(InvalidValue, match="nested"):
        encode(value)
    with pytest.raises(InvalidValue, match="nested"):
        Set([value])


def test_a_set_is_read_in_time_that_grows_with_its_octets():
    # Numbers whose hashes are equal; and elements with a long common beginning, nested.
    collide = [Count((2**61 - 1) * step % 2**64 + low) for step in range(8) for low in range(0, 5000)]
    alike = [("x" * 100, Set([(Set([index]),)])) for index in range(10_000)]
    for elements in (sorted(set(collide)), alike):
        octets = encode(Set(elements))
        began = time.process_time()
        decode(octets)
        assert time.process_time() - began < 3.0


# -- any value ------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2**64 - 1).map(Count),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(),
    st.binary().map(lambda octets: octets.decode("utf-8", "surrogateescape")),
    st.binary(min_size=16, max_size=16).map(Address),
    st.builds(Subnet, st.binary(min_size=16, max_size=16).map(Address), st.integers(0, 128)),
    st.builds(Port, st.integers(0, 65_535), st.integers(0, 3)),
    st.integers(-(2**63), 2**63 - 1).map(Timestamp),
    st.integers(-(2**63), 2**63 - 1).map(Timespan),
    st.text().map(Enum),
)


def once(entries):
    """Those whose keys come for the first time."""
    kept = {}
    for entry in entries:
        kept.setdefault(order_key(entry[0]), entry)
    return list(kept.values())


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5).map(tuple),
        st.lists(inner, max_size=5).map(lambda some: Set([one for (one,) in once([(one,) for one in some])])),
        st.lists(st.tuples(inner, inner), max_size=5).map(lambda some: Table(once(some))),
    ),
    max_leaves=30,
)


@given(VALUES)
@settings(deadline=None)
def test_any_value_reads_as_it_was_written(value):
    again = decode(encode(value))
    assert order_key(again) == order_key(value)
    assert encode(again) == encode(value)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_any_octets_are_a_value_or_malformed(octets):
    try:
        value = decode(octets)
    except MalformedMessage:
        return
    assert order_key(decode(encode(value))) == order_key(value)


@given(VALUES, st.integers(0, 2**16), st.integers(0, 255))
@settings(deadline=None)
def test_a_value_with_one_octet_changed_is_a_value_or_malformed(value, position, octet):
    octets = bytearray(encode(value))
    octets[position % len(octets)] = octet
    try:
        again = decode(bytes(octets))
    except MalformedMessage:
        return
    assert order_key(decode(encode(again))) == order_key(again)
