"""Record batches as another broker takes them.

A batch says who has produced it and to which transaction it belongs, which means nothing elsewhere: it goes
without that. Records stay as they are, compressed or not; only what could not be appended elsewhere is
written anew: parts of a batch, batches with gaps, times that the broker has set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dafka.overlay.bridge.limits import LARGEST_BATCH
from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import CODEC_NAMES, COMPRESSION_MASK, TIMESTAMP_TYPE_BIT, read_header, with_producer
from dafka.protocol.batch_reader import Columns, decode_batch
from dafka.protocol.batch_writer import encode_columns

_NOBODY = (-1, -1, -1)


def copies(
    batches: Sequence[bytes], start: int, aborted: Sequence[tuple[int, int]], largest: int = LARGEST_BATCH
) -> tuple[list[bytes], int]:
    """The batches with the records from offset ``start`` on, and the offset behind all of them.

    Markers and aborted transactions are left out. A batch of more than ``largest`` octets is cut in pieces,
    unless it has one record. Raises :class:`~dafka.protocol.batch.BatchError`.
    """
    transactions = AbortedTransactions(aborted)
    found: list[bytes] = []
    end = start
    for batch in batches:
        header = read_header(batch)
        end = max(end, header.next_offset)
        if (header.is_control or header.is_transactional) and transactions.skips(header, batch):
            continue
        if header.next_offset <= start or not header.count:
            continue
        whole = header.base_offset >= start and header.count == header.last_offset_delta + 1
        if whole and not header.attributes & TIMESTAMP_TYPE_BIT and len(batch) <= largest:
            found.append(with_producer(batch, *_NOBODY))
            continue
        columns = decode_batch(batch)
        first = next(
            (index for index, one in enumerate(columns.offsets) if one >= start), len(columns.offsets)
        )
        codec = CODEC_NAMES[header.attributes & COMPRESSION_MASK]
        found.extend(_written(columns.part(first, len(columns.offsets)), codec, largest))
    return found, end


def _written(records: Columns, codec: str | None, largest: int) -> Iterator[bytes]:
    count = len(records.offsets)
    if not count:
        return
    batch = encode_columns(
        records.timestamps, records.keys, records.values, records.headers, compression=codec
    )
    if len(batch) <= largest or count == 1:
        yield batch
        return
    yield from _written(records.part(0, count // 2), codec, largest)
    yield from _written(records.part(count // 2, count), codec, largest)
