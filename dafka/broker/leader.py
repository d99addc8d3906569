"""The leader: the Dafka producer inside the broker that writes one Kafka partition.

"The broker sequences" (design 4.2). A leader takes whole record batches, gives them their offsets, has them
appended, and only after the commit are they published to the mesh and their clients answered: append,
commit, publish. Nothing is seen outside that a crash can take back.

Numbers are given when a round begins, and a leader has one round under way. What comes meanwhile gathers
for the next. So a round that could not be written needs no undoing: the log still ends where it ended, and
the next round begins there.

Unlike a mesh producer a leader retains nothing: whatever it has published is in the log, and the broker's
store answers every FETCH and GET-HEADS for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import gevent.event
from kafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface import Error, Produced
from dafka.broker.limits import MESSAGE_MAX_BYTES, ROUND_BYTES
from dafka.broker.topics import Partition
from dafka.log import LogClosedError
from dafka.mesh.writer import Writer
from dafka.protocol.batch import BatchError, check_batch, with_offset

log = logging.getLogger(__name__)

Publish = Callable[[Partition, int, list[bytes]], None]

_DAMAGED = frozenset(("short", "length", "crc"))


class Share:
    """What one produce call has for one partition: checked batches, and how many offsets each takes."""

    __slots__ = ("batches", "request", "size", "spans")

    def __init__(self, batches: Sequence[bytes], spans: list[int], size: int, request: Request) -> None:
        self.batches = batches
        self.spans = spans
        self.size = size
        self.request = request


class Request:
    """One produce call: its answers, and a green thread that may wait for them."""

    __slots__ = ("answers", "left", "ready")

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], Produced] = {}
        self.left = 0
        self.ready = gevent.event.Event()

    def answer(self, key: tuple[str, int], produced: Produced) -> None:
        """Answer for a partition that :attr:`left` counts."""
        self.answers[key] = produced
        self.left -= 1
        if not self.left:
            self.ready.set()


def check_batches(batches: Sequence[bytes], request: Request) -> Share | Produced:
    """The share that ``batches`` make, or what is wrong with them."""
    spans = []
    size = 0
    for content in batches:
        if len(content) > MESSAGE_MAX_BYTES:
            return Produced(
                MessageSizeTooLargeError,
                detail=f"a record batch of {len(content)} bytes, message.max.bytes is {MESSAGE_MAX_BYTES}",
            )
        try:
            header = check_batch(content)
        except BatchError as error:
            damaged = error.cause in _DAMAGED
            return Produced(CorruptRecordError if damaged else InvalidRecordError, detail=str(error))
        span = header.last_offset_delta + 1
        if header.count != span or header.is_control:
            what = "a control batch" if header.is_control else f"{header.count} records on {span} offsets"
            return Produced(InvalidRecordError, detail=f"{what}: clients do not write that")
        spans.append(span)
        size += len(content)
    if not spans:
        return Produced(InvalidRecordError, detail="no record batch")
    return Share(batches, spans, size, request)


class Leader:
    """Numbers, appends and publishes what is produced to ``partition``.

    ``publish(partition, first sequence, contents)`` follows each commit; ``settled(bytes)`` each round,
    whatever became of it.
    """

    __slots__ = ("_gathering", "_publish", "_settled", "_under_way", "_writer", "partition")

    def __init__(
        self, partition: Partition, writer: Writer, publish: Publish, settled: Callable[[int], None]
    ) -> None:
        self.partition = partition
        self._writer = writer
        self._publish = publish
        self._settled = settled
        self._gathering: list[Share] = []
        self._under_way = False

    def take(self, share: Share) -> None:
        """Take a share; its request is answered after the commit."""
        self._gathering.append(share)
        if not self._under_way:
            self._begin()

    def _begin(self) -> None:
        """Number what has gathered and hand it over as one append."""
        shares = self._next_round()
        if self.partition.topic.deleted:
            self._answer_all(shares, UnknownTopicOrPartitionError, "the topic was deleted")
            return
        stored = self.partition.stored
        first, offset = stored.next_sequence, stored.next_offset
        contents: list[bytes] = []
        bases: list[int] = []
        for share in shares:
            bases.append(offset)
            for content, span in zip(share.batches, share.spans, strict=True):
                contents.append(with_offset(content, offset))
                offset += span
        self._under_way = True

        def committed(error: Exception | None) -> None:
            self._under_way = False
            if error is None:
                self._committed(shares, bases, first, contents)
            else:
                self._refused(shares, error)
            if self._gathering and not self._under_way:
                self._begin()

        self._writer.append(stored, contents, committed)

    def _next_round(self) -> list[Share]:
        gathered, size = self._gathering, 0
        for count, share in enumerate(gathered):
            size += share.size
            if size > ROUND_BYTES and count:
                self._gathering = gathered[count:]
                return gathered[:count]
        self._gathering = []
        return gathered

    def _committed(self, shares: list[Share], bases: list[int], first: int, contents: list[bytes]) -> None:
        try:
            self._publish(self.partition, first, contents)
        except Exception:
            log.exception("publishing %d batches of %r failed", len(contents), self.partition.topic.name)
        key = (self.partition.topic.name, self.partition.number)
        start = self.partition.log_start
        for share, base in zip(shares, bases, strict=True):
            share.request.answer(key, Produced(None, base, -1, start))
            self._settled(share.size)

    def _refused(self, shares: list[Share], error: Exception) -> None:
        if not isinstance(error, LogClosedError):
            key = (self.partition.topic.name, self.partition.number)
            log.error("%d produce requests to %s were not stored: %s", len(shares), key, error)
        self._answer_all(shares, KafkaStorageError, str(error))

    def _answer_all(self, shares: list[Share], error: Error, detail: str) -> None:
        key = (self.partition.topic.name, self.partition.number)
        for share in shares:
            share.request.answer(key, Produced(error, detail=detail))
            self._settled(share.size)
