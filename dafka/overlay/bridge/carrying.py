"""Carrying out rules: messages of the overlay into topics, and records into the overlay."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import gevent
from kafka.errors import KafkaError
from kafka.partitioner.default import murmur2

from dafka.broker.interface.broker import BrokerInterface, TopicPartition
from dafka.hub.pool import BATCHES
from dafka.hub.turns import Pace
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.checkpoints import Checkpoints
from dafka.overlay.bridge.limits import (
    FETCH_SECONDS,
    LONGEST_RETRY,
    PRODUCE_OCTETS,
    PRODUCE_RECORDS,
    RECORDS_AT_ONCE,
    TOPICS_SECONDS,
)
from dafka.overlay.bridge.reading import Read, Reading, topics_of
from dafka.overlay.bridge.refusals import Refusals
from dafka.overlay.bridge.rules import NewRecord, NotCarried, Record, ToKafka, ToOverlay
from dafka.overlay.bridge.writing import FIRST_PAUSE, Writing
from dafka.overlay.node.endpoint import Endpoint
from dafka.overlay.node.errors import Closed, Empty
from dafka.overlay.node.types import Message
from dafka.overlay.values import Value
from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import BatchError, read_header
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import BatchRecord, encode_batch

log = bounded_logger(__name__)

_POLL_SECONDS = 0.5


class IntoKafka:
    """Writes what is published on the prefixes of ``rules``. Hub side; :meth:`run` is a green thread."""

    def __init__(
        self, broker: BrokerInterface, endpoint: Endpoint, rules: Sequence[ToKafka], discarded: Counter[str]
    ) -> None:
        self.records = 0
        """Written since the start."""
        self._rules = [(rule, rule.prefix.encode("utf-8", "surrogateescape")) for rule in rules]
        self._writing = Writing(broker, Refusals(discarded))
        self._discarded = discarded
        self._keyless = itertools.count()
        self._closing = False
        self._subscriber = endpoint.subscribe(*dict.fromkeys(rule.prefix for rule in rules))

    def run(self) -> None:
        """Until :meth:`close`, and until everything that has come before it is written."""
        while True:
            try:
                messages = [self._subscriber.get(_POLL_SECONDS), *self._subscriber.poll()]
            except Empty:
                if self._closing:
                    return
                continue
            except Closed:
                return
            for some in _pieces(self._records(messages)):
                self._write(some)

    def close(self) -> None:
        """Take nothing more."""
        self._closing = True
        for topic in self._subscriber.topics:
            self._subscriber.remove_topic(topic)

    def _records(self, messages: Iterable[Message]) -> Iterable[NewRecord]:
        pace = Pace()
        topic, rules = "", list[ToKafka]()
        for message in pace.over(messages, RECORDS_AT_ONCE):
            if message.topic != topic or not rules:  # most are on the same topic as the one before
                topic = message.topic
                octets = topic.encode("utf-8", "surrogateescape")
                rules = [rule for rule, prefix in self._rules if octets.startswith(prefix)]
            for rule in rules:
                try:
                    for number, record in enumerate(rule.records(topic, message.value, message.sender), 1):
                        yield record
                        if not number % RECORDS_AT_ONCE:
                            pace.rest()
                except NotCarried as error:
                    self._discarded[error.cause] += 1
                    log.error("not written: %s", error)

    def _write(self, records: Sequence[NewRecord]) -> None:
        now = time.time_ns() // 1_000_000
        rows: dict[TopicPartition, list[BatchRecord]] = {}
        keyless = next(self._keyless)
        for record in records:
            count = self._partitions(record.topic)
            number = keyless if record.key is None else murmur2(record.key) & 0x7FFFFFFF
            rows.setdefault((record.topic, number % count), []).append(
                (now, record.key, record.value, record.headers)
            )
        batches = {key: [BATCHES.run(encode_batch, some)] for key, some in rows.items()}
        self._writing.write(batches, {})
        self.records += len(records)

    def _partitions(self, topic: str) -> int:
        pause = FIRST_PAUSE
        while True:
            try:
                return self._writing.partitions(topic)
            except KafkaError as error:
                log.error("topic %s: %s", topic, error)
            gevent.sleep(pause)
            pause = min(2 * pause, LONGEST_RETRY)


def _pieces(records: Iterable[NewRecord]) -> Iterator[list[NewRecord]]:
    """Records in pieces that are written at once: bounded in number, and so that a batch fits into any
    topic."""
    piece: list[NewRecord] = []
    octets = 0
    for record in records:
        piece.append(record)
        octets += len(record.value)
        if len(piece) >= PRODUCE_RECORDS or octets >= PRODUCE_OCTETS:
            yield piece
            piece, octets = [], 0
    if piece:
        yield piece


class IntoOverlay:
    """Publishes the records of the topics of ``rules``. Hub side; :meth:`run` is a green thread.

    It publishes while the endpoint has peers. A record published a second ago cannot come back any more, so
    the checkpoint stays that far behind.
    """

    def __init__(
        self,
        broker: BrokerInterface,
        endpoint: Endpoint,
        rules: Sequence[ToOverlay],
        checkpoints: Checkpoints,
        discarded: Counter[str],
    ) -> None:
        self.messages = 0
        """Published since the start."""
        self._broker = broker
        self._endpoint = endpoint
        self._rules = rules
        self._checkpoints = checkpoints
        self._discarded = discarded
        self._reading = Reading(broker)
        self._positions: dict[TopicPartition, int] = {}
        self._published: dict[TopicPartition, int] = {}  # since the last checkpoint
        self._due: dict[TopicPartition, int] = {}  # to be committed with the next one
        self._looked = float("-inf")

    def run(self) -> None:
        """Until it is killed."""
        while True:
            if time.monotonic() - self._looked > TOPICS_SECONDS:
                self._look()
            if not any(peer.status in ("peered", "reachable") for peer in self._endpoint.peers()):
                gevent.sleep(FETCH_SECONDS / 5)
                continue
            for read in self._reading.read(self._positions):
                if not read.batches:
                    self._positions[read.key] = read.position
                    continue
                messages, end, refused = BATCHES.run(self._messages, read)
                for topic, value in messages:
                    self._endpoint.publish(topic, value)
                self.messages += len(messages)
                for error in refused:
                    self._discarded[error.cause] += 1
                    log.error("not published: %s", error)
                self._positions[read.key] = self._published[read.key] = end

    def note(self, everything: bool = False) -> None:
        """To be called now and then: records published before the last call can be committed."""
        published, self._published = self._published, {}
        if everything:
            published |= self._positions
        for key, offset in self._due.items():
            self._checkpoints.set(key, offset)
        self._due = published
        if everything:
            self.note()

    def _look(self) -> None:
        self._looked = time.monotonic()
        try:
            topics = topics_of(self._broker, self._choose)
        except KafkaError as error:
            log.error("looking for topics: %s", error)
            return
        keys = {(topic, number) for topic, count in topics.items() for number in range(count)}
        for key in self._positions.keys() - keys:
            del self._positions[key]
        for key in keys - self._positions.keys():
            self._positions[key] = self._checkpoints.positions.get(key, 0)

    def _choose(self, topics: Iterable[str]) -> list[str]:
        return [topic for topic in topics if any(rule.matches(topic) for rule in self._rules)]

    def _messages(self, read: Read) -> tuple[list[tuple[str, Value]], int, list[NotCarried]]:
        """Beside the hub: it touches nothing that others change."""
        transactions = AbortedTransactions(read.aborted)
        topic, partition = read.key
        rules = [rule for rule in self._rules if rule.matches(topic)]
        found: list[tuple[str, Value]] = []
        refused: list[NotCarried] = []
        end = read.position
        for batch in read.batches:
            header = read_header(batch)
            end = max(end, header.next_offset)
            if (header.is_control or header.is_transactional) and transactions.skips(header, batch):
                continue
            try:
                columns = decode_batch(batch)
            except BatchError as error:
                refused.append(NotCarried(error.cause, f"{topic}-{partition}: {error}"))
                continue
            for offset, timestamp, key, value, headers in zip(*columns, strict=True):
                if offset < read.position:
                    continue
                record = Record(topic, partition, offset, timestamp, key, value, headers)
                for rule in rules:
                    try:
                        message = rule.message(record)
                    except NotCarried as error:
                        refused.append(error)
                        continue
                    if message is not None:
                        found.append(message)
        return found, end, refused
