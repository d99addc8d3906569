"""Batches to copy: unchanged where possible, otherwise decoded and encoded anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import (
    COMPRESSION_MASK,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
    with_offset,
    with_producer,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_columns

WITHOUT_MEANING = COMPRESSION_MASK | TRANSACTIONAL_BIT  # attributes that a batch may have to go as it is


class Piece(NamedTuple):
    """A batch with nothing but records to copy; ``offsets`` of them in the source, without gaps or a list."""

    batch: bytes
    offsets: Sequence[int]


def committed(
    batches: Sequence[bytes], aborted: Sequence[tuple[int, int]]
) -> Iterator[tuple[BatchHeader, bytes | None]]:
    """Each batch with its header; None instead of markers and of what was aborted.

    ``aborted``: producer ids and first offsets of the aborted transactions in these batches.
    """
    following = AbortedTransactions(aborted)
    for batch in batches:
        header = read_header(batch)
        yield header, None if following.skips(header, batch) else batch


def piece(batch: bytes, header: BatchHeader, start: int, end: int) -> Piece | None:
    """The part of a batch between two offsets of the source; None if it is empty.

    A batch with gaps, with a broker's timestamps, or that is wanted in part only is written anew: a broker
    takes none whose offsets have gaps, and its timestamps have to stay what they were.
    """
    whole = header.count == header.last_offset_delta + 1
    if whole and start <= header.base_offset and header.next_offset <= end and plain(header):
        return Piece(batch, range(header.base_offset, header.next_offset))
    if not header.count:
        return None
    columns = decode_batch(batch)
    wanted = [position for position, offset in enumerate(columns.offsets) if start <= offset < end]
    if not wanted:
        return None
    offsets, timestamps, keys, values, headers = columns.part(wanted[0], wanted[-1] + 1)
    written = encode_columns(timestamps, keys, values, headers, compression=header.compression)
    return Piece(written, offsets)


def plain(header: BatchHeader) -> bool:
    """Whether nothing in the header needs the records to be written anew."""
    return not header.attributes & ~WITHOUT_MEANING


def sequenced(batch: bytes, producer_id: int, epoch: int, sequence: int) -> bytes:
    """The batch as one of the migration's own producer, which leaves the offset to the broker."""
    return with_offset(with_producer(batch, producer_id, epoch, sequence), 0, -1)
