"""The Produce response in bytes: how a broker writes versions 0 to 13, and how a client reads 3 to 11."""

from __future__ import annotations

import struct
from uuid import UUID

from dafka.broker.codec.errors import error_code, error_message, error_of
from dafka.broker.codec.framing import array_size, compact_string, string
from dafka.broker.codec.produce_request import FLEXIBLE
from dafka.broker.codec.reader import read_compact_string, read_size, read_string, skip_tags
from dafka.broker.interface.broker import Produced, RecordError, TopicPartition

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_WRITTEN = struct.Struct(">ihqqq")  # number, error, base offset, append time, log start
_READ = struct.Struct(">ihqq")  # number, error, base offset, append time

Answers = dict["str | UUID", "list[tuple[int, Produced]]"]
"""The outcomes of partitions by topic, named as in the request."""


def write_produce(answers: Answers, version: int) -> bytes:
    """The body of the response."""
    flexible = version >= FLEXIBLE
    text = compact_string if flexible else string
    out = bytearray(array_size(len(answers), flexible))
    for topic, partitions in answers.items():
        out += topic.bytes if isinstance(topic, UUID) else text(topic)
        out += array_size(len(partitions), flexible)
        for number, one in partitions:
            fixed = _WRITTEN.pack(
                number, error_code(one.error), one.base_offset, one.timestamp, one.log_start_offset
            )
            out += fixed if version >= 5 else fixed[:22] if version >= 2 else fixed[:14]
            if version >= 8:
                out += array_size(len(one.record_errors), flexible)
                for index, wrong in one.record_errors:
                    out += _INT32.pack(index) + text(wrong)
                    if flexible:
                        out += b"\0"
                out += text(error_message(one.error, one.detail))
            if flexible:
                out += b"\0"
        if flexible:
            out += b"\0"
    if version >= 1:
        out += b"\0\0\0\0"  # throttle time
    if flexible:
        out += b"\0"
    return bytes(out)


def decode_produce(answer: memoryview, version: int) -> dict[TopicPartition, Produced]:
    """The outcome of each partition.

    Raises ValueError, IndexError, struct.error or BadRequestError for a malformed response.
    """
    flexible = version >= FLEXIBLE
    read_text = read_compact_string if flexible else read_string
    outcomes: dict[TopicPartition, Produced] = {}
    topics, position = read_size(answer, 0, flexible)
    for _ in range(topics):
        topic, position = read_text(answer, position)
        partitions, position = read_size(answer, position, flexible)
        for _ in range(partitions):
            number, code, base_offset, append_time = _READ.unpack_from(answer, position)
            position += _READ.size
            log_start, detail = -1, None
            wrong: tuple[RecordError, ...] = ()
            if version >= 5:
                log_start = _INT64.unpack_from(answer, position)[0]
                position += 8
            if version >= 8:
                wrong, detail, position = _record_errors(answer, position, flexible)
            if flexible:
                position = skip_tags(answer, position)
            error = error_of(code)
            base_offsets = (base_offset,) if error is None else ()
            outcomes[topic or "", number] = Produced(
                error, base_offsets, append_time, log_start, detail or "", record_errors=wrong
            )
        if flexible:
            position = skip_tags(answer, position)
    return outcomes


def _record_errors(
    answer: memoryview, position: int, flexible: bool
) -> tuple[tuple[RecordError, ...], str | None, int]:
    """The errors of single records, the message about the batch, and the position after them."""
    read_text = read_compact_string if flexible else read_string
    wrong = []
    count, position = read_size(answer, position, flexible)
    for _ in range(count):
        (index,) = _INT32.unpack_from(answer, position)
        message, position = read_text(answer, position + _INT32.size)
        wrong.append(RecordError(index, message or ""))
        if flexible:
            position = skip_tags(answer, position)
    detail, position = read_text(answer, position)
    return tuple(wrong), detail or (wrong[0].message if wrong else None), position
