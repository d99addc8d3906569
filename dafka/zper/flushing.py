"""The flushes of one partition: messages of its clients are committed, then the clients are answered.

One green thread for each partition that is written to. While it waits for a commit the next messages gather,
so the busier a partition is, the larger its flushes. A message that was taken is never given up while the
broker lives: a flush that fails is tried again, and the partition's writers are not read meanwhile. Messages
that the broker refuses for good (too large for a topic that others have created) are counted and logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Protocol

import gevent
from kafka.errors import KafkaError, KafkaStorageError, UnknownTopicOrPartitionError

from dafka.broker.interface.broker import BrokerInterface, TopicPartition
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.positions import PartitionPositions
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.lines import FifoLock
from dafka.hub.turns import Pace
from dafka.log import LogError
from dafka.log.repeating import bounded_logger
from dafka.zper import limits
from dafka.zper.batches import Batch, batches
from dafka.zper.discarded import Discarded
from dafka.zper.gathering import Bulk, Gathering, Run
from dafka.zper.identity import Mode
from dafka.zper.replicas import Replicas
from dafka.zper.settings import Settings
from dafka.zper.singles import Frames
from dafka.zper.topics import TopicRefusedError, open_partition

log = bounded_logger(__name__)
"""Of a full disk: every flush of every partition fails."""


class Client(Protocol):
    """A client that has written messages."""

    def answer(self, answers: list[Frames]) -> None:
        """Take the answers to what is committed; does not wait."""


class Unflushed:
    """The number and octets of the uncommitted messages of all partitions."""

    def __init__(self) -> None:
        self.messages = 0
        self.octets = 0
        self._less = Changes()

    def add(self, messages: int, octets: int) -> None:
        """Count messages that were taken."""
        self.messages += messages
        self.octets += octets

    def settle(self, messages: int, octets: int) -> None:
        """Count them no more."""
        self.messages -= messages
        self.octets -= octets
        self._less.tell()

    def drain(self) -> None:
        """Wait until there are none."""
        while self.messages:
            self._less.wait()

    def wait(self) -> None:
        """Wait while they are too many."""
        while self.octets > limits.ALL_UNFLUSHED_OCTETS:
            self._less.wait()


class Flushed:
    """Counts of flushes since the start."""

    def __init__(self) -> None:
        self.flushes = 0
        self.messages = 0
        self.octets = 0


Written = Callable[["PartitionFlushes", Batch, int], None]
"""Called after the commit with each batch and its base offset."""


class PartitionFlushes:
    """The open messages of one partition, and its flushes. Hub side."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        topic: str,
        number: int,
        settings: Settings,
        unflushed: Unflushed,
        flushed: Flushed,
        discarded: Discarded,
        written: Written,
        replicas: Replicas,
        ended: Callable[[PartitionFlushes], object],
    ) -> None:
        """``ended(self)`` is called when no client is attached any more and everything is flushed."""
        self.topic = topic
        self.number = number
        self._broker = broker
        self._settings = settings
        self._unflushed = unflushed
        self._flushed = flushed
        self._discarded = discarded
        self._written = written
        self._replicas = replicas
        self._ended = ended
        self._clients = 0
        self._gathering: Gathering[Client] = Gathering(
            settings.flush_messages, settings.flush_interval / 1000, limits.FLUSH_OCTETS
        )
        self._bulk: Bulk[Client] | None = None  # the one that is being flushed
        self._end = 0  # the offset behind what is committed
        self._held = 0  # octets of bulks whose answers wait for replicas
        self._left: list[Batch] = []  # of it, what is not committed
        self._refused: set[int] = set()  # the places in it of what never will be
        self._opening = FifoLock()
        self.positions: PartitionPositions | None = None
        """Where its messages are; None before :meth:`open`."""
        self._changed = Changes()
        self._room = Changes()
        self._closing: float | None = None  # since when
        self._flushing = hub.keep(self._run)

    @property
    def key(self) -> TopicPartition:
        """Topic and number, as the broker's interface takes them."""
        return self.topic, self.number

    def attach(self) -> None:
        """A client has messages for it."""
        self._clients += 1

    def detach(self) -> None:
        """That client has gone."""
        self._clients -= 1
        self._changed.tell()

    def open(self) -> None:
        """See to it that the topic exists, and is copied to replicas from here on; waits while that cannot be
        written. Raises :class:`TopicRefusedError`."""
        if self.positions is None:
            with self._opening:
                if self.positions is None:
                    self.positions = self._open()

    def _open(self) -> PartitionPositions:
        retry = limits.SHORTEST_RETRY
        while True:
            try:
                positions = open_partition(self._broker, self.topic, self.number, self._settings)
                self._replicas.open(self.key)
                return positions
            except (KafkaStorageError, LogError) as error:
                log.error("%s cannot be written, its clients wait: %s", self.name, error)
            if self._closing is not None:
                raise TopicRefusedError("closing", f"{self.name} could not be written")
            gevent.sleep(retry)
            retry = min(2 * retry, limits.LONGEST_RETRY)

    def take(self, run: Run) -> None:
        """Take messages; returns when there is room for more."""
        octets = self._gathering.add(run, time.monotonic())
        self._unflushed.add(len(run.messages), octets)
        self._changed.tell()
        while self._octets > limits.UNFLUSHED_OCTETS or self._messages > limits.UNFLUSHED_MESSAGES:
            self._room.wait()
        self._unflushed.wait()

    def close(self) -> None:
        """Flush everything now; messages not committed within limits.CLOSE_SECONDS are lost, and logged."""
        if self._closing is None:
            self._closing = time.monotonic()
        self._changed.tell()
        self._flushing.join()

    @property
    def _octets(self) -> int:
        return self._gathering.octets + self._held + (0 if self._bulk is None else self._bulk.octets)

    @property
    def _messages(self) -> int:
        return self._gathering.messages + (0 if self._bulk is None else self._bulk.messages)

    # -- flushing -------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            if self._bulk is None:
                if not self._wait():
                    self._ended(self)
                    return
                self._bulk = self._gathering.take()
                self._refused = set()
                self._left = list(Pace().over(batches(self._bulk.runs, limits.BATCH_OCTETS), every=1))
            bulk = self._bulk  # after an error that nobody expected it is still there
            stored = None
            if self._commit():
                stored = bulk.without(self._refused) if self._refused else bulk
            self._bulk = None
            if stored is not None and self._settings.writer_replica_sync and stored.wants(Mode.EVERY_WRITE):
                _answer(stored, Mode.AT_FLUSH)
                self._held += bulk.octets
                self._replicas.when_copied(self.key, self._end, partial(self._copied, stored, bulk))
                continue
            if stored is not None:
                _answer(stored)
            self._settle_bulk(bulk)

    def _copied(self, stored: Bulk[Client], bulk: Bulk[Client]) -> None:
        """As many replicas as are wanted have a bulk."""
        _answer(stored, Mode.EVERY_WRITE)
        self._held -= bulk.octets
        self._settle_bulk(bulk)

    def _settle_bulk(self, bulk: Bulk[Client]) -> None:
        self._unflushed.settle(bulk.messages, bulk.octets)
        self._room.tell()

    def _wait(self) -> bool:
        """Wait until a flush is due; False if it was the last one."""
        while True:
            wait = self._gathering.wait(time.monotonic())
            if self._closing is not None or not self._clients:
                return self._gathering.messages > 0
            if wait == 0:
                return True
            self._changed.wait(None if wait == float("inf") else wait)

    def _commit(self) -> bool:
        """Commit everything that the broker does not refuse for good; whether the broker still runs."""
        retry = limits.SHORTEST_RETRY
        while self._left:
            try:
                if self._produce(list(self._left)):
                    continue
            except BrokerStoppedError:
                return self._lose("the broker was stopped")
            if self._closing is not None and time.monotonic() > self._closing + limits.CLOSE_SECONDS:
                return self._lose("the server closes")
            gevent.sleep(retry)
            retry = min(2 * retry, limits.LONGEST_RETRY)
        self._flushed.flushes += 1
        return True

    def _produce(self, some: Sequence[Batch]) -> bool:
        """Commit these batches, the first ones of what is left; False if they are left for another time."""
        pace = Pace()
        contents = []
        for batch in some:
            contents.append(batch.encode())
            pace.rest()
        if not self._is_open():
            return self._open_again(some)
        produced = self._broker.produce({self.key: contents}, trusted=True)[self.key]
        if produced.error is None:
            self._settle(some)
            self._end = produced.base_offsets[-1] + len(some[-1].messages)
            for batch in some:
                self._flushed.messages += len(batch.messages)
                self._flushed.octets += sum(batch.sizes)
            with suppress(BrokerStoppedError):  # committed all the same, and answered
                for batch, base_offset in zip(some, produced.base_offsets, strict=True):
                    self._written(self, batch, base_offset)
            return True
        if produced.error is KafkaStorageError:
            log.error("messages for %s are not stored, and tried again: %s", self.name, produced.detail)
            return False
        if produced.error is UnknownTopicOrPartitionError:
            return self._open_again(some)
        if len(some) == 1 and len(some[0].messages) == 1:
            self._refuse(some, "refused", f"{produced.error.__name__}: {produced.detail}")
            return True
        # One of the messages is refused, and with it all: they are divided until it stands alone.
        if len(some) == 1:
            self._left[:1] = some[0].halves()
            some = self._left[:2]
        middle = len(some) // 2
        return self._produce(some[:middle]) and self._produce(some[middle:])

    def _is_open(self) -> bool:
        """Whether the topic is still the one that was opened, and not another one of that name."""
        try:
            positions = self._broker.positions.open(*self.key)
        except (KafkaError, LogError):
            return False
        return positions is self.positions and self._replicas.are_open(self.key)

    def _open_again(self, some: Sequence[Batch]) -> bool:
        """The topic was deleted: written to, it is there again. Whether these batches are settled."""
        self.positions = None
        try:
            self.open()
        except TopicRefusedError as error:
            self._refuse(some, error.cause, str(error))
            return True
        return False

    def _settle(self, some: Sequence[Batch]) -> None:
        del self._left[: len(some)]

    @property
    def name(self) -> str:
        """As a client names it."""
        return f"{self.topic}:{self.number}" if self.number else self.topic

    def _refuse(self, left: Sequence[Batch], cause: str, detail: str) -> None:
        count = sum(len(batch.messages) for batch in left)
        what = f"{count} messages for {self.name} were refused: {detail}"
        self._discarded.report(cause, what, count, logging.ERROR)
        self._refused.update(chain.from_iterable(batch.places for batch in left))
        self._settle(left)

    def _lose(self, why: str) -> bool:
        count = sum(len(batch.messages) for batch in self._left)
        log.error("%d messages for %s were not stored: %s", count, self.name, why)
        return False


def _answer(bulk: Bulk[Client], *modes: Mode) -> None:
    for client, answers in Pace().over(bulk.answers(*modes), every=1):
        client.answer(answers)
