"""Batches of kafka-python's are read as it reads them, and hostile ones raise BatchError only."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from protocol.material import (
    NOW,
    assembled,
    built_by_kafka_python,
    codecs,
    read_by_kafka_python,
    record_lists,
)

from dafka.protocol import batch_reader, compression
from dafka.protocol.batch import CODECS, HEADER_OCTETS, BatchError, read_header, with_offset
from dafka.protocol.batch_reader import Columns, decode_batch
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.varint import decode_varint, encode_varint

Record = tuple[int, "bytes | None", "bytes | None", Any]

INSTALLED = [codec for codec in codecs if codec]


def rows(columns: Columns) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True))


def record(
    timestamp: int = 0, offset: int = 0, key: bytes = b"\x01", value: bytes = b"\x01", headers: bytes = b"\0"
) -> bytes:
    """A record from fields that are taken as they are."""
    body = b"\0" + encode_varint(timestamp) + encode_varint(offset) + key + value + headers
    return encode_varint(len(body)) + body


def cause(batch: bytes) -> str:
    with pytest.raises(BatchError) as caught:
        decode_batch(batch)
    return caught.value.cause


@pytest.mark.parametrize("codec", codecs)
@given(records=record_lists, base=st.integers(0, 2**62))
def test_kafka_pythons_batches_are_read_as_kafka_python_reads_them(
    codec: str | None, records: list[Record], base: int
) -> None:
    batch = with_offset(built_by_kafka_python(records, codec), base)
    assert rows(decode_batch(batch)) == read_by_kafka_python(batch)


def in_stretches(seed: int) -> list[Record]:
    """Records whose shape stays the same for a while, changes a little, and sometimes with each record."""
    chance = random.Random(seed)
    records: list[Record] = []
    timestamp, key, value, its = NOW, None, b"", []
    for _ in range(chance.randrange(2, 40)):
        timestamp += chance.choice((0, 1, -1, 40, 100, 7000, 10**6, -(10**6)))
        key = chance.choice((None, None, b"k" * chance.choice((0, 1, 70)), key))
        value = chance.choice((None, b"v" * chance.choice((0, 1, 60, 100, 9000)), value, value))
        its = chance.choice(([], [], [("h", b"1")]))
        for _ in range(chance.choice((1, 1, 7, 8, 9, 30))):
            timestamp += chance.choice((0, 0, 1))
            fresh = bytes(chance.randrange(256) for _ in range(min(len(value or b""), 50)))
            records.append((timestamp, key, value if value is None else fresh + value[50:], its))
    return records


@pytest.mark.parametrize("seed", range(150))
def test_records_of_one_shape_and_of_many_are_read_alike(seed: int) -> None:
    batch = built_by_kafka_python(in_stretches(seed))
    assert rows(decode_batch(batch)) == read_by_kafka_python(batch)


@pytest.mark.parametrize("count", [8192, 9000, 70_000])
def test_many_records_of_one_shape(count: int) -> None:
    records = [(NOW + number % 50, None, b"%08d" % number, []) for number in range(count)]
    columns = decode_batch(encode_batch(records, base_offset=3))
    assert columns.offsets == list(range(3, count + 3))
    assert rows(columns._replace(offsets=[0] * count)) == [(0, *record) for record in records]


def test_each_record_has_a_list_of_headers_of_its_own() -> None:
    for count in (1, 3, 100):
        headers = decode_batch(encode_batch([(NOW, None, b"", ())] * count)).headers
        headers[0].append(("name", b"content"))
        assert headers[1:] == [[]] * (count - 1)


def test_log_append_time_is_the_maximum_timestamp_for_all() -> None:
    records = [(NOW + number, None, b"", ()) for number in (0, 9, 5)]
    assert decode_batch(encode_batch(records, timestamp_type=1)).timestamps == [NOW + 9] * 3


def test_offsets_may_have_gaps_as_compaction_leaves_them() -> None:
    body = b"".join(record(offset=offset) for offset in (2, 3, 70, 9000))
    batch = with_offset(assembled(body, 4, last_offset_delta=9100), 1000)
    assert decode_batch(batch).offsets == [1002, 1003, 1070, 10000]
    many = b"".join(record(offset=2 * number) for number in range(100))
    assert decode_batch(assembled(many, 100, last_offset_delta=200)).offsets == list(range(0, 200, 2))


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    assert decode_batch(assembled(b"", 0, last_offset_delta=9)) == ([], [], [], [], [])


def test_a_varint_may_be_longer_than_it_has_to_be() -> None:
    body = b"\0\x80\x80\0" + b"\x80\0" + b"\x82\0k" + b"\x82\x80\0v" + b"\x80\0"
    batch = assembled(encode_varint(len(body)) + body, 1)
    assert rows(decode_batch(batch)) == [(0, NOW, b"k", b"v", [])] == read_by_kafka_python(batch)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_buffer_is_read_into_bytes(kind: type) -> None:
    columns = decode_batch(kind(encode_batch([(NOW, b"key", b"value", ())])))
    assert (type(columns.keys[0]), type(columns.values[0])) == (bytes, bytes)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (record(), 2),
        (record(offset=0) + record(offset=1), 1),
        (record() + b"\0", 1),
        (b"", 1),
        (bytes(7), 1),
        (b"\x01" + bytes(7), 1),
        (b"\xff" * 20, 1),
        (b"\x80" * 20, 1),
        (encode_varint(2**31) + bytes(7), 1),
        (encode_varint(-(2**31)) + bytes(7), 1),
        (record(key=b"\x03"), 1),
        (record(value=b"\x03"), 1),
        (record(key=b"\x80\x01"), 1),
        (record(key=encode_varint(-(2**31))), 1),
        (record(value=encode_varint(-(2**31))), 1),
        (record(key=encode_varint(2**31)), 1),
        (record(value=encode_varint(2**31)), 1),
        (record(value=encode_varint(2**62)), 1),
        (record(headers=b"\x01"), 1),
        (record(headers=encode_varint(2**31)), 1),
        (record(headers=encode_varint(2**62)), 1),
        (record(headers=b"\x02\x01\x01"), 1),
        (record(headers=b"\x02\x02a\x03"), 1),
        (record(headers=b"\x02\x02\xff\x01"), 1),
        (record(headers=b"\x02\x04a"), 1),
        (record(offset=0) + record(offset=0), 2),
        (record(offset=1) + record(offset=0), 2),
        (record(offset=-1) + record(offset=0), 2),
        (record(offset=0) + record(offset=2), 2),
        (b"".join(record(offset=min(n, 50)) for n in range(100)), 100),
        (b"".join(record(offset=n, value=b"\x03") for n in range(100)), 100),
        (b"".join(record(offset=n) for n in range(100))[:-1] + b"\x02", 100),
    ],
)
def test_records_that_are_not_as_they_say_are_a_batch_error(body: bytes, count: int) -> None:
    assert cause(assembled(body, count)) in ("count", "records", "offsets")


@pytest.mark.parametrize("size", [1, 100, 10_000])  # whose lengths take one, two and three octets
@pytest.mark.parametrize("count", [1, 3, 100])
def test_a_record_of_a_negative_length_is_a_batch_error(size: int, count: int) -> None:
    records = [record(offset=number, value=encode_varint(size) + bytes(size)) for number in range(count)]
    assert len(decode_batch(assembled(b"".join(records), count)).values) == count
    length, start = decode_varint(records[-1], 0)
    records[-1] = encode_varint(-length - 1) + records[-1][start:]
    assert cause(assembled(b"".join(records), count)) == "records"


def test_a_bogus_count_makes_nothing() -> None:
    batch = assembled(bytes(10_000), batch_reader.RECORDS_LIMIT)
    tracemalloc.start()
    try:
        assert cause(batch) == "count"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_more_records_than_the_limit_are_a_batch_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_reader, "RECORDS_LIMIT", 10)
    assert len(decode_batch(encode_batch([(NOW, None, b"", ())] * 10)).values) == 10
    with pytest.raises(BatchError, match="11 records, at most 10"):
        decode_batch(encode_batch([(NOW, None, b"", ())] * 11))


@given(st.binary(max_size=300), st.integers(-5, 50), st.integers(0, 4), st.integers(-5, 60))
@example(b"", 0, 1, 0)
def test_any_octets_in_a_right_frame_raise_nothing_but_batch_error(
    body: bytes, count: int, attributes: int, last: int
) -> None:
    try:
        columns = decode_batch(assembled(body, count, attributes=attributes, last_offset_delta=last))
    except BatchError:
        return
    assert {len(column) for column in columns} == {count}


@pytest.mark.parametrize("codec", codecs)
@given(data=st.data())
def test_damage_under_a_right_checksum_raises_nothing_but_batch_error(
    codec: str | None, data: st.DataObject
) -> None:
    records = data.draw(record_lists)
    batch = encode_batch(records, compression=codec)
    header = read_header(batch)
    body = bytearray(batch[HEADER_OCTETS:])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    count = header.count + data.draw(st.sampled_from([0, 0, 1, -1, 1000]))
    try:
        columns = decode_batch(assembled(bytes(body), count, attributes=header.attributes))
    except BatchError:
        return
    assert {len(column) for column in columns} == {count}


@given(st.data())
def test_any_octets_raise_nothing_but_batch_error(data: st.DataObject) -> None:
    batch = bytearray(encode_batch(data.draw(record_lists)))
    batch[data.draw(st.integers(0, len(batch) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        decode_batch(bytes(batch[: data.draw(st.integers(0, len(batch)))]))
    except BatchError:
        return


def test_an_unknown_codec_is_a_batch_error() -> None:
    assert cause(assembled(record(), 1, attributes=5)) == "codec"


@pytest.mark.parametrize("codec", INSTALLED)
def test_a_codec_that_is_not_installed_is_named(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = encode_batch([(NOW, None, bytes(500), ())], compression=codec)
    monkeypatch.setattr(compression, "is_available", lambda name: False)
    with pytest.raises(BatchError, match=f"{codec} is not installed; pip install") as caught:
        decode_batch(batch)
    assert caught.value.cause == "codec"


@pytest.mark.parametrize("codec", INSTALLED)
def test_a_batch_that_inflates_beyond_the_limit_is_a_batch_error(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = encode_batch([(NOW, None, bytes(3_000_000), ())], compression=codec)
    assert CODECS[codec] == read_header(batch).attributes
    monkeypatch.setattr(compression, "DECOMPRESSED_LIMIT", 2_000_000)
    assert cause(batch) == "size"
