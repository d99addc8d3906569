"""Produce requests and responses, the client's side, versions 3 to 8: batches pass through as they are."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from kafka.errors import for_code

from dafka.broker.interface import Produced, TopicPartition
from dafka.broker.wire.framing import string
from dafka.broker.wire.reader import read_string

API_KEY = 0
LOWEST, HIGHEST = 3, 8

_ACKS = struct.Struct(">hii")  # acks, timeout, number of topics
_PARTITION = struct.Struct(">ii")  # number, octets of its batch
_OUTCOME = struct.Struct(">ihqq")  # number, error, base offset, append time
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")


def encode_produce(
    batches: Mapping[TopicPartition, bytes], acks: int, timeout_ms: int, transactional_id: str | None
) -> list[bytes]:
    """The request's body as pieces; one batch for each partition, as Kafka takes them."""
    by_topic: dict[str, list[tuple[int, bytes]]] = {}
    for (topic, number), batch in batches.items():
        by_topic.setdefault(topic, []).append((number, batch))
    pieces = [string(transactional_id), _ACKS.pack(acks, timeout_ms, len(by_topic))]
    for topic, partitions in by_topic.items():
        pieces.append(string(topic))
        pieces.append(_INT.pack(len(partitions)))
        for number, batch in partitions:
            pieces.append(_PARTITION.pack(number, len(batch)))
            pieces.append(batch)
    return pieces


def decode_produce(answer: memoryview, version: int) -> dict[TopicPartition, Produced]:
    """The outcome for each partition. Raises struct.error or ValueError for what is no response."""
    outcomes: dict[TopicPartition, Produced] = {}
    topics, position = _INT.unpack_from(answer)[0], 4
    for _ in range(topics):
        topic, position = read_string(answer, position)
        partitions = _INT.unpack_from(answer, position)[0]
        position += 4
        for _ in range(partitions):
            number, code, base_offset, append_time = _OUTCOME.unpack_from(answer, position)
            position += _OUTCOME.size
            log_start, detail = -1, None
            if version >= 5:
                log_start = _LONG.unpack_from(answer, position)[0]
                position += 8
            if version >= 8:
                detail, position = _record_errors(answer, position)
            error = for_code(code) if code else None
            outcomes[topic or "", number] = Produced(error, base_offset, append_time, log_start, detail or "")
    return outcomes


def _record_errors(answer: memoryview, position: int) -> tuple[str | None, int]:
    """What is wrong in words: about the first record that is named, or about the batch."""
    first = None
    count = _INT.unpack_from(answer, position)[0]
    position += 4
    for _ in range(count):
        message, position = read_string(answer, position + 4)
        first = first or message
    detail, position = read_string(answer, position)
    return first or detail, position
