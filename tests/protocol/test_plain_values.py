"""The values of batches that have nothing else: read at once, and the same as one by one."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from dafka.protocol.batch import CRC_END, CRC_START, BatchError
from dafka.protocol.batch_reader import decode_batch, decode_plain_values
from dafka.protocol.batch_writer import encode_columns


def batch(values, *, timestamps=None, keys=None, headers=None, **options):
    count = len(values)
    return encode_columns(
        timestamps or [5] * count, keys or [None] * count, values, headers or [()] * count, **options
    )


@pytest.mark.parametrize("count", [8, 63, 64, 65, 6000, 8192])
def test_values_of_one_length_are_read(count):
    values = [b"%06d" % number for number in range(count)]
    assert decode_plain_values(batch(values)) == values
    timestamps = [number // 3000 for number in range(count)]
    assert decode_plain_values(batch(values, timestamps=timestamps)) == values


def test_a_few_values_of_other_lengths_are_read_with_them():
    values = [b"a"] * 50 + [b"bb"] + [b"c"] * 50 + [b""]
    assert decode_plain_values(batch(values)) == values


@pytest.mark.parametrize(
    "other",
    [
        batch([b"a"] * 7),
        batch([b"a", b"bb"] * 100),
        batch([b"a"] * 50 + [None]),
        batch([b"a"] * 50, keys=[b"k"] * 50),
        batch([b"a"] * 50, headers=[()] * 49 + [[("h", b"")]]),
        batch([b"a"] * 500, compression="gzip"),
    ],
    ids=["few", "of many lengths", "null", "keys", "headers", "compressed"],
)
def test_any_other_batch_is_left_to_the_general_way(other):
    assert decode_plain_values(other) is None
    decode_batch(other)


def test_offset_deltas_of_three_octets_are_read_and_checked():
    values = [b"a"] * 20_000
    content = batch(values)
    assert decode_plain_values(content) == values
    record = b"\x12\0\0\x80\x80\1\1\2a\0"  # number 8192
    assert content.count(record) == 1
    for wrong in (
        record.replace(b"\x80\x80\1", octets) for octets in (b"\x82\x80\1", b"\x80\x82\1", b"\x80\x80\3")
    ):
        changed = bytearray(content.replace(record, wrong))
        changed[CRC_START:CRC_END] = crc32c(bytes(changed[CRC_END:])).to_bytes(4, "big")
        assert decode_plain_values(bytes(changed)) is None
        with pytest.raises(BatchError, match="do not ascend"):
            decode_batch(bytes(changed))


def test_a_batch_with_a_wrong_header_is_an_error():
    with pytest.raises(BatchError):
        decode_plain_values(b"\0" + batch([b"a"] * 50)[:-1])


lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 200)), max_size=5)


@given(lengths, st.lists(st.integers(0, 3), min_size=1))
def test_plain_values_are_those_that_the_general_decoder_reads(runs, times):
    values = [bytes([number]) * length for number, (count, length) in enumerate(runs) for _ in range(count)]
    if not values:
        return
    stamps = [times[place * len(times) // len(values)] for place in range(len(values))]
    octets = batch(values, timestamps=stamps)
    plain = decode_plain_values(octets)
    assert plain is None or plain == decode_batch(octets).values == values


@given(st.data())
def test_octets_that_are_torn_or_changed_are_never_taken_for_other_values(data):
    octets = bytearray(batch([b"%03d" % number for number in range(20)]))
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(61, len(octets) - 1))] = data.draw(st.integers(0, 255))
    octets[CRC_START:CRC_END] = crc32c(bytes(octets[CRC_END:])).to_bytes(4, "big")
    plain = decode_plain_values(bytes(octets))
    if plain is not None:
        assert plain == decode_batch(bytes(octets)).values
