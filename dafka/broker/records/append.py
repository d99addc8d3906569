"""The appends of one produce call: checked batches for each partition, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gevent.event
from kafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    MessageSizeTooLargeError,
    UnsupportedCompressionTypeError,
)

from dafka.broker.interface.records import NO_OFFSET, Produced
from dafka.broker.interface.transactions import Writes
from dafka.broker.limits import BATCH_MAX_BYTES
from dafka.protocol.batch import (
    CODEC_NAMES,
    COMPRESSION_MASK,
    FIRST_OFFSET,
    LENGTH_END,
    MAGIC,
    BatchError,
    BatchHeader,
    check_batch,
)
from dafka.protocol.batch_records import Examined
from dafka.protocol.batch_walk import check_count
from dafka.protocol.errors import DafkaError

_DAMAGED = frozenset(("short", "length", "crc"))
_MAGIC_AT = 16
_MAGIC = bytes([MAGIC])


class PartitionAppend:
    """The append of one produce call to one partition: checked batches, and how many offsets each takes.

    ``headers`` are those of the batches as they came. ``examined``: what is known of the records of each
    batch; None until they have been examined. ``timestamp`` is the time that the broker gave all records
    (LogAppendTime), or -1.
    """

    __slots__ = ("batches", "examined", "headers", "request", "size", "spans", "timestamp")

    def __init__(
        self,
        batches: Sequence[bytes],
        headers: list[BatchHeader],
        spans: list[int],
        size: int,
        request: Request,
    ) -> None:
        self.batches = batches
        self.headers = headers
        self.spans = spans
        self.size = size
        self.request = request
        self.examined: list[Examined | RefusedError | None] | None = None
        self.timestamp = -1


Refusal = Callable[[], Produced]
"""Makes the answer to an append that is refused. It may look for the records that are wrong, and then waits
as a green thread."""


class RefusedError(DafkaError):
    """A batch is not taken."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__()


class Request:
    """One produce call: its answers, and a green thread that may wait for them.

    ``trusted``: the batches were encoded in this process. ``from_0``: they have to have base offset 0.
    """

    __slots__ = ("answers", "from_0", "left", "ready", "transactional_id", "trusted", "writes")

    def __init__(
        self,
        transactional_id: str | None = None,
        writes: Writes = Writes.ANNOUNCED,
        trusted: bool = False,
        from_0: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.writes = writes
        self.trusted = trusted
        self.from_0 = from_0
        self.answers: dict[tuple[str, int], Produced] = {}
        self.left = 0
        self.ready = gevent.event.Event()

    def answer(self, key: tuple[str, int], produced: Produced) -> None:
        """Answer for a partition that :attr:`left` counts."""
        self.answers[key] = produced
        self.left -= 1
        if not self.left:
            self.ready.set()


def check_batches(
    batches: Sequence[bytes], request: Request, log_start: int = NO_OFFSET
) -> PartitionAppend | Produced:
    """The append of these batches, or the refusal of a batch that is not valid.

    ``log_start`` is where the partition begins: as in Kafka it is told with what its log refuses, and not
    with what is refused before.
    """
    spans = []
    headers = []
    size = 0
    for content in batches:
        if request.from_0 and content[:8] != FIRST_OFFSET and content[_MAGIC_AT : _MAGIC_AT + 1] == _MAGIC:
            offset = int.from_bytes(content[:8], "big", signed=True)
            return Produced(
                InvalidRecordError,
                log_start_offset=log_start,
                detail=f"a new record batch has base offset 0, not {offset}",
            )
        if len(content) > BATCH_MAX_BYTES:
            return Produced(
                MessageSizeTooLargeError,
                detail=f"a record batch of {len(content)} bytes, at most {BATCH_MAX_BYTES} are taken",
            )
        try:
            header = check_batch(content)
            check_count(header)
        except BatchError as error:
            damaged = error.cause in _DAMAGED and not _is_cut(content)
            return Produced(CorruptRecordError if damaged else InvalidRecordError, detail=str(error))
        codec = header.attributes & COMPRESSION_MASK
        if codec not in CODEC_NAMES:
            return Produced(UnsupportedCompressionTypeError, detail=f"there is no compression codec {codec}")
        span = header.last_offset_delta + 1
        if header.count != span or header.is_control:
            what = "a control batch" if header.is_control else f"{header.count} records on {span} offsets"
            return Produced(
                InvalidRecordError, log_start_offset=log_start, detail=f"{what}: clients do not write that"
            )
        if header.producer_id < 0 and header.is_transactional:
            return Produced(
                InvalidRecordError,
                log_start_offset=log_start,
                detail="a transactional batch without a producer id",
            )
        spans.append(span)
        headers.append(header)
        size += len(content)
    if not spans:
        return Produced(InvalidRecordError, detail="no record batch")
    return PartitionAppend(batches, headers, spans, size, request)


def _is_cut(content: bytes) -> bool:
    """Whether it ends before its batch does, or before anybody could say what it is."""
    if len(content) <= _MAGIC_AT:
        return True
    return len(content) < LENGTH_END + int.from_bytes(
        content[LENGTH_END - 4 : LENGTH_END], "big", signed=True
    )
