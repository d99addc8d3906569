"""A mark that libbroker does not see, on every value that has room for one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from overlay.vectors import native

from dafka.overlay.values import Count, Enum, Set, Table, decode, encode
from dafka.overlay.wire.envelope import DATA, decode_envelope
from dafka.overlay.wire.marks import is_marked, marked

VALUES = ["", "x" * 127, "x" * 128, "x" * 70_000, Enum("e"), (), (Count(1), "a"), Set([1]), Table([(1, 2)])]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_marked_value_is_the_same_value(value):
    octets = encode(value)
    once = marked(octets)
    assert once is not None and is_marked(once) and not is_marked(octets)
    assert decode(once) == value and len(once) == len(octets) + 1
    assert marked(once) == once


@pytest.mark.parametrize("value", [None, True, Count(0), 0, 1.5])
def test_numbers_take_no_mark(value):
    assert marked(encode(value)) is None and not is_marked(encode(value))


@given(st.binary(max_size=12))
@example(b"\x05\x80\x80\x80\x80\x01")
def test_malformed_values_raise_nothing(octets):
    assert is_marked(octets) in (True, False)
    assert marked(octets) is None or is_marked(marked(octets))


def test_nothing_that_was_recorded_of_libbroker_has_a_mark():
    ours = [one for one in native() if one.direction.startswith("python->")]
    messages = [one.message for one in native() if "ttl=" in one.meaning and one not in ours]
    payloads = [decode_envelope(message).payload for message in messages if message[32] == DATA]
    assert payloads
    assert not any(map(is_marked, payloads))
