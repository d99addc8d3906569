"""Kafka record batches (magic 2): the header, and the operations on a batch that do not read its records.

A batch is kept, sent and served as the bytes it came in. Base offset and leader epoch stand before the
checksummed part, so a broker numbers a batch by writing its first octets. Layout: Kafka protocol guide,
"Record Batch"; CRC-32C over everything from the attributes on.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from dafka.protocol.errors import DafkaError

MAGIC = 2
HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_OCTETS = HEADER.size  # 61
FIRST_OFFSET = bytes(8)  # what a batch begins with that no broker has numbered yet
LENGTH_END = 12  # the length field counts what stands behind it
ATTRIBUTES = 22  # the octet of the attributes that has bits in use
CRC_START, CRC_END = 17, 21  # the checksum covers everything behind it
RECORDS_LIMIT = 1 << 20  # in one batch: bounds the memory that a small, hostile batch can take
HEADERS_LIMIT = 1 << 20  # ... and of all its records' headers together
RECORD_OCTETS = 7  # the smallest record: seven varints of one octet
_NUMBERING = struct.Struct(">qii")
_COPIED = 128 * 1024  # octets of a batch below which a copy is made to number it
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_START = 43  # producer id, epoch and base sequence stand in front of the count
SEQUENCES = 1 << 31  # sequences of an idempotent producer count from 0 up to this, and then from 0 again

CODECS = {None: 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODEC_NAMES = {number: name for name, number in CODECS.items()}
COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20


class BatchError(DafkaError, ValueError):
    """An invalid or damaged record batch; ``cause`` is a short word for counting."""

    def __init__(self, cause: str, detail: str = "") -> None:
        self.cause = cause
        super().__init__(f"record batch: {cause}" + (f": {detail}" if detail else ""))


class BatchHeader(NamedTuple):
    """The fields of a batch's header, as the Kafka protocol names them."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count

    @property
    def size(self) -> int:
        """Octets of the whole batch."""
        return self.length + LENGTH_END

    @property
    def next_offset(self) -> int:
        """The offset behind the last record's."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> str | None:
        """The codec's name in Kafka's configuration; raises BatchError for an unknown one."""
        number = self.attributes & COMPRESSION_MASK
        if number not in CODEC_NAMES:
            raise BatchError("codec", f"unknown compression codec {number}")
        return CODEC_NAMES[number]

    @property
    def timestamp_type(self) -> int:
        """0: CreateTime, 1: LogAppendTime (all records then have the maximum timestamp)."""
        return 1 if self.attributes & TIMESTAMP_TYPE_BIT else 0

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction, or the marker ends one."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a transaction marker and no user's records."""
        return bool(self.attributes & CONTROL_BIT)


_new, _fields = tuple.__new__, HEADER.unpack_from


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header of the batch at ``position``. Checks nothing but that there are enough octets."""
    try:
        return _new(BatchHeader, _fields(buffer, position))  # several times for each batch
    except struct.error as error:
        raise BatchError("short", f"{len(buffer) - position} octets, a header has {HEADER_OCTETS}") from error


def check_batch(content: bytes) -> BatchHeader:
    """The header of ``content`` if it is exactly one whole, undamaged batch; raises BatchError if not."""
    header = read_header(content)
    if header.magic != MAGIC:
        raise BatchError("magic", f"magic {header.magic}, only {MAGIC} is supported")
    if header.size != len(content):
        raise BatchError("length", f"says {header.size} octets, has {len(content)}")
    if crc32c(memoryview(content)[CRC_END:]) != header.crc:
        raise BatchError("crc", "the checksum does not match")
    if header.count < 0 or header.last_offset_delta < 0 or header.count > header.last_offset_delta + 1:
        raise BatchError("count", f"{header.count} records with last offset delta {header.last_offset_delta}")
    return header


def is_batch(content: bytes) -> bool:
    """Whether a message's content is a record batch and not raw bytes: magic, length and checksum say so."""
    if not has_batch_shape(content):
        return False
    return int.from_bytes(content[17:21], "big") == crc32c(memoryview(content)[CRC_END:])


def has_batch_shape(content: bytes) -> bool:
    """Whether magic and length say so; of a content whose checksum was compared already."""
    if len(content) < HEADER_OCTETS or content[16] != MAGIC:
        return False
    return int.from_bytes(content[8:12], "big") + LENGTH_END == len(content)


def is_zstd(batch: bytes | memoryview) -> bool:
    """Whether the attributes of a batch say that it is compressed with zstd."""
    return len(batch) > ATTRIBUTES and batch[ATTRIBUTES] & COMPRESSION_MASK == CODECS["zstd"]


def with_offset(batch: bytes, base_offset: int, leader_epoch: int = 0) -> bytes:
    """The same batch with its base offset and leader epoch set; both are outside the checksum."""
    length = int.from_bytes(batch[8:12], "big")
    # A view: of a slice the octets, which may be a million, would be copied twice.
    return _NUMBERING.pack(base_offset, length, leader_epoch) + memoryview(batch)[16:]


def number_batch(batch: bytes | memoryview, base_offset: int, leader_epoch: int = 0) -> bytes:
    """:func:`with_offset` for a batch that nobody needs as it was: a large view of memory that can be written
    gets its numbers there, and is returned itself."""
    if isinstance(batch, memoryview) and not batch.readonly and len(batch) >= _COPIED:
        _NUMBERING.pack_into(batch, 0, base_offset, int.from_bytes(batch[8:12], "big"), leader_epoch)
        return batch  # type: ignore[return-value]  # used like bytes
    return with_offset(batch, base_offset, leader_epoch)  # type: ignore[arg-type]


def with_producer(
    batch: bytes, producer_id: int, epoch: int, base_sequence: int, *, transactional: bool = False
) -> bytes:
    """The same batch as one of an idempotent producer (or, with -1, of none), with a new checksum."""
    head, body = bytearray(batch[:HEADER_OCTETS]), memoryview(batch)[HEADER_OCTETS:]
    if transactional:
        head[ATTRIBUTES] |= TRANSACTIONAL_BIT
    else:
        head[ATTRIBUTES] &= ~TRANSACTIONAL_BIT & 0xFF
    _PRODUCER.pack_into(head, _PRODUCER_START, producer_id, epoch, base_sequence)
    head[CRC_START:CRC_END] = crc32c(body, crc32c(head[CRC_END:])).to_bytes(4, "big")
    return bytes(head) + body


def split_batches(buffer: bytes) -> list[bytes]:
    """The batches of a Kafka record set, which stand one behind the other. Raises BatchError."""
    batches = []
    position, end = 0, len(buffer)
    while position < end:
        header = read_header(buffer, position)
        if header.length < HEADER_OCTETS - LENGTH_END or position + header.size > end:
            raise BatchError("length", f"says {header.size} octets, {end - position} are left")
        batches.append(buffer[position : position + header.size])
        position += header.size
    return batches
