"""Acquired records: which of a batch they are, what cannot be read, and how often a batch is decoded."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.structs import TopicPartition

from compat.kafka.share import _records
from compat.kafka.share._records import Reader, Taken, deserializer_of
from dafka.broker.interface.share import AcknowledgeType, Acquired, SharedRecords
from dafka.protocol.batch import BatchError
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(base_offset: int, *values: bytes) -> bytes:
    return encode_batch([(7, None, value, [("h", b"1")]) for value in values], base_offset=base_offset)


def take(
    reader: Reader, content: bytes, *runs: tuple[int, int], partition: TopicPartition = T0, count: int = 1
) -> Taken:
    acquired = [Acquired(first, last, count) for first, last in runs]
    return reader.take(partition, SharedRecords(batches=[content], acquired=acquired))


def values(taken: Taken) -> list[Any]:
    return [record.value for record in taken.records]


@pytest.fixture
def reader() -> Reader:
    return Reader(deserializer_of(None, None))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The batches that were decoded."""
    contents: list[bytes] = []

    def decode(content: bytes) -> Any:
        contents.append(content)
        return decode_batch(content)

    monkeypatch.setattr(_records, "decode_batch", decode)
    return contents


def test_acquired_records_are_those_of_the_runs(reader: Reader) -> None:
    taken = take(reader, batch(10, b"a", b"b", b"c", b"d", b"e"), (9, 10), (12, 13))
    assert values(taken) == [b"a", b"c", b"d"]
    assert taken.others == {9: AcknowledgeType.GAP}


def test_a_batch_that_is_acquired_a_part_at_a_time_is_decoded_once(
    reader: Reader, decoded: list[bytes]
) -> None:
    content, other = batch(0, *(b"%d" % number for number in range(100))), batch(0, b"x", b"y")
    found = []
    for first in range(0, 100, 10):
        found += values(take(reader, bytes(bytearray(content)), (first, first + 9)))
        take(reader, other, (0, 0), partition=T1)
    assert found == [b"%d" % number for number in range(100)]
    assert decoded == [content, other]
    take(reader, content, (0, 0))  # it was not kept beyond its end
    assert decoded == [content, other, content]


def test_another_batch_at_the_same_offsets_is_not_taken_for_the_one_before(reader: Reader) -> None:
    assert values(take(reader, batch(0, b"a", b"b"), (0, 0))) == [b"a"]
    assert values(take(reader, batch(0, b"c", b"d"), (1, 1))) == [b"d"]


def test_decoded_batches_are_kept_within_a_bound(
    reader: Reader, decoded: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_records, "KEPT", 5000)
    large = batch(0, bytes(3000), b"b", b"c")
    for partition in (T0, T0, T1, T1, T0):
        take(reader, large, (1, 1), partition=partition)
    assert len(decoded) == 3  # of one partition both times, and again when the other had come


def test_headers_of_a_record_that_comes_again_are_as_they_were(reader: Reader) -> None:
    content = batch(0, b"a", b"b")
    for _ in range(2):
        (record,) = take(reader, content, (0, 0)).records
        assert record.headers == [("h", b"1")]
        record.headers.clear()


def test_a_damaged_batch_is_rejected(reader: Reader) -> None:
    content = bytearray(batch(5, b"a", b"b"))
    content[-3] ^= 1
    taken = take(reader, bytes(content), (5, 6))
    assert isinstance(taken.error, CorruptRecordError)
    assert "Record batch for partition TopicPartition(topic='t', partition=0) at offset 5" in str(taken.error)
    assert taken.others == dict.fromkeys((5, 6), AcknowledgeType.REJECT)


def test_a_batch_whose_codec_is_not_installed_is_left_to_others(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(content: bytes) -> None:
        raise BatchError("codec", "lz4 is not installed")

    monkeypatch.setattr(_records, "decode_batch", fail)
    taken = take(reader, batch(5, b"a", b"b"), (5, 6))
    assert isinstance(taken.error, UnsupportedCodecError)
    assert taken.others == dict.fromkeys((5, 6), AcknowledgeType.RELEASE)
