"""Batches without records: readers get them for offsets whose records are gone.

Readers know them from compacted topics, where a batch that has lost all its records keeps its place: they
hand out nothing and read on behind its last offset. Layout: Kafka protocol guide, "Record Batch".
"""

from __future__ import annotations

from crc32c import crc32c

from dafka.protocol.batch import CRC_END, CRC_START, HEADER, HEADER_OCTETS, LENGTH_END, MAGIC

_NOTHING = -1  # no timestamp, no producer
_MOST = 1 << 31  # offsets in one batch: the last one's distance from the first is a signed 32-bit number


def encode_empty(first: int, end: int, leader_epoch: int = 0) -> bytes:
    """A batch for the offsets from ``first`` up to ``end``, or up to as many as one batch can stand for.

    Raises ValueError if there is none between them.
    """
    if not 0 <= first < end:
        raise ValueError(f"an empty batch stands for at least one offset, not for {first} up to {end}")
    delta = min(end - first, _MOST) - 1
    length = HEADER_OCTETS - LENGTH_END
    head = HEADER.pack(first, length, leader_epoch, MAGIC, 0, 0, delta, *[_NOTHING] * 5, 0)
    return head[:CRC_START] + crc32c(head[CRC_END:]).to_bytes(4, "big") + head[CRC_END:]
