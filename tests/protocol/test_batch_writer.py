"""Batches of ours are those kafka-python builds, octet by octet, and it reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords
from protocol.material import (
    NOW,
    built_by_kafka_python,
    codecs,
    headers,
    octets,
    read_by_kafka_python,
    record_lists,
)

from dafka.protocol import batch_writer, compression
from dafka.protocol.batch import HEADER_OCTETS, BatchError, read_header
from dafka.protocol.batch_writer import encode_batch, encode_columns, record_size_bound

Record = tuple[int, "bytes | None", "bytes | None", Any]


def records_of(count: int, value: bytes = b"x" * 100, step: int = 0) -> list[Record]:
    return [(NOW + number * step, None, value, ()) for number in range(count)]


@given(record_lists)
@example([(NOW, None, None, ())])
@example([(time, None, b"v", ()) for time in (NOW, NOW + 5, NOW)])
@example([(NOW, b"", b"", ())])
@example([(NOW, None, b"v", [("", None), ("", b"")])])
@example([(NOW, b"k" * 70_000, b"v" * 70_000, [("n" * 70_000, b"c" * 70_000)])])
@example([(NOW, None, b"first", ()), (NOW - 10**9, None, b"long before", ()), (NOW + 10**12, b"", None, ())])
@example([(NOW, None, b"v", [("n" * length, b"c"), ("\xe4" * length, None)]) for length in (1, 100, 101)])
@example([(NOW, None, b"v", [("n", b"c")] * 200)])
@example(records_of(9000))
@example(records_of(9000, step=1))
@example(records_of(300, b"x" * 65_525))
@example(records_of(5, b"x" * 70_000))
def test_a_batch_is_the_one_kafka_python_builds(records: list[Record]) -> None:
    assert encode_batch(records) == built_by_kafka_python(records)


few_lengths = st.lists(st.integers(0, 70) | st.integers(8180, 8200), min_size=1, max_size=3)


@st.composite
def alike_records(draw: st.DrawFn) -> list[Record]:
    """Records such as one program sends: few lengths, one set of names, timestamps that hardly move."""
    count = draw(st.integers(1, 200))
    lengths = [draw(st.none() | few_lengths) for _ in range(4)]
    names = draw(st.lists(st.text(max_size=3), max_size=2))
    rises = sorted(draw(st.lists(st.integers(0, count), max_size=3)))
    records: list[Record] = []
    for number in range(count):
        key, value, *more = (
            None if some is None else b"%d" % number * 3 + bytes(some[number % len(some)]) for some in lengths
        )
        its = list(zip(names, more, strict=False))
        records.append((NOW + 100 * sum(rise <= number for rise in rises), key, value, its))
    return records


@given(alike_records())
@example([(NOW, b"k" * (number % 2), b"v" * 65_500, ()) for number in range(30)])
@example([(NOW, b"k" * (number % 2), b"v" * 65_530, ()) for number in range(30)])
@example([(NOW + 2**40 * number, b"k" * (number // 9), b"v", ()) for number in range(18)])
@example([(NOW, None, b"v", [("n", b"same")])] * 30)
@example([(NOW, None, b"v", [("n", b"c")] * (number % 2)) for number in range(30)])
@example([(NOW, None, b"v", [("nm"[number % 2], b"c")]) for number in range(30)])
@example([(NOW, b"k" * (number % 2), b"v", ()) for number in range(9000)])
def test_records_that_are_alike_make_the_batch_that_kafka_python_builds(records: list[Record]) -> None:
    assert encode_batch(records) == built_by_kafka_python(records)


@pytest.mark.parametrize("step", [0, 1])
def test_more_records_than_the_table_has_offsets(step: int) -> None:
    records = records_of(66_000, b"", step)
    assert encode_batch(records) == built_by_kafka_python(records)


@pytest.mark.parametrize("codec", codecs)
@given(records=record_lists)
def test_kafka_python_reads_every_codec(codec: str | None, records: list[Record]) -> None:
    batch = encode_batch(records, base_offset=5, compression=codec)
    assert read_by_kafka_python(batch) == [
        (offset, timestamp, key, value, list(its))
        for offset, (timestamp, key, value, its) in enumerate(records, 5)
    ]


@pytest.mark.parametrize("codec", codecs)
def test_a_batch_that_compression_does_not_shrink_is_left_as_kafka_python_leaves_it(
    codec: str | None,
) -> None:
    records = [(NOW, None, b"x", ())]
    batch = encode_batch(records, compression=codec)
    assert batch == built_by_kafka_python(records, codec)
    assert read_header(batch).compression is None


@pytest.mark.parametrize("codec", [codec for codec in codecs if codec])
def test_a_batch_that_compression_shrinks_is_compressed(codec: str) -> None:
    batch = encode_batch(records_of(100), compression=codec)
    assert read_header(batch).compression == codec
    assert len(batch) < 2000
    assert MemoryRecords(batch).next_batch().compression_type == read_header(batch).attributes


def test_log_append_time_is_a_bit_of_the_header() -> None:
    batch = encode_batch([(NOW, None, b"a", ()), (NOW + 7, None, b"b", ())], timestamp_type=1)
    assert [record[1] for record in read_by_kafka_python(batch)] == [NOW + 7, NOW + 7]


def test_the_producers_state_is_in_the_header() -> None:
    header = read_header(
        encode_batch(records_of(1), producer_id=2**40, producer_epoch=3, base_sequence=2**20)
    )
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 3, 2**20)


@given(st.lists(st.integers(-3 * 1000, 3 * 1000), min_size=1, max_size=6), st.sampled_from([1, 10, 1000]))
@example([999, 0, 1000, 500], 1000)  # the first and the last are of the same millisecond or not
@example([1000, 2500, 1999], 1000)
@example([-1, 0], 1000)
@example([*range(-1100, 1100, 40)], 1000)  # many of each millisecond, from before 1970 on
@example([*range(0, 3000, 20), 2999, 0], 1000)
def test_timestamps_of_smaller_units_become_the_milliseconds_that_have_begun(
    times: list[int], unit: int
) -> None:
    batch = encode_batch([(time, None, b"v", ()) for time in times], per_millisecond=unit)
    assert batch == encode_batch([(time // unit, None, b"v", ()) for time in times])


@given(record_lists)
def test_columns_make_the_same_batch_as_records(records: list[Record]) -> None:
    columns = [list(column) for column in zip(*records, strict=True)]
    assert encode_columns(*columns) == encode_batch(records)  # type: ignore[arg-type]


def test_keys_and_values_may_be_any_buffers_of_octets() -> None:
    buffers = [(NOW, bytearray(b"key"), memoryview(b"value"), ()), (NOW, memoryview(b""), bytearray(), ())]
    assert encode_batch(buffers) == encode_batch(  # type: ignore[arg-type]
        [(NOW, b"key", b"value", ()), (NOW, b"", b"", ())]
    )


@pytest.mark.parametrize(
    ("records", "options"),
    [
        ([], {}),
        (records_of(1), {"compression": "brotli"}),
        (records_of(1), {"compression": ""}),
        (records_of(1), {"base_offset": 2**63}),
        (records_of(1), {"producer_id": 2**63}),
        (records_of(1), {"base_sequence": 2**31}),
        ([(2**63, None, b"", ())], {}),
        ([(-(2**63), None, b"", ()), (0, None, b"", ())], {}),
        ([(NOW, None, b"", [("\ud800", b"")])], {}),
    ],
)
def test_records_that_do_not_fit_a_batch_are_a_value_error(
    records: list[Record], options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError):
        encode_batch(records, **options)


@pytest.mark.parametrize(
    "record",
    [
        (NOW, None, "text", ()),
        (NOW, "text", b"", ()),
        (NOW, None, 5, ()),
        (NOW, 5, b"", ()),
        ("now", None, b"", ()),
    ],
)
@pytest.mark.parametrize("count", [1, 10])
def test_anything_but_octets_is_a_type_error(record: Any, count: int) -> None:
    with pytest.raises(TypeError):
        encode_batch([record] * count)


def test_columns_of_different_lengths_are_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"\(2, 1, 2, 2\)"):
        encode_columns([NOW, NOW], [None], [b"", b""], [(), ()])


def test_the_number_of_records_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_writer, "RECORDS_LIMIT", 10)
    assert encode_batch(records_of(10))
    with pytest.raises(ValueError, match="at most 10 records, not 11"):
        encode_batch(records_of(11))


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_a_codec_that_is_not_installed_is_named(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_library", lambda name: None)
    with pytest.raises(BatchError, match=f"{codec} is not installed; pip install") as caught:
        encode_batch(records_of(10), compression=codec)
    assert caught.value.cause == "codec"


@given(st.none() | octets, st.none() | octets, headers)
def test_the_bound_of_a_records_size_is_kafka_pythons(
    key: bytes | None, value: bytes | None, its: list[tuple[str, bytes | None]]
) -> None:
    theirs = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, its)
    assert HEADER_OCTETS + record_size_bound(key, value, its) == theirs


@given(record_lists)
def test_records_take_no_more_than_their_bounds(records: list[Record]) -> None:
    bound = sum(record_size_bound(key, value, its) for _, key, value, its in records)
    assert len(encode_batch(records)) <= HEADER_OCTETS + bound
