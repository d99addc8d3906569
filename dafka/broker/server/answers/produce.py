"""Produce, by hand: batches go from the frame to the broker as views of it, unparsed.

Answered are versions 3 to 13. Versions 0 to 2, which knew no record batches, have the same layout without
the transactional id, and get UNSUPPORTED_VERSION for every partition. From version 13 on topics have ids.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from kafka.errors import (
    InvalidRecordError,
    UnknownTopicIdError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
)

from dafka.broker.codec.errors import BadRequestError
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
from dafka.broker.interface.broker import BrokerInterface, Produced
from dafka.broker.server.answers.naming import code, message, topic_names
from dafka.broker.server.limits import BATCHES_PER_PARTITION
from dafka.hub.turns import Pace
from dafka.protocol.batch import CODECS, COMPRESSION_MASK, HEADER_OCTETS, LENGTH_END

OLDEST = 3  # the first version with record batches
ZSTD = 7  # the first version in which they may be compressed with zstd
FLEXIBLE = 9
BY_ID = 13
_COPIED = 512  # octets of a batch up to which it is copied out of its request
_ATTRIBUTES = 22  # where in a batch the octet with the codec is

_ACKS = struct.Struct(">hi")
_INT32 = struct.Struct(">i")
_PARTITION = struct.Struct(">ihqqq")

Answers = dict["str | UUID", "list[tuple[int, Produced]]"]  # partitions by topic


class ProduceRequest(NamedTuple):
    """A request: topics, by name or by id, with the batches of their partitions.

    ``is_wide``: there are so many that other green threads have their turn while they are taken.
    """

    transactional_id: str | None
    acks: int
    topics: list[tuple[str | UUID, list[tuple[int, Sequence[bytes]]]]]
    is_wide: bool


@naming_errors("ProduceRequest")
def read_produce(data: memoryview, position: int, version: int, items: Items) -> ProduceRequest:
    """The request whose body begins at ``position``. Raises BadRequestError."""
    flexible = version >= FLEXIBLE
    transactional_id = None
    begun = items.left
    if version >= OLDEST:
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
    return ProduceRequest(transactional_id, acks, topics, begun - items.left > INLINE_ITEMS)


def produce(broker: BrokerInterface, request: ProduceRequest, version: int) -> Answers:
    """Hand the batches to the broker and wait for its answers, which are in the order of the request."""
    names = topic_names(broker, [one for one, _ in request.topics if isinstance(one, UUID)])
    batches: dict[tuple[str, int], Sequence[bytes]] = {}
    refused: dict[tuple[str | UUID, int], Produced] = {}
    asked: dict[str | UUID, list[tuple[int, tuple[str, int] | None]]] = {}
    pace = Pace()
    for topic, partitions in request.topics:
        name = names.get(topic) if isinstance(topic, UUID) else topic
        places = asked.setdefault(topic, [])
        for number, records in pace.over(partitions) if request.is_wide else partitions:
            places.append((number, None if name is None else (name, number)))
            if version < OLDEST:
                refused[topic, number] = Produced(UnsupportedVersionError)
            elif name is None:
                refused[topic, number] = Produced(UnknownTopicIdError)
            elif (name, number) in batches:
                raise BadRequestError("twice", f"partition {number} of {name!r} is there twice")
            elif len(records) > BATCHES_PER_PARTITION:
                detail = f"{len(records)} batches for a partition; {BATCHES_PER_PARTITION} are the most"
                refused[topic, number] = Produced(InvalidRecordError, detail=detail)
            elif version < ZSTD and _has_zstd(records):
                refused[topic, number] = Produced(UnsupportedCompressionTypeError)
            else:
                batches[name, number] = records
    answers: dict[tuple[str, int], Produced] = {}
    if batches:
        if request.transactional_id is None:
            answers = broker.produce(batches, request.acks)
        else:
            answers = broker.produce(batches, request.acks, transactional_id=request.transactional_id)
    return {
        topic: [
            (number, refused[topic, number] if (topic, number) in refused else answers[key])  # type: ignore[index]
            for number, key in (pace.over(places) if request.is_wide else places)
        ]
        for topic, places in asked.items()
    }


def _split(records: memoryview, items: Items) -> tuple[bytes, ...]:
    """The batches of a record set. What is none stays whole: the broker says what is wrong with it.

    Large ones are views. Small ones take less as copies, and nothing in the garbage collector's lists.
    """
    position, end = 0, len(records)
    batches: list[bytes] = []
    while position < end:
        size = int.from_bytes(records[position + 8 : position + LENGTH_END], "big") + LENGTH_END
        if size < HEADER_OCTETS or position + size > end:
            size = end - position
        items.take(1)
        view = records[position : position + size]
        batches.append(bytes(view) if size <= _COPIED else view)  # type: ignore[arg-type]  # does the same
        position += size
    return tuple(batches)


def _has_zstd(batches: Sequence[bytes]) -> bool:
    return any(
        len(batch) > _ATTRIBUTES and batch[_ATTRIBUTES] & COMPRESSION_MASK == CODECS["zstd"]
        for batch in batches
    )


def write_produce(answers: Answers, version: int) -> bytes:
    """The body of the response."""
    flexible = version >= FLEXIBLE
    text = compact_string if flexible else string
    out = bytearray(array_size(len(answers), flexible))
    for topic, partitions in answers.items():
        out += topic.bytes if isinstance(topic, UUID) else text(topic)
        out += array_size(len(partitions), flexible)
        for number, one in partitions:
            fixed = _PARTITION.pack(
                number, code(one.error), one.base_offset, one.timestamp, one.log_start_offset
            )
            out += fixed if version >= 5 else fixed[:22] if version >= 2 else fixed[:14]
            if version >= 8:
                out += array_size(len(one.record_errors), flexible)
                for index, wrong in one.record_errors:
                    out += _INT32.pack(index) + text(wrong)
                    if flexible:
                        out += b"\0"
                out += text(message(one.error, one.detail))
            if flexible:
                out += b"\0"
        if flexible:
            out += b"\0"
    if version >= 1:
        out += b"\0\0\0\0"  # not throttled
    if flexible:
        out += b"\0"
    return bytes(out)
