"""Varints, checked against kafka-python's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import util

from dafka.protocol.varint import (
    TABLE_SIZE,
    decode_varint,
    encode_varint,
    encode_varints,
    varint_octets,
    varint_table,
)

numbers = st.one_of(st.integers(-100, 100), st.integers(-(2**63), 2**63 - 1))
BOUNDS = [0, 63, 64, 8191, 8192, 65535, 65536, 2**20 - 1, 2**20, 2**27 - 1, 2**27, 2**31 - 1]


def by_kafka_python(number: int) -> bytes:
    octets = bytearray()
    util.encode_varint(number, octets.append)
    return bytes(octets)


@given(numbers)
def test_a_number_is_written_as_kafka_python_writes_it(number: int) -> None:
    assert encode_varint(number) == by_kafka_python(number)


@given(numbers, st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_comes_back_with_the_position_behind_it(number: int, before: bytes, behind: bytes) -> None:
    octets = encode_varint(number)
    position = len(before) + len(octets)
    assert decode_varint(before + octets + behind, len(before)) == (number, position)


def test_the_table_holds_what_is_computed() -> None:
    assert varint_table() == list(map(encode_varint, range(TABLE_SIZE)))


@given(st.lists(numbers, min_size=1))
def test_many_numbers_are_written_as_one_by_one(many: list[int]) -> None:
    assert encode_varints(many) == list(map(encode_varint, many))


@pytest.mark.parametrize("length", BOUNDS)
def test_the_size_of_a_length_is_known_without_writing_it(length: int) -> None:
    assert varint_octets(length) == len(encode_varint(length))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**200])
def test_a_number_of_more_than_64_bits_is_not_written(number: int) -> None:
    with pytest.raises(ValueError, match=str(number)):
        encode_varint(number)


@pytest.mark.parametrize("octets", [b"", b"\x80", b"\xff" * 9])
def test_a_varint_without_an_end_is_an_index_error(octets: bytes) -> None:
    with pytest.raises(IndexError):
        decode_varint(octets, 0)


@pytest.mark.parametrize("octets", [b"\xff" * 10 + b"\x01", b"\xff" * 1000, b"\xff" * 9 + b"\x02"])
def test_a_varint_of_more_than_64_bits_is_not_read(octets: bytes) -> None:
    with pytest.raises(ValueError, match="varint"):
        decode_varint(octets, 0)
