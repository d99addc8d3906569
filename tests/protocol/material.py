"""What the tests of the protocol share: addresses, commands and records to draw, kafka-python's reading."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from crc32c import crc32c
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from dafka.protocol import commands
from dafka.protocol.batch import (
    CODECS,
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    LENGTH_END,
    check_batch,
)
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.compression import is_available
from dafka.protocol.varint import encode_varint

PRODUCER = b"0123456789ABCDEF0123456789ABCDEF"
CONSUMER = b"FEDCBA9876543210FEDCBA9876543210"
STORE = b"00112233445566778899AABBCCDDEEFF"

NOW = 1_700_000_000_000  # ms

addresses = st.uuids().map(lambda uuid: uuid.hex.upper().encode())
topics = st.binary(min_size=1, max_size=255)
sequences = st.integers(0, 2**62)
contents = st.binary(max_size=40)

any_command = st.one_of(
    st.builds(commands.Record, addresses, topics, sequences, contents),
    st.builds(commands.DirectRecord, addresses, addresses, topics, sequences, contents),
    st.builds(commands.Fetch, addresses, addresses, topics, sequences, st.integers(0, 2**32 - 1)),
    st.builds(commands.Ack, addresses, topics, sequences, st.just(b"") | addresses),
    st.builds(commands.Head, addresses, topics, sequences),
    st.builds(commands.DirectHead, addresses, addresses, topics, sequences),
    st.builds(commands.GetHeads, topics, addresses),
    st.builds(commands.ConsumerHello, addresses, addresses, st.lists(topics, max_size=4).map(tuple)),
    st.builds(commands.StoreHello, addresses, addresses),
    st.builds(commands.Claim, addresses, addresses, topics, sequences, st.booleans()),
    st.builds(
        commands.End,
        addresses,
        addresses,
        topics,
        sequences,
        st.just(b"") | addresses,
        st.integers(0, 255),
        sequences,
        sequences,
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**32 - 1),
    ),
    st.builds(commands.Trimmed, addresses, addresses, topics, sequences, st.just(b"") | addresses),
)

timestamps = st.one_of(
    st.integers(NOW, NOW + 100),
    st.integers(NOW - 10_000, NOW + 10_000),
    st.integers(-(2**62), 2**62 - 1),  # two of them differ by a 64-bit number
)
octets = st.one_of(st.binary(max_size=80), st.integers(0, 20_000).map(lambda size: b"x" * size))
headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=80)), max_size=4)
records = st.tuples(timestamps, st.none() | octets, st.none() | octets, headers)
record_lists = st.one_of(
    st.lists(records, min_size=1, max_size=20),
    # Many records of one shape, which have short cuts of their own both ways.
    st.builds(
        lambda count, step, key, value: [(NOW + n * step // 8, key, value, []) for n in range(count)],
        st.integers(1, 300),
        st.integers(-200, 2000),
        st.none() | st.binary(max_size=100),
        st.binary(max_size=100),
    ),
)

# Every codec that kafka-python has installed.
codecs = [name for name in CODECS if name is None or is_available(name)]


def built_by_kafka_python(records: Sequence[Any], compression: str | None = None) -> bytes:
    """The batch that kafka-python's producer builds of records."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[compression],
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for offset, (timestamp, key, value, its_headers) in enumerate(records):
        builder.append(offset, timestamp, key, value, list(its_headers))
    return bytes(builder.build())


def read_by_kafka_python(batch: bytes) -> list[tuple[Any, ...]]:
    """(offset, timestamp, key, value, headers) of each record as kafka-python's consumer reads them."""
    read = DefaultRecordBatch(batch)
    assert read.validate_crc()
    return [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in read]


def assembled(body: bytes, count: int, *, attributes: int = 0, last_offset_delta: int | None = None) -> bytes:
    """A batch with a right length and checksum around any body, as a hostile node can send it."""
    last = count - 1 if last_offset_delta is None else last_offset_delta
    checked = struct.pack(">hiqqqhii", attributes, last, NOW, NOW, -1, -1, -1, count) + body
    return struct.pack(">qiibI", 0, 9 + len(checked), 0, 2, crc32c(checked)) + checked


def sealed(body: bytes, count: int, codec: str | None = None, base: int = 1000) -> bytes:
    """A batch of that body, which is as it is to be stored; its header says ``count`` records."""
    length = HEADER_OCTETS - LENGTH_END + len(body)
    head = HEADER.pack(0, length, -1, 2, 0, CODECS[codec], count - 1, base, base, -1, -1, -1, count)
    crc = crc32c(body, crc32c(head[CRC_END:]))
    batch = head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body
    check_batch(batch)
    return batch


def of(fields: bytes, more: int = 0) -> bytes:
    """A record of these fields, whose size is off by ``more``."""
    return encode_varint(len(fields) + more) + fields


def plain(number: int) -> bytes:
    """A record without key, value or headers."""
    return of(b"\0\0" + encode_varint(number) + b"\1\1\0")


def of_sizes(*sizes: int, codec: str | None = None) -> bytes:
    return encode_batch([(1000, None, bytes(size), ()) for size in sizes], compression=codec)
