"""The Produce request in bytes: how a broker reads versions 0 to 13, and how a client writes 3 to 12.

Batches are not decoded: the broker gets large ones as views of the request. Record batches came with version
3; the layout of the versions before it differs only by the missing transactional id. A client that writes
version 12 in a transaction has to follow KIP-890's second part; from version 13 on topics have ids instead of
names, which a broker interface does not take.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from dafka.broker.codec.framing import array_size, compact_string, string
from dafka.broker.codec.limits import INLINE_ITEMS
from dafka.broker.codec.reader import (
    Items,
    naming_errors,
    read_compact_string,
    read_count,
    read_size,
    read_string,
    read_topic,
    skip_tags,
)
from dafka.broker.interface.broker import TopicPartition
from dafka.hub.limits import PACE_ITEMS
from dafka.protocol.batch import HEADER_OCTETS, LENGTH_END

API_KEY = 0
LOWEST, HIGHEST = 3, 12  # the versions that our client writes
OLDEST = 3  # the first version with record batches
FLEXIBLE = 9
ABORTABLE, ADDING = 11, 12  # the first versions of kinds of writes in transactions (Writes)
BY_ID = 13
_COPIED = 512  # octets of a batch up to which it is copied out of the request

_ACKS = struct.Struct(">hi")  # acks, timeout
_INT32 = struct.Struct(">i")


class ProduceRequest(NamedTuple):
    """A Produce request: topics, by name or id, with the batches of their partitions.

    ``is_wide``: it has so many topics or partitions that other green threads get turns while it is handled.
    """

    transactional_id: str | None
    acks: int
    topics: list[tuple[str | UUID, list[tuple[int, Sequence[bytes]]]]]
    is_wide: bool


@naming_errors("ProduceRequest")
def read_produce(data: memoryview, position: int, version: int, items: Items) -> ProduceRequest:
    """The request whose body begins at ``position``. Raises BadRequestError."""
    flexible = version >= FLEXIBLE
    begun = items.left
    text = read_compact_string if flexible else read_string
    transactional_id, position = text(data, position)
    acks, _ = _ACKS.unpack_from(data, position)
    count, position = read_count(data, position + _ACKS.size, flexible, items)
    topics: list[tuple[str | UUID, list[tuple[int, Sequence[bytes]]]]] = []
    for _ in range(count):
        topic, position = read_topic(data, position, version >= BY_ID, flexible)
        partitions: list[tuple[int, Sequence[bytes]]] = []
        left, position = read_count(data, position, flexible, items)
        for _ in range(left):
            (number,) = _INT32.unpack_from(data, position)
            size, position = read_size(data, position + 4, flexible)
            end = position + max(size, 0)
            if end > len(data):
                raise IndexError
            partitions.append((number, _split(data[position:end], items)))
            position = skip_tags(data, end, items) if flexible else end
        topics.append((topic, partitions))
        if flexible:
            position = skip_tags(data, position, items)
    is_wide = begun - items.left > INLINE_ITEMS or len(topics) >= PACE_ITEMS  # whose names are looked up
    return ProduceRequest(transactional_id, acks, topics, is_wide)


def _split(records: memoryview, items: Items) -> tuple[bytes, ...]:
    """The batches of a record set. A malformed rest stays in one piece, for the broker to refuse.

    Large batches are views of the request. Small ones are copied: a copy takes less memory than a view, and
    the garbage collector does not track it.
    """
    position, end = 0, len(records)
    batches: list[bytes] = []
    while position < end:
        size = int.from_bytes(records[position + 8 : position + LENGTH_END], "big") + LENGTH_END
        if size < HEADER_OCTETS or position + size > end:
            size = end - position
        items.take(1)
        view = records[position : position + size]
        batches.append(bytes(view) if size <= _COPIED else view)  # type: ignore[arg-type]  # used like bytes
        position += size
    return tuple(batches)


def encode_produce(
    batches: Mapping[TopicPartition, bytes],
    version: int,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None,
) -> list[bytes]:
    """The body of a request in pieces, with one batch for each partition, as Kafka requires."""
    flexible = version >= FLEXIBLE
    text = compact_string if flexible else string
    tags = b"\0" if flexible else b""
    by_topic: dict[str, list[tuple[int, bytes]]] = {}
    for (topic, number), batch in batches.items():
        by_topic.setdefault(topic, []).append((number, batch))
    pieces = [text(transactional_id), _ACKS.pack(acks, timeout_ms), array_size(len(by_topic), flexible)]
    for topic, partitions in by_topic.items():
        pieces += (text(topic), array_size(len(partitions), flexible))
        for number, batch in partitions:
            pieces += (_INT32.pack(number), array_size(len(batch), flexible), batch, tags)
        pieces.append(tags)
    pieces.append(tags)
    return pieces
