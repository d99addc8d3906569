"""Records as users get them: of raw messages, and of messages that hold record batches."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from dafka.mesh.record import BatchError, Record, batch_records, is_batch, raw_records
from dafka.protocol.batch import CRC_END, CRC_START, HEADER_OCTETS
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_writer import encode_batch

TOPIC, ADDRESS = b"hello", b"AB" * 16


def test_a_raw_message_is_one_record_whose_offset_is_its_sequence():
    assert list(raw_records(TOPIC, ADDRESS, 7, [b"a", b""]).records) == [
        Record("hello", "AB" * 16, 7, 7, None, None, b"a", ()),
        Record("hello", "AB" * 16, 8, 8, None, None, b"", ()),
    ]


def test_names_that_are_not_text_lead_back_to_their_octets():
    (record,) = raw_records(b"\xff", ADDRESS, 0, [b"a"]).records
    assert record.topic.encode("utf-8", "surrogateescape") == b"\xff"


def test_the_records_of_a_batch_share_its_sequence_and_have_an_offset_each():
    content = encode_batch(
        [(1000, b"key", b"value", [("name", b"one"), ("name", None)]), (1001, None, None, ())],
        base_offset=40,
    )
    assert is_batch(content)
    first, second = batch_records(TOPIC, ADDRESS, 3, content).records
    assert first[:7] == ("hello", "AB" * 16, 3, 40, 1000, b"key", b"value")
    assert list(first.headers) == [("name", b"one"), ("name", None)]
    assert second[:7] == ("hello", "AB" * 16, 3, 41, 1001, None, None)
    assert list(second.headers) == []


def test_the_end_of_a_transaction_has_no_records():
    content = encode_marker(1000, 7, 0, commit=True)
    assert is_batch(content)
    assert list(batch_records(TOPIC, ADDRESS, 3, content).records) == []


def test_a_batch_that_is_damaged_inside_is_an_error():
    batch = bytearray(encode_batch([(1000, b"key", b"value", ())]))
    batch[HEADER_OCTETS + 1 :] = b"\xff" * (len(batch) - HEADER_OCTETS - 1)
    batch[CRC_START:CRC_END] = crc32c(memoryview(batch)[CRC_END:]).to_bytes(4, "big")
    content = bytes(batch)
    assert is_batch(content)
    with pytest.raises(BatchError):
        batch_records(TOPIC, ADDRESS, 3, content)
