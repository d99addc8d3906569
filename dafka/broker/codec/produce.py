"""Produce requests and responses, the client's side, versions 3 to 11: batches pass through as they are.

Who writes version 12 in a transaction has KIP-890's second part, and 13 has ids for the topics' names, which
a broker interface does not know.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from kafka.errors import for_code

from dafka.broker.codec.framing import array_size, compact_string, string
from dafka.broker.codec.reader import read_compact_string, read_size, read_string, skip_tags
from dafka.broker.interface.broker import Produced, RecordError, TopicPartition

API_KEY = 0
LOWEST, HIGHEST = 3, 11
FLEXIBLE = 9

_ACKS = struct.Struct(">hi")  # acks, timeout
_OUTCOME = struct.Struct(">ihqq")  # number, error, base offset, append time
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")


def encode_produce(
    batches: Mapping[TopicPartition, bytes],
    version: int,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None,
) -> list[bytes]:
    """The request's body as pieces; one batch for each partition, as Kafka takes them."""
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
            pieces += (_INT.pack(number), array_size(len(batch), flexible), batch, tags)
        pieces.append(tags)
    pieces.append(tags)
    return pieces


def decode_produce(answer: memoryview, version: int) -> dict[TopicPartition, Produced]:
    """The outcome for each partition. Raises ValueError, IndexError, struct.error or BadRequestError
    for what is no response."""
    flexible = version >= FLEXIBLE
    read_text = read_compact_string if flexible else read_string
    outcomes: dict[TopicPartition, Produced] = {}
    topics, position = read_size(answer, 0, flexible)
    for _ in range(topics):
        topic, position = read_text(answer, position)
        partitions, position = read_size(answer, position, flexible)
        for _ in range(partitions):
            number, code, base_offset, append_time = _OUTCOME.unpack_from(answer, position)
            position += _OUTCOME.size
            log_start, detail = -1, None
            wrong: tuple[RecordError, ...] = ()
            if version >= 5:
                log_start = _LONG.unpack_from(answer, position)[0]
                position += 8
            if version >= 8:
                wrong, detail, position = _record_errors(answer, position, flexible)
            if flexible:
                position = skip_tags(answer, position)
            error = for_code(code) if code else None
            outcomes[topic or "", number] = Produced(
                error, base_offset, append_time, log_start, detail or "", record_errors=wrong
            )
        if flexible:
            position = skip_tags(answer, position)
    return outcomes


def _record_errors(
    answer: memoryview, position: int, flexible: bool
) -> tuple[tuple[RecordError, ...], str | None, int]:
    """The records that are wrong, what is wrong with the batch in words, and the position behind them."""
    read_text = read_compact_string if flexible else read_string
    wrong = []
    count, position = read_size(answer, position, flexible)
    for _ in range(count):
        (index,) = _INT.unpack_from(answer, position)
        message, position = read_text(answer, position + _INT.size)
        wrong.append(RecordError(index, message or ""))
        if flexible:
            position = skip_tags(answer, position)
    detail, position = read_text(answer, position)
    return tuple(wrong), detail or (wrong[0].message if wrong else None), position
