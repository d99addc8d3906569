"""The records' part of the embedded broker: produce, fetch, offsets by time and by leader epoch."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kafka.errors import (
    CorruptRecordError,
    InvalidRequiredAcksError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)

from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.embedded.traffic import Traffic
from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.interface.records import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    MOST_IN_FLIGHT,
    NO_EPOCH,
    NO_EPOCHS,
    EpochEnd,
    Fetched,
    FetchFrom,
    ListedOffset,
    Produced,
    RecordInterface,
)
from dafka.broker.interface.transactions import Writes
from dafka.broker.limits import RECORDS_AT_ONCE, WIDE_PRODUCE
from dafka.broker.records.admission import AT_ONCE, admit, examine_at_once
from dafka.broker.records.append import PartitionAppend, Refusal, Request, check_batches
from dafka.broker.records.fetch import Fetch
from dafka.broker.records.leader import Leaders
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.pending import PendingAppends
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.records.watching import Watch
from dafka.broker.topics.config_table import ConfigTable
from dafka.broker.topics.table import Partition, TopicTable
from dafka.broker.transactions.first_writes import FirstWrites
from dafka.hub.lines import FifoLock, Lines, Place
from dafka.hub.pool import BATCHES
from dafka.hub.turns import Pace, next_turn
from dafka.log import DamagedError, Log, LogError
from dafka.protocol.batch_body import Allowance

_LAST_TIMESTAMP = 2**63 - 1
_Taken = tuple[Partition, PartitionAppend]


class RecordCalls(RecordInterface):
    """Answers the calls about records, those that wait for more of them or for their commit included."""

    def __init__(
        self,
        log: Log,
        topics: TopicTable,
        configs: ConfigTable,
        producers: ProducerStates,
        epochs: LeaderEpochs,
        leaders: Leaders,
        pending: PendingAppends,
        first_writes: FirstWrites,
        lifecycle: Lifecycle,
        clock: Callable[[], float],
    ) -> None:
        self._log = log
        self._topics = topics
        self._configs = configs
        self._producers = producers
        self._epochs = epochs
        self._leaders = leaders
        self._pending = pending
        self._first_writes = first_writes
        self._lifecycle = lifecycle
        self._clock = clock
        self.traffic = Traffic()
        self._fetches: set[Fetch] = set()
        self._entrance = FifoLock()
        self._lines: Lines[Partition] = Lines()  # of appends whose admission takes its time

    def abandon_fetches(self) -> None:
        """End the fetches that wait: the broker is being stopped."""
        for fetch in list(self._fetches):
            fetch.abandon()

    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[bytes]],
        acks: int = -1,
        *,
        transactional_id: str | None = None,
        writes: Writes = Writes.ANNOUNCED,
        in_flight: int = MOST_IN_FLIGHT,
        trusted: bool = False,
        from_0: bool = False,
    ) -> dict[TopicPartition, Produced]:
        began = time.monotonic()
        with self._entrance:  # in their order: one connection may have several under way
            while self._pending.too_large:
                self._pending.wait_for_less()
                self._lifecycle.check()
        request = Request(transactional_id, writes, trusted, from_0)
        # A wide call has pauses: its caller sends nothing after it that must not overtake it.
        wide = sum(map(len, batches.values())) > WIDE_PRODUCE
        request.left = 1  # until all is taken
        appends: Iterable[_Taken] = self._checked(batches, request, acks, wide)
        if writes is Writes.ADDING and transactional_id is not None:
            appends = self._added(transactional_id, list(appends), request, wide)
        self._take_all(appends, request, wide)
        if acks == 0:
            return {key: request.answers.get(key) or Produced(None) for key in batches}
        request.left -= 1
        if request.left:
            request.ready.wait()
        self.traffic.produces.add(time.monotonic() - began)
        return request.answers

    def _checked(
        self, batches: Mapping[TopicPartition, Sequence[bytes]], request: Request, acks: int, wide: bool
    ) -> Iterator[_Taken]:
        """The appends of a call; batches that are refused are answered here.

        The appends of a wide call come as fast as they are written, so that other calls need not wait for
        all of them.
        """
        for (name, number), contents in Pace().over(batches.items()) if wide else batches.items():
            if wide:
                self._wait_for_rounds()
            partition = self._topics.partition(name, number)
            outcome: PartitionAppend | Produced
            if partition is None:
                outcome = Produced(UnknownTopicOrPartitionError)
            elif not partition.writable:
                detail = f"only the native producer {partition.address!r} writes this partition"
                outcome = Produced(PolicyViolationError, detail=detail)
            elif contents and acks not in (-1, 0, 1):  # that there are no records counts first
                outcome = Produced(InvalidRequiredAcksError, detail=f"acks is -1, 0 or 1, not {acks}")
            else:
                outcome = check_batches(contents, request, partition.log_start)
                if isinstance(outcome, PartitionAppend):
                    request.left += 1
                    yield partition, outcome
                    continue
            request.answers[name, number] = outcome

    def _added(
        self, transactional_id: str, appends: list[_Taken], request: Request, wide: bool
    ) -> list[_Taken]:
        """The appends whose partitions are part of the transaction by now, or which are refused later on."""
        refused = self._first_writes.add(transactional_id, appends, wide)
        for partition, append in Pace().over(appends) if refused and wide else appends:
            if partition in refused:
                self._note_refused(partition, append)
        for partition, error in refused.items():
            detail = f"partition {partition.number} of {partition.topic.name!r} was not added"
            request.answer((partition.topic.name, partition.number), Produced(error, detail=detail))
        return [one for one in appends if one[0] not in refused]

    def _wait_for_rounds(self) -> None:
        while self._pending.too_many:
            self._pending.wait_for_less()

    def _take_all(self, appends: Iterable[_Taken], request: Request, wide: bool) -> None:
        """Append what the topics' configurations allow, each partition's in the order of the calls.

        Batches that have to be compressed take time, and those that are not examined soon; later batches of
        the same partition wait for them. All others are appended before any other green thread runs. The
        wrong records of refused batches are looked for last.
        """
        waiting: deque[tuple[Partition, PartitionAppend, Place]] = deque()
        refused: list[tuple[Partition, Refusal]] = []
        records, allowance = 0, Allowance(AT_ONCE)
        try:
            for partition, append in appends:
                records += sum(append.spans)
                if wide and (records > RECORDS_AT_ONCE or allowance.left <= 0):
                    next_turn()
                    records, allowance = 0, Allowance(AT_ONCE)
                late = partition in self._lines or records > RECORDS_AT_ONCE or allowance.left <= 0
                settings = self._configs.settings(partition.topic)
                if late or not examine_at_once(settings, append, allowance):
                    waiting.append((partition, append, self._lines.join(partition)))
                else:
                    self._take(partition, append, refused)
            pace = Pace()
            while waiting:
                partition, append, place = waiting[0]
                place.wait()
                pace.rest()
                self._wait_for_rounds()
                self._take(partition, append, refused)
                waiting.popleft()
                self._lines.leave(partition, place)
        finally:
            for partition, _, place in waiting:
                self._lines.leave(partition, place)
        for partition, refusal in refused:
            request.answer((partition.topic.name, partition.number), refusal())

    def _take(
        self,
        partition: Partition,
        append: PartitionAppend,
        refused: list[tuple[Partition, Refusal]],
    ) -> None:
        refusal = admit(self._configs.settings(partition.topic), append, int(self._clock() * 1000))
        self._lifecycle.check()  # it may have been stopped meanwhile
        if refusal is None:
            self._leaders.append(partition, append)
        else:
            self._note_refused(partition, append)
            refused.append((partition, refusal))

    def _note_refused(self, partition: Partition, append: PartitionAppend) -> None:
        """As in Kafka, of an append to the log only the first batch counts."""
        self._producers.refused(partition, append.headers[0], append.request.writes is Writes.ADDING)

    def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool = False,
        stored: bool = False,
        counted: bool = True,
    ) -> dict[TopicPartition, Fetched]:
        fetch = Fetch(
            self._log,
            self._topics,
            self._producers,
            self._epochs,
            partitions,
            min_bytes,
            max_bytes,
            read_committed,
            stored,
        )
        self._fetches.add(fetch)
        began = time.monotonic()
        try:
            answer = fetch.run(max_wait)
        finally:
            self._fetches.discard(fetch)
            self._lifecycle.check()
        if counted:
            self.count_fetched(fetch.records, fetch.octets)
        if fetch.found_enough:
            self.traffic.fetches.add(time.monotonic() - began)
        return answer

    def count_fetched(self, records: int, octets: int) -> None:
        self.traffic.records += records
        self.traffic.octets += octets

    def watch(self) -> Watch:
        return Watch(self._topics)

    def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        leader_epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> dict[TopicPartition, ListedOffset]:
        answers: dict[TopicPartition, ListedOffset] = {}
        for key, timestamp in Pace().over(timestamps.items()):
            partition = self._led(key, leader_epochs)
            if isinstance(partition, Partition):
                answers[key] = self._list_offset(partition, timestamp, read_committed)
            else:
                answers[key] = ListedOffset(partition)
        return answers

    def epoch_ends(
        self,
        epochs: Mapping[TopicPartition, int],
        *,
        leader_epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> dict[TopicPartition, EpochEnd]:
        answers: dict[TopicPartition, EpochEnd] = {}
        for key, epoch in Pace().over(epochs.items()):
            partition = self._led(key, leader_epochs)
            if isinstance(partition, Partition):
                end = self._epochs.of(partition).end_of(epoch, partition.high_watermark)
                answers[key] = EpochEnd(None, *end)
            else:
                answers[key] = EpochEnd(partition)
        return answers

    def _led(
        self, key: TopicPartition, leader_epochs: Mapping[TopicPartition, int]
    ) -> Partition | Error | None:
        """A partition, or the error for a client that expects another leader epoch."""
        partition = self._topics.partition(*key)
        if partition is None:
            return UnknownTopicOrPartitionError
        return self._epochs.refusal(partition, leader_epochs.get(key, NO_EPOCH)) or partition

    def _list_offset(self, partition: Partition, timestamp: int, read_committed: bool) -> ListedOffset:
        end = self._producers.last_stable_offset(partition) if read_committed else partition.high_watermark
        history = self._epochs.of(partition)
        if timestamp == LATEST:
            return ListedOffset(None, end, leader_epoch=history.latest)
        if timestamp == EARLIEST:
            return ListedOffset(None, partition.log_start, leader_epoch=history.at(partition.log_start))
        if timestamp < 0 and timestamp != MAX_TIMESTAMP:
            return ListedOffset(UnsupportedVersionError)
        if not partition.high_watermark:
            return ListedOffset(None)
        try:
            found = self._latest_time(partition) if timestamp < 0 else self._since(partition, timestamp)
        except DamagedError:
            return ListedOffset(CorruptRecordError)
        except LogError as error:
            return ListedOffset(
                self._lifecycle.storage_error("looking for a timestamp in", partition.topic.name, error)
            )
        if found is None or found[0] >= end:
            return ListedOffset(None)
        offset, time = found
        return ListedOffset(
            None, offset, min(time, _LAST_TIMESTAMP), history.at(offset)
        )  # batches can say more

    def _since(self, partition: Partition, timestamp: int) -> tuple[int, int] | None:
        found = None
        for found in self._log.search_timestamp(partition.stored, timestamp, BATCHES.run):
            if found is None:
                next_turn()
        if found is None or found[0] >= partition.floor:
            return found
        # Below the floor are a deleted topic's records. Only native partitions have one, and theirs rise
        # with time: the first record above it is the answer.
        rest = self._log.read_offsets(partition.stored, partition.floor, max_bytes=0)
        return (rest[0][0], rest[0][1]) if rest else None

    def _latest_time(self, partition: Partition) -> tuple[int, int] | None:
        """The first record with the partition's largest timestamp.

        If no record has the timestamp in the headers of batches, it is found by bisection over timestamps.
        """
        high = partition.stored.largest_timestamp
        if high < 0:
            return None
        found = self._since(partition, high)
        if found is not None:
            return found
        found = self._since(partition, 0)
        low = found[1] if found else 0
        while found is not None and low < high:
            middle = (low + high + 1) // 2
            later = self._since(partition, middle)
            if later is None:
                high = middle - 1
            else:
                found, low = later, max(middle, later[1])
        return found
