"""Leaders: the Dafka producers inside the broker, each of which writes one Kafka partition.

"The broker sequences" (design 4.2). A leader takes whole record batches, gives them their offsets, has them
appended, and only after the commit are they published to the mesh and their clients answered: append,
commit, publish. Nothing is seen outside that a crash can take back.

Numbers are given when the writer puts a round together, so all that has come for a partition until then
shares a round, and a round that could not be written needs no undoing: the log still ends where it ended,
and the next round begins there.

Unlike a mesh producer a leader has no state of its own and retains nothing. Its address is in the table of
topics, its position is the end of its partition in the log, and the broker's store answers every FETCH and
GET-HEADS for it.
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

from dafka.broker.interface import Produced
from dafka.broker.limits import MESSAGE_MAX_BYTES
from dafka.broker.node import BrokerNode
from dafka.broker.topics import Partition
from dafka.mesh.writer import Numbered, Writer
from dafka.protocol.batch import BatchError, check_batch, with_offset
from dafka.protocol.errors import DafkaError

log = logging.getLogger(__name__)

_DAMAGED = frozenset(("short", "length", "crc"))


class TopicDeletedError(DafkaError):
    """A topic was deleted while batches for it waited for their round."""


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


class Leaders:
    """All leaders of a broker: appends what is produced and publishes what is committed.

    ``settled(bytes)`` follows each share, whatever became of it.
    """

    def __init__(self, writer: Writer, node: BrokerNode, settled: Callable[[int], None]) -> None:
        self._writer = writer
        self._node = node
        self._settled = settled

    def append(self, partition: Partition, share: Share) -> None:
        """Take a share; its request is answered after the commit."""
        numbered: list[bytes] = []
        key = (partition.topic.name, partition.number)
        first = base = 0

        def number(sequence: int, offset: int) -> Numbered:
            nonlocal first, base
            if partition.topic.deleted:
                raise TopicDeletedError(f"topic {key[0]!r} was deleted")
            partition.begun = True
            first, base = sequence, offset
            for content, span in zip(share.batches, share.spans, strict=True):
                numbered.append(with_offset(content, offset))
                offset += span
            return Numbered(sequence, numbered, offset)

        def done(error: Exception | None) -> None:
            if error is None:
                self._publish(partition, first, numbered)
                produced = Produced(None, base, -1, partition.log_start)
            else:
                produced = _refused(key, error)
            share.request.answer(key, produced)
            self._settled(share.size)

        self._writer.append_numbered(partition.stored, number, share.size, done)

    def _publish(self, partition: Partition, first: int, contents: list[bytes]) -> None:
        try:
            self._node.publish_committed(partition, first, contents)
        except Exception:  # the client's records are safe, whatever happened to the mesh
            log.exception("publishing %d batches of %r failed", len(contents), partition.topic.name)


def _refused(key: tuple[str, int], error: Exception) -> Produced:
    if isinstance(error, TopicDeletedError):
        return Produced(UnknownTopicOrPartitionError, detail=str(error))
    log.error("record batches for %s were not stored: %s", key, error)
    return Produced(KafkaStorageError, detail=str(error))
