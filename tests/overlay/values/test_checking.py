"""What is checked is what is decoded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay.vectors import native

from dafka.overlay.limits import CHECKED_AT_ONCE, CHECKED_OCTETS, MOST_NESTED
from dafka.overlay.values import Count, Enum, Port, Set, Subnet, Table, Timespan, Timestamp, decode, encode
from dafka.overlay.values.checking import is_value, takes_long, work
from dafka.overlay.wire.envelope import DATA, decode_envelope
from dafka.overlay.wire.zeek import Event, ValueReader, first_values, is_value_fast, to_value
from dafka.protocol.errors import MalformedMessage

RECORDED = {
    one.name: decode_envelope(one.message).payload
    for one in native()
    if one.name.startswith(("data-", "zeek-event")) and decode_envelope(one.message).kind == DATA
}
TEXTS = st.one_of(st.text(max_size=4), st.just("x" * 200))
FLAT = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(Count),
    st.floats(),
    TEXTS,
    TEXTS.map(Enum),
    st.builds(Port, st.integers(0, 0xFFFF), st.integers(0, 3)),
    st.just(Subnet.of("10.1.0.0/16")),
    st.integers(-5, 5).map(Timestamp),
    st.integers(-5, 5).map(Timespan),
)
VALUES = st.recursive(
    FLAT,
    lambda some: st.one_of(
        st.lists(some, max_size=4).map(tuple),
        st.lists(some, max_size=1).map(Set),
        st.lists(st.tuples(some, some), max_size=1).map(Table),
    ),
    max_leaves=12,
)
EVENTS = st.tuples(TEXTS, st.lists(VALUES, max_size=3).map(tuple)).map(lambda both: to_value(Event(*both)))


def is_decoded(octets: bytes) -> bool:
    try:
        decode(octets)
    except MalformedMessage:
        return False
    return True


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_values_are_values_and_no_part_of_them_is(name):
    octets = RECORDED[name]
    for end in range(len(octets) + 1):
        part = octets[:end]
        assert is_value(part) == is_value_fast(part) == is_decoded(part)
    assert is_value(octets) and not is_value(octets + b"\x00")


@given(st.one_of(VALUES, EVENTS), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3))
@settings(deadline=None, max_examples=300)
def test_tampered_octets_are_a_value_if_they_can_be_decoded(value, changes):
    octets = bytearray(encode(value))
    for place, octet in changes:
        octets[place % len(octets)] = octet
    assert is_value(bytes(octets)) == is_value_fast(bytes(octets)) == is_decoded(bytes(octets))


@given(st.binary(max_size=40))
def test_any_octets_are_a_value_if_they_can_be_decoded(octets):
    assert is_value(octets) == is_value_fast(octets) == is_decoded(octets)


@pytest.mark.parametrize("depth", [MOST_NESTED, MOST_NESTED + 1])
def test_nesting_ends_at_the_same_bound(depth):
    octets = b"\x0e\x01" * depth + b"\x00"
    assert is_value(octets) == is_decoded(octets) == (depth == MOST_NESTED)
    within = encode(to_value(Event("e", (None,))))[:-1] + octets
    assert is_value_fast(within) == is_value(within) == is_decoded(within) is False


@pytest.mark.parametrize(
    "octets",
    [
        b"\x0c\x02\x00\x00",  # a set with an element twice
        b"\x0d\x02\x00\x00\x00\x00",
        b"\x04\x7f\xf0\x00\x00\x00\x00\x00\x01",  # not Broker's NaN
        b"\x0e\xff\xff\xff\xff\x0f",  # more elements than octets
        b"\x05\xff\xff\xff\xff\xff\x01",  # a length of six octets
    ],
)
def test_octets_refused_by_name_are_not_a_value(octets):
    assert not is_decoded(octets) and not is_value(octets)
    assert not is_value(b"\x0e\x01" + octets)


ALIKE = st.lists(st.one_of(FLAT, VALUES), max_size=2).map(
    lambda arguments: encode(to_value(Event("conn", tuple(arguments))))
)
STREAMS = st.lists(
    st.one_of(
        ALIKE,
        EVENTS.map(encode),
        st.tuples(ALIKE, st.integers(0, 40), st.integers(0, 255)).map(
            lambda what: what[0][: what[1]] + bytes((what[2],)) + what[0][what[1] + 1 :]
        ),
        st.tuples(ALIKE, st.sampled_from([b"\x00", b"\x01\x01", b"\x05"])).map(b"".join),  # it is too long
        st.tuples(ALIKE, st.integers(1, 9)).map(lambda both: both[0][: -both[1]]),
    ),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(STREAMS)
def test_a_stream_is_read_as_each_of_its_values_is(stream):
    reader = ValueReader()
    some = reader.read(stream[:3]) + reader.read(stream[3:])
    assert [encode(value) for value in some] == [encode(decode(one)) for one in stream if is_decoded(one)]


@settings(max_examples=150, deadline=None)
@given(STREAMS)
def test_the_values_among_messages_are_those_that_can_be_decoded(stream):
    assert first_values(stream) == ([one for one in stream if is_decoded(one)], len(stream))


SETS = encode(to_value(Event("conn", tuple([Set(range(40))] * 3))))


@pytest.mark.parametrize("damage", [0, 1])
def test_as_many_are_looked_at_as_are_little_work(damage):
    stream = [SETS[: len(SETS) - damage]] * 50
    values, looked_at = first_values(stream)
    assert 1 < looked_at < 50 and looked_at * work(stream[0]) <= CHECKED_AT_ONCE
    assert values == stream[: 0 if damage else looked_at]


def test_one_that_takes_long_is_not_looked_at_unless_it_is_the_first_which_its_caller_knows():
    small, large = encode(to_value(Event("conn", (1, "x")))), encode("x" * CHECKED_OCTETS)[:-1]
    many = encode(to_value(Event("conn", tuple([Set([number]) for number in range(120)]))))
    for one in (large, many):
        assert takes_long(one)
        assert first_values([small, small, one, small]) == ([small, small], 2)
        assert first_values([one, small]) == ([one, small], 2)
