"""TestBroker: a broker for tests, with ways to fill it, to look into it and to make it fail.

Looking and filling go straight to the broker inside, past the faults that a test has ordered: a fault is
for the program under test. Every method may be called from any thread and returns plain values as they are
at that moment. Those that wait are in :mod:`dafka.testing.waiting_for_broker`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, TypeVar, cast
from weakref import WeakMethod, WeakSet

from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import BrokerResponseError, KafkaError, UnknownTopicOrPartitionError
from kafka.partitioner import murmur2
from kafka.structs import TopicPartition

from compat.kafka.consumer._records import PartitionBuffer
from dafka.broker import running
from dafka.broker.broker import Broker
from dafka.broker.interface.broker import EARLIEST, LATEST, BrokerInterface, FetchFrom, TopicSpec
from dafka.broker.resources import Resources
from dafka.protocol.batch_writer import encode_batch
from dafka.testing.clock import MovableClock
from dafka.testing.faults import Failure, FaultyBroker
from dafka.testing.groups import GroupsOfBroker, check_group
from dafka.testing.snapshots import Snapshot, remove_log
from dafka.testing.waiting_for_broker import WaitingForBroker

BATCH_RECORDS = 1000  # records that preload() puts into one batch at most
BATCH_BYTES = 512 * 1024  # ... and the octets of their values, unless one alone is larger
FETCH_BYTES = 8 * 1024 * 1024  # read from a partition at a time

MEMORY = "/dev/shm"  # a file system in memory on Linux
MEMORY_BYTES = 512 * 1024 * 1024  # free there, or the disk is used: containers often have 64 MiB in all

T = TypeVar("T")
Row = tuple[int, "bytes | None", "bytes | None", "list[tuple[str, bytes | None]]"]


with_console: WeakSet[Any] = WeakSet()  # the brokers of this process that have one


class TestBroker(GroupsOfBroker, WaitingForBroker, Broker):
    """A :class:`dafka.Broker` that can be filled, looked into and made to fail; the same arguments.

    With ``snapshot`` it begins with what another one had stored, at its first start, in an empty folder.

    It listens, on a free port unless told otherwise: its ``bootstrap_servers`` is for clients of every kind,
    in any process. Those of ``compat.kafka`` in this process reach it directly.

    ``console=True``: a browser shows the broker at its ``console``; pytest prints that address when a test
    fails while the broker runs.

    Without a ``path`` its temporary folder is in memory where the system has a place for that (``/dev/shm``
    with half a gigabyte free), because what takes time in starting a broker is the disk.

    :attr:`clock` is its time, a :class:`~dafka.testing.clock.MovableClock`: the test may set it forward.
    """

    __test__ = False  # for pytest, which takes classes of this name for tests

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        listen: str | None = "127.0.0.1:0",
        console: Any = None,
        snapshot: Snapshot | None = None,
        **options: Any,
    ) -> None:
        if console is True:
            from dafka.console.options import ConsoleOptions  # brings Flask along

            console = ConsoleOptions()
        super().__init__(path, listen=listen, console=console or None, **options)
        if console:
            with_console.add(self)
        # Weak: the running broker has the clock, and must not keep the program's object, which may be
        # dropped.
        moved = WeakMethod(self._clock_moved)
        self.clock = MovableClock(lambda: (moved() or int)())
        self._options = replace(self._options, clock=self.clock.of_broker)
        self._begins_with: Snapshot | None = None
        self._beside: frozenset[str] = frozenset()  # names that may be in the folder before that
        self._kept_folder: str | None = None  # a temporary one, between two runs
        if snapshot is not None:
            self._begin_with(snapshot)

    def _open(self) -> Resources:
        folder, self._kept_folder = self._kept_folder, None
        if self._path is None and folder is None:
            folder = tempfile.mkdtemp(prefix="dafka-", dir=MEMORY if has_memory() else None)
        given = self._path
        try:
            self._path = folder or given
            if self._begins_with is not None:
                self._begins_with.fill(cast(str, self._path), self._beside)
            state = super()._open()
        except BaseException:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            self._path = given
        self._begins_with, self._beside = None, frozenset()
        if folder is not None:
            state.folder = folder
        # The one seam: clients that connect to this broker's address get the broker with faults.
        state.core = cast(Any, FaultyBroker(state.core))
        return state

    # -- beginning again ------------------------------------------------------------------------

    def restart(self) -> None:
        """Stop, and start again at the same address with what was stored, in a temporary folder as well.

        For the clients it is a broker that restarts: their connections end, and members of groups go on as
        far as their clients connect over TCP; those of clients in the process join again. Faults that were
        ordered are gone.
        """
        self._hub.run(self._begin_again, None)

    def snapshot(self) -> Snapshot:
        """The stored state of now, to begin with it again: :meth:`restore`, or ``TestBroker(snapshot=...)``.

        The clients notice nothing. Records that are under way may be in it or not.
        """
        return Snapshot(self._state().path, self.clock.ahead, MEMORY if has_memory() else None)

    def restore(self, snapshot: Snapshot) -> None:
        """Be what a broker was when the snapshot was taken. For clients as :meth:`restart`; records stored
        since are gone. Raises ValueError for a snapshot that is closed."""
        snapshot.check()
        self._hub.run(self._begin_again, snapshot)

    def _begin_again(self, snapshot: Snapshot | None) -> None:
        with running.changing:
            state = self._state()
            self._kept_folder, state.folder = state.folder, None
            path = state.path
            self._stop()
            if snapshot is not None:
                remove_log(path)
                self._begin_with(snapshot)
                self._beside = frozenset(os.listdir(path))  # the program's own files
            self._start()

    def _begin_with(self, snapshot: Snapshot) -> None:
        snapshot.check()
        self.clock.begin(snapshot.ahead)
        self._begins_with = snapshot

    # -- filling --------------------------------------------------------------------------------

    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic. Raises the broker's error if that is not possible."""
        if type(partitions) is not int:
            raise TypeError(f"partitions is a number of them, not {partitions!r}")
        error = self._call("create_topics", {topic: TopicSpec(partitions, configs or {})})[topic].error
        if error is not None:
            raise error(f"topic {topic!r} with {partitions} partitions")

    def preload(self, topic: str, records: Iterable[Any], *, partition: int | None = None) -> None:
        """Put records into a topic, without a producer and past all faults.

        A record is its value, a pair ``(key, value)``, or a mapping with any of ``value``, ``key``,
        ``headers`` (pairs of str and bytes), ``timestamp`` (ms) and ``partition``; str values and keys are
        encoded as UTF-8. A topic that does not exist is created with the broker's default number of
        partitions. Which partition: the record's own, else ``partition``, else where kafka-python's default
        partitioner puts the key, else one after the other.

        Raises:
            TypeError: something that is not a record.
            KafkaError: the broker's error, e.g. for a partition that does not exist.
        """
        metadata = self._call("metadata", [topic], True).topics[topic]
        if metadata.error is not None:
            raise metadata.error(f"topic {topic!r}")
        numbers = [one.number for one in metadata.partitions if one.writable]
        turn = count()
        now = int(self.clock.time() * 1000)
        rows: dict[int, list[Row]] = {}
        for record in records:
            own, row = _row(record, now)
            number = own if own is not None else partition
            if number is None:
                key = row[1]
                place = next(turn) if key is None else murmur2(key) & 0x7FFFFFFF
                number = numbers[place % len(numbers)]
            rows.setdefault(number, []).append(row)
        for number, partition_rows in rows.items():
            for batch in _batches(partition_rows):
                produced = self._call("produce", {(topic, number): [encode_batch(batch)]})[topic, number]
                if produced.error is not None:
                    raise produced.error(f"partition {number} of topic {topic!r}: {produced.detail}")

    # -- looking --------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """The names of all topics, sorted."""
        return sorted(self._call("metadata", None).topics)

    def partitions(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions; empty if there is no such topic."""
        return [one.number for one in self._call("metadata", [topic]).topics[topic].partitions]

    def records(self, topic: str, partition: int | None = None) -> list[ConsumerRecord]:
        """Everything in a topic, or in one partition: partition by partition, offset by offset.

        They are kafka-python's ``ConsumerRecord``, keys and values as bytes. Empty if there is no such topic.
        """
        numbers = self.partitions(topic) if partition is None else [partition]
        return [record for number in numbers for record in self._records(TopicPartition(topic, number))]

    def values(self, topic: str, partition: int | None = None) -> list[bytes | None]:
        """The values of :meth:`records`."""
        return [record.value for record in self.records(topic, partition)]

    def _records(self, partition: TopicPartition, committed: bool = False) -> Iterator[ConsumerRecord]:
        (offset,) = self._offsets([partition], EARLIEST).values()
        while True:
            wanted = {partition: FetchFrom(offset, FETCH_BYTES)}
            answers = self._call(
                "fetch", wanted, max_wait=0.0, min_bytes=0, max_bytes=FETCH_BYTES, read_committed=committed
            )
            fetched = answers[partition]
            if fetched.error is not None:
                if fetched.error is UnknownTopicOrPartitionError:
                    return  # deleted meanwhile
                raise fetched.error(f"reading {partition} from offset {offset}")
            if not fetched.batches:
                return
            buffer = PartitionBuffer(partition, offset, fetched.batches, fetched.aborted)
            while True:
                some, offset = buffer.take(offset, BATCH_RECORDS, None, None)
                if not some:
                    break
                yield from some

    def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """For each partition of a topic the offset that its next record will get."""
        return self._offsets([TopicPartition(topic, number) for number in self.partitions(topic)], LATEST)

    def _sizes(self, topic: str) -> dict[int, int]:
        ends = self.end_offsets(topic)
        starts = self._offsets(ends, EARLIEST)
        return {one.partition: end - starts.get(one, 0) for one, end in ends.items()}

    def committed(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]:
        """The offsets a group has committed, in one topic or in all; partitions without one are left out."""
        check_group(group)
        found = self._call("fetch_offsets", group, None)
        return {
            TopicPartition(*partition): committed.offset
            for partition, committed in sorted(found.items())
            if topic in (None, partition[0])
        }

    def lag(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]:
        """How many records a group has still to read: end offset less committed offset, by partition.

        With ``topic`` for all its partitions, counted from the first record that exists where the group has
        committed nothing; without it for the partitions the group has committed offsets in. Of a share group:
        how many it is not done with, in partitions that somebody has read.
        ``sum(broker.lag("billing").values())`` is the whole.
        """
        shared = self._share_lag(group, topic)
        if shared:
            return shared
        committed = self.committed(group, topic)
        if topic is not None:
            every = [TopicPartition(topic, number) for number in self.partitions(topic)]
            committed = {**self._offsets(every, EARLIEST), **committed}
        ends = self._offsets(committed, LATEST)
        return {partition: max(end - committed[partition], 0) for partition, end in ends.items()}

    def _offsets(self, partitions: Iterable[TopicPartition], which: int) -> dict[TopicPartition, int]:
        listed = self._call("list_offsets", dict.fromkeys(partitions, which))
        return {TopicPartition(*key): answer.offset for key, answer in listed.items() if answer.error is None}

    # -- failing --------------------------------------------------------------------------------

    def fail_next_produce(
        self, error: type[KafkaError], *, topic: str | None = None, times: int = 1, written: bool = False
    ) -> None:
        """Let the next ``times`` produce requests (to ``topic``) fail with a class of ``kafka.errors``.

        A producer that retries such an error (``error.retriable``) tries again, and the program notices
        nothing but the delay; ``retries=0`` or another error shows up in its futures. Nothing of the failing
        request is appended; with ``written`` all of it is, and the producer is told otherwise: the answer
        that got lost.
        """
        self._order(lambda faults: faults.produce_failures, error, topic, times, written)

    def fail_next_commit(self, error: type[KafkaError], *, topic: str | None = None, times: int = 1) -> None:
        """Let the next ``times`` commits of offsets (in ``topic``) by any group fail and commit nothing."""
        self._order(lambda faults: faults.commit_failures, error, topic, times, False)

    def delay_fetches(self, seconds: float, *, topic: str | None = None) -> ExitStack:
        """Let records (of ``topic``) be seen only ``seconds`` after a consumer first asked for them.

        Until :meth:`clear_faults`, or until the end of the block: ``with broker.delay_fetches(0.5): ...``
        """
        if not seconds >= 0:  # nor NaN
            raise ValueError(f"a delay is 0 seconds or more, not {seconds!r}")
        self._hub.run(self._faulty.fetch_delays.__setitem__, topic, float(seconds))
        until_then = ExitStack()
        until_then.callback(self._hub.run, self._faulty.release)
        until_then.callback(self._hub.run, partial(self._faulty.fetch_delays.pop, topic, None))
        return until_then

    def hang(self) -> ExitStack:
        """Let the broker hang: it answers no request from now on.

        Until :meth:`clear_faults`, or until the end of the block: ``with broker.hang(): ...``; then the
        requests are carried out. Looking and filling go past this, too.
        """
        self._hub.run(self._faulty.hang)
        until_then = ExitStack()
        until_then.callback(self._hub.run, self._faulty.release)
        return until_then

    def clear_faults(self) -> None:
        """Take back every fault that was ordered and has not happened yet."""
        self._hub.run(self._faulty.clear)

    def _order(
        self,
        kind: Callable[[FaultyBroker], Any],
        error: type[KafkaError],
        topic: str | None,
        times: int,
        written: bool,
    ) -> None:
        if not (isinstance(error, type) and issubclass(error, KafkaError)):
            raise TypeError(f"error is a class of kafka.errors, not {error!r}")
        if type(times) is not int or times < 1:
            raise ValueError(f"times is how many requests are to fail, 1 or more, not {times!r}")
        failure = Failure(cast("type[BrokerResponseError]", error), topic, written)
        self._hub.run(kind(self._faulty).extend, [failure] * times)

    # -- inside ---------------------------------------------------------------------------------

    @property
    def _faulty(self) -> FaultyBroker:
        return cast(FaultyBroker, self._state().core)

    def _clock_moved(self) -> None:
        if self.running:
            self._call("clock_moved")

    def _within(self, work: Callable[[BrokerInterface], T]) -> T:
        return self._hub.run(work, self._faulty.inner)

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call the broker inside, past the faults."""
        return self._hub.run(getattr(self._faulty.inner, method), *args, **kwargs)


def has_memory() -> bool:
    """Whether there is room for folders in MEMORY."""
    try:
        space = os.statvfs(MEMORY)
    except (AttributeError, OSError):
        return False
    return os.access(MEMORY, os.W_OK) and space.f_bavail * space.f_frsize >= MEMORY_BYTES


def _row(record: Any, now: int) -> tuple[int | None, Row]:
    """A record of :meth:`TestBroker.preload` as its partition, if it names one, and a row of a batch."""
    if isinstance(record, Mapping):
        unknown = record.keys() - {"value", "key", "headers", "timestamp", "partition"}
        if unknown:
            raise TypeError(f"a record has no {sorted(unknown)}: {record!r}")
        headers = [(name, _octets(value)) for name, value in record.get("headers") or ()]
        row = record.get("timestamp", now), _octets(record.get("key")), _octets(record.get("value")), headers
        return record.get("partition"), row
    if isinstance(record, tuple):
        if len(record) != 2:
            raise TypeError(f"a record as a tuple is (key, value), not {record!r}")
        return None, (now, _octets(record[0]), _octets(record[1]), [])
    return None, (now, None, _octets(record), [])


def _octets(value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a key or value is bytes, str or None, not {value!r}")


def _batches(rows: list[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        octets = len(row[1] or b"") + len(row[2] or b"")
        if batch and (len(batch) == BATCH_RECORDS or size + octets > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += octets
    if batch:
        yield batch
