"""A compacted topic next to a model of it: compaction step by step, and between the steps anything else.

A seed stands for a history: plain and transactional appends, commits and aborts, batches that come twice or
after their transaction, producers that are replaced, deleted records, retention, restarts, and time that
passes. The steps of compaction are taken by hand, so that a seed is always the same history. Checked after
each step, for readers of both isolation levels:

- What is read was written: with its offset, key, value and timestamp, in order, and nothing twice.
- A reader of committed records gets no record of an open or aborted transaction, and the table that the
  records add up to is the one that was committed.
- A record that is missing was deleted from the front, or of an aborted transaction, or overtaken by a
  committed record of its key, or is a tombstone that has stayed for ``delete.retention.ms``. The record that
  replaced it was decided and older than ``min.compaction.lag.ms`` when some run of compaction began.

At the end all transactions are ended, and what compaction leaves is exactly the newest record of each key.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import kafka.errors as errors
from broker.clients import Client

from dafka import Broker
from dafka.broker.interface.broker import EARLIEST, FetchFrom, Produced, TopicSpec
from dafka.log import Log, dirty_bytes, tombstones_due
from dafka.protocol.batch import read_header, with_producer
from dafka.protocol.batch_control import commits
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

TOPIC = "table", 0
KEYS = [b"%d" % number for number in range(6)]
LAG_MS, DELETE_RETENTION_MS = 1000, 5000
LARGE = 9000  # octets of a batch that is not merged with others
OPEN, COMMITTED, ABORTED, MARKER = "open", "committed", "aborted", "marker"


class Row(NamedTuple):
    """A record as a reader gets it."""

    offset: int
    key: bytes | None
    value: bytes | None
    time: int


class Written:
    """A record, or a marker, and what has become of it."""

    def __init__(self, row: Row, producer: str, state: str) -> None:
        self.row = row
        self.producer = producer
        self.state = state
        self.cleaned: int | None = None  # when a run that could reach it began for the first time


class Producer:
    """A transactional producer, and the last batch that it has sent."""

    def __init__(self, transactional_id: str) -> None:
        self.id = transactional_id
        self.identity = -1, -1
        self.sequence = 0
        self.start: int | None = None  # of the open transaction
        self.last: tuple[bytes, int] | None = None  # a batch and its offset


class History:
    """The broker, the model, and the rules by which both go on."""

    def __init__(self, seed: int, broker: Broker) -> None:
        self.chance = random.Random(seed)
        self.broker = broker
        self.now = 1_000_000
        self.written: list[Written] = []
        self.start = 0  # the first offset that was not deleted
        self.reached = 0  # the offset that compaction was allowed to go to, at most
        self.lag = self.chance.choice((0, 0, LAG_MS))
        self.producers = [Producer(name) for name in "abc"]
        self.run: Iterator[object] | None = None
        self.run_at = 0
        self.client = Client(broker)
        self.policy = self.chance.choice(("compact", "compact,delete", "compact,delete"))
        configs = {
            "cleanup.policy": self.policy,
            "retention.ms": "-1",
            "retention.bytes": "20000",
            "min.compaction.lag.ms": str(self.lag),
            "delete.retention.ms": str(DELETE_RETENTION_MS),
        }
        assert self.client.change("create_topics", {TOPIC[0]: TopicSpec(1, configs)}) == {TOPIC[0]: None}
        for producer in self.producers:
            self.begin(producer)

    @property
    def stored(self) -> Any:
        """The partition in the log."""
        return self.client.core._topics.partition(*TOPIC).stored

    @property
    def log(self) -> Log:
        log: Log = self.client.core.log
        return log

    @property
    def end(self) -> int:
        return len(self.written)

    @property
    def stable(self) -> int:
        """The last stable offset."""
        starts = [producer.start for producer in self.producers if producer.start is not None]
        return max(min([*starts, self.end]), self.start)

    # -- what happens ---------------------------------------------------------------------------

    def step(self) -> None:
        rules = {
            self.append: 20, self.append_in_transaction: 40, self.commit: 8, self.abort: 8,
            self.send_again: 4, self.send_late: 3, self.replace_producer: 2, self.delete_records: 2,
            self.retain: 2, self.pass_time: 10, self.compact: 45, self.restart: 1,
        }  # fmt: skip
        self.chance.choices(list(rules), list(rules.values()))[0]()

    def append(self) -> None:
        content, rows = self.batch()
        assert self.produce(content).base_offset == self.end
        self.written += [Written(row, "", COMMITTED) for row in rows]

    def append_in_transaction(self) -> None:
        producer = self.chance.choice(self.producers)
        content, rows = self.batch()
        content = with_producer(content, *producer.identity, producer.sequence, transactional=True)
        who = producer.id, *producer.identity
        assert self.client.call("add_partitions_to_transaction", *who, [TOPIC]) == {TOPIC: None}
        assert self.produce(content, producer).base_offset == self.end
        producer.last = content, self.end
        if producer.start is None:
            producer.start = self.end
        producer.sequence += len(rows)
        self.written += [Written(row, producer.id, OPEN) for row in rows]

    def commit(self) -> None:
        self.end_transaction(self.chance.choice(self.producers), True)

    def abort(self) -> None:
        self.end_transaction(self.chance.choice(self.producers), False)

    def end_transaction(self, producer: Producer, commit: bool) -> None:
        if producer.start is not None:
            error = self.client.call("end_transaction", producer.id, *producer.identity, commit)
            assert error is None
            self.ended(producer, commit)

    def ended(self, producer: Producer, commit: bool) -> None:
        for one in self.written:
            if one.producer == producer.id and one.state == OPEN:
                one.state = COMMITTED if commit else ABORTED
        self.written.append(Written(Row(self.end, None, None, self.now), producer.id, MARKER))
        producer.start = None

    def send_again(self) -> None:
        """A batch whose answer got lost, while its transaction is open."""
        producer = self.chance.choice(self.producers)
        if producer.start is not None and producer.last is not None:
            content, offset = producer.last
            assert self.produce(content, producer).base_offset == offset

    def send_late(self) -> None:
        """A batch that comes after its transaction."""
        producer = self.chance.choice(self.producers)
        if producer.start is None:
            content, _ = self.batch()
            content = with_producer(content, *producer.identity, producer.sequence, transactional=True)
            refused = errors.InvalidTxnStateError, errors.InvalidProducerEpochError
            assert self.produce(content, producer).error in refused

    def replace_producer(self) -> None:
        """Another instance of a producer: a transaction left open by the one before is aborted."""
        producer = self.chance.choice(self.producers)
        old = producer.identity
        if producer.start is not None:
            self.ended(producer, False)
        self.begin(producer)
        content = with_producer(self.batch()[0], *old, 0, transactional=True)
        refused = errors.InvalidTxnStateError, errors.InvalidProducerEpochError
        assert self.produce(content, producer).error in refused

    def begin(self, producer: Producer) -> None:
        error, *identity = self.client.call("init_producer_id", producer.id, 600.0)
        assert error is None
        producer.identity = identity[0], identity[1]
        producer.sequence, producer.last = 0, None

    def delete_records(self) -> None:
        below = self.chance.randint(self.start, self.end)
        if self.chance.random() < 0.7:
            below = min(below, self.start + 5)
        error = self.client.call("delete_records", {TOPIC: below})[TOPIC].error
        if self.policy == "compact":
            assert error is errors.PolicyViolationError
            return
        assert error is None
        self.start = max(self.start, below)

    def retain(self) -> None:
        """Retention lets go of some values, if the topic is configured so."""
        log_cleaner = self.client.core._log_cleaner
        self.broker._hub.run(log_cleaner._cleaner._retain, self.stored, log_cleaner._rules(self.stored))
        start = self.client.call("list_offsets", {TOPIC: EARLIEST})[TOPIC].offset
        assert self.start <= start <= self.end
        self.start = start

    def pass_time(self) -> None:
        self.now += self.chance.choice((1, LAG_MS, DELETE_RETENTION_MS))

    def restart(self) -> None:
        self.run = None
        self.broker.stop()
        self.broker.start()
        self.client = Client(self.broker)

    def compact(self) -> None:
        """Some steps of a run, which begins if there is none."""
        if self.run is None:
            how = self.client.core._log_cleaner._rules(self.stored).compaction
            assert how.end_offset == self.stable
            there = self.written[self.start :]
            young = (one.row.offset for one in there if one.row.time >= self.now - self.lag)
            limit = min(self.stable, next(young, self.end)) if self.lag else self.stable
            self.reached = max(self.reached, limit)
            for one in self.written[:limit]:
                if one.cleaned is None:
                    one.cleaned = self.now
            self.run_at = self.now
            self.run = self.client.core._writer.compacting(
                self.stored, delete_retention_ms=how.delete_retention_ms, min_lag_ms=how.min_lag_ms,
                end_offset=how.end_offset, aborted=how.aborted, now_ms=self.now,
                max_keys=self.chance.choice((1, 2, 100)),
            )  # fmt: skip
        for _ in range(self.chance.choice((1, 1, 2, 5, 1000))):
            if self.broker._hub.run(next, self.run, None) is None:
                self.run = None
                return

    def batch(self) -> tuple[bytes, list[Row]]:
        """A batch and its records, with the offsets that they get."""
        rows = []
        for offset in range(self.end, self.end + self.chance.choice((1, 1, 2, 4))):
            value = None if self.chance.random() < 0.2 else b"%d" % offset
            rows.append(Row(offset, self.chance.choice(KEYS), value, self.now - self.chance.randrange(50)))
        headers = (("h", bytes(LARGE)),) if self.chance.random() < 0.1 else ()
        codec = self.chance.choice((None, None, "gzip"))
        records = [(row.time, row.key, row.value, headers) for row in rows]
        return encode_batch(records, compression=codec), rows

    def produce(self, content: bytes, producer: Producer | None = None) -> Produced:
        transactional_id = None if producer is None else producer.id
        answers = self.client.call("produce", {TOPIC: [content]}, transactional_id=transactional_id)
        produced: Produced = answers[TOPIC]
        return produced

    # -- what holds -----------------------------------------------------------------------------

    def check(self) -> None:
        everything = self.read(False)
        self.check_written(everything)
        self.check_missing({row.offset for row in everything})
        first = self.client.call("list_offsets", {TOPIC: EARLIEST})[TOPIC].offset
        assert first == self.start, f"the first offset is {first}, what was deleted ends at {self.start}"
        begin = self.chance.randint(first, self.end) if self.chance.random() < 0.3 else first
        committed = self.read(True, begin)
        self.check_written(committed)
        visible = [row for row in everything if begin <= row.offset < self.stable]
        assert committed == [row for row in visible if self.written[row.offset].state == COMMITTED]
        if begin == first:
            self.check_table(committed)

    def check_written(self, rows: list[Row]) -> None:
        for row in rows:
            assert row == self.written[row.offset].row, f"{row} is not what was written"
        offsets = [row.offset for row in rows]
        assert offsets == sorted(set(offsets)), f"{offsets} do not rise"

    def check_missing(self, there: set[int]) -> None:
        newest = {
            one.row.key: one.row.offset for one in self.written[: self.reached] if one.state == COMMITTED
        }
        for one in self.written[self.start :]:
            offset, key, value, _ = one.row
            if one.state == MARKER or offset in there:
                continue
            assert offset < self.reached, f"{offset} is gone, {self.reached} was the end for compaction"
            assert one.state != OPEN, f"{offset} is gone and its transaction open"
            if one.state == ABORTED or newest[key] > offset:
                continue
            stayed = self.run_at - (self.run_at if one.cleaned is None else one.cleaned)
            is_due = value is None and stayed >= DELETE_RETENTION_MS
            assert is_due, f"{offset} is gone, the newest committed record of key {key!r}"

    def check_table(self, committed: list[Row]) -> None:
        expected = [one.row for one in self.written[: self.stable] if one.state == COMMITTED]
        newest = {row.key: row for row in expected}
        wanted = {
            row.key: row for row in newest.values() if row.offset >= self.start and row.value is not None
        }
        found = {row.key: row for row in committed}
        assert {key: row for key, row in found.items() if row.value is not None} == wanted

    def read(self, read_committed: bool, offset: int | None = None) -> list[Row]:
        """What a reader of an isolation level gets from an offset on, by default the first one."""
        rows: list[Row] = []
        offset = self.start if offset is None else offset
        end = self.stable if read_committed else self.end
        max_bytes = self.chance.choice((1, 2000, 10**7))
        while offset < end:
            limits: dict[str, Any] = {"max_wait": 0, "min_bytes": 1, "max_bytes": max_bytes}
            wanted = {TOPIC: FetchFrom(offset, max_bytes)}
            fetched = self.client.call("fetch", wanted, **limits, read_committed=read_committed)[TOPIC]
            assert fetched.error is None and fetched.batches, f"{offset} of {end}: {fetched}"
            assert (fetched.last_stable_offset, fetched.high_watermark) == (self.stable, self.end)
            begins = sorted((first, producer_id) for producer_id, first in fetched.aborted)
            aborting: set[int] = set()
            for content in fetched.batches:
                header = read_header(content)
                while begins and begins[0][0] <= header.base_offset:
                    aborting.add(begins.pop(0)[1])
                if header.is_control:
                    if not commits(content):
                        aborting.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborting):
                    columns = decode_batch(content)
                    found = zip(
                        columns.offsets, columns.keys, columns.values, columns.timestamps, strict=True
                    )
                    rows += [row for row in map(Row._make, found) if row.offset >= offset]
                assert header.next_offset > offset
                offset = header.next_offset
        return rows

    def finish(self) -> None:
        """All is decided and compacted as far as it goes."""
        for producer in self.producers:
            self.end_transaction(producer, self.chance.random() < 0.5)
        self.now += self.lag + 1
        tail = [Row(self.end, b"tail", b"", self.now + self.lag)]
        headers = (("h", bytes(LARGE)),)
        self.produce(encode_batch([(tail[0].time, b"tail", b"", headers)]))
        self.written.append(Written(tail[0], "", COMMITTED))
        self.run = None
        for _ in range(2):
            self.compact()
            while self.run is not None:
                self.compact()
            self.check()
            self.now += DELETE_RETENTION_MS + 1
        newest = {one.row.key: one.row for one in self.written if one.state == COMMITTED}
        left = [row for row in newest.values() if row.value is not None and row.offset >= self.start]
        assert self.read(True) == sorted(left), "compaction has left something else than the newest records"
        assert not dirty_bytes(self.log, self.stored, end_offset=self.stable)[0]
        assert not tombstones_due(self.log, self.stored, DELETE_RETENTION_MS, 2**62)
