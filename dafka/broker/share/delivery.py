"""The share partitions that are being read: each with its state, and the fetches that wait for it.

Fetches that wait stand in line. New records, and ones that are available again, are offered to the first of
them; when it has taken what it wants, the rest is offered to the next. So one record wakes one fetch, however
many members wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import gevent.event
from kafka.errors import (
    CorruptRecordError,
    InvalidRecordStateError,
    InvalidRequestError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.broker import Error, Fetched, FetchFrom, TopicPartition
from dafka.broker.interface.records import RecordInterface
from dafka.broker.interface.share import Acknowledged, SharePlace
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.share import acknowledgements
from dafka.broker.share.acknowledgements import BeyondError, RenewalError
from dafka.broker.share.limits import BATCHES_AT_ONCE
from dafka.broker.share.partition import LogBatch, SharePartition
from dafka.broker.share.settings import BY_DURATION, EARLIEST, SettingsTable, ShareSettings
from dafka.broker.share.states import Saved, States, key_of
from dafka.broker.share.stored import NO_START
from dafka.broker.topics.table import Partition, Topic, TopicTable
from dafka.hub.clock import Clock
from dafka.hub.deadlines import Deadlines
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.log import DamagedError, LogError, LogWriteError
from dafka.protocol.batch import read_header

DeliveryKey = tuple[str, Partition]


class Waiter(Protocol):
    """A fetch that waits."""

    min_bytes: int

    def offered(self, delivery: Delivery) -> None:
        """There is something to take of this share partition; it stands in line for it no longer."""


class Delivery:
    """One share partition that is being read. Hub side."""

    def __init__(self, group: str, partition: Partition, deliveries: Deliveries) -> None:
        self.group = group
        self.partition = partition
        self.machine: SharePartition | None = None
        self.saved: Saved | None = None
        self.gone = False
        self.opening = gevent.event.AsyncResult()
        self.looked_at: int | None = None
        """Where the last fetch of several share partitions found this one."""
        self._deliveries = deliveries
        self._line: dict[Waiter, None] = {}
        self._holds = 0
        self._is_written = False

    @property
    def key(self) -> TopicPartition:
        """Topic and number of the partition."""
        return self.partition.topic.name, self.partition.number

    @property
    def place(self) -> SharePlace:
        """Id of the topic, and number."""
        return self.partition.topic.topic_id, self.partition.number

    @property
    def is_there(self) -> bool:
        """Whether it, which was open once, is still the share partition of its place."""
        return not self.gone and not self.partition.topic.deleted

    @property
    def settings(self) -> ShareSettings:
        """The settings of the group."""
        return self._deliveries.settings.of(self.group)

    # -- waiting ---------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether there is something to take."""
        return self.has_records(self.settings)

    def has_records(self, settings: ShareSettings) -> bool:
        """The same with the group's settings, for whoever asks this of many."""
        return self.gone or self.machine is None or self._reaches(self.next_offset(settings), settings)

    def is_worth_a_look(self, begin: int | None, settings: ShareSettings, now: float) -> bool:
        """Whether a fetch that reads from ``begin`` may find something, or something has to be taken back."""
        if self.gone or self.machine is None or self.machine.wake_at <= now:
            return True
        return self._reaches(begin, settings)

    def next_offset(self, settings: ShareSettings) -> int | None:
        """Where a fetch reads; None if nothing could be taken even if there were records."""
        return None if self.gone or self.machine is None else self.machine.next_offset(settings.terms)

    def _reaches(self, begin: int | None, settings: ShareSettings) -> bool:
        return begin is not None and begin < self._deliveries.end(self.partition, settings)

    @property
    def is_full(self) -> bool:
        """Whether nothing could be taken even if there were records."""
        return not self.gone and self.machine is not None and self.next_offset(self.settings) is None

    @property
    def is_used(self) -> bool:
        """Whether it is being opened, a fetch stands in line, or somebody has acquired records."""
        return self.machine is None or bool(self._line) or self.machine.is_held

    def stand(self, waiter: Waiter) -> None:
        """Stand in line."""
        self._line[waiter] = None

    def leave(self, waiter: Waiter) -> None:
        """Leave the line."""
        self._line.pop(waiter, None)

    def offer(self, below: int | None = None) -> None:
        """Let the next one in the line take something, if there is something.

        ``below``: the next one that waits for fewer bytes, after one for which there were too few.
        """
        if not self._line or not self.is_ready:
            return
        waiters = (one for one in self._line if below is None or one.min_bytes < below)
        waiter = next(waiters, None)
        if waiter is not None:
            del self._line[waiter]
            waiter.offered(self)

    def partition_grew(self, partition: Partition) -> None:
        """The partition has changed."""
        if partition.topic.deleted:
            self._deliveries.drop(self)
            return
        if self.machine is not None and self.machine.trim(partition.log_start):
            self.keep()
        self.offer()

    # -- changing --------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Take back what members have held for too long."""
        if self.machine is None or self.gone:
            return
        some = self.machine.expire(self._deliveries.clock(), self.settings.terms)
        if some:
            self.keep()
        self._deliveries.schedule(self)
        if some:  # each fetch calls this before it takes: nothing of that is for the next one in the line
            self.offer()

    def acknowledge(self, member: str, batches: Sequence[Acknowledged]) -> tuple[Error | None, str]:
        """Carry out acknowledgements, without waiting until they are on disk; their error, and its detail."""
        if self.machine is None or self.gone:
            return UnknownTopicOrPartitionError, ""
        try:
            self.machine.acknowledge(self._deliveries.clock(), member, batches, self.settings.terms)
        except acknowledgements.InvalidRecordStateError as error:
            return InvalidRecordStateError, str(error)
        except (BeyondError, RenewalError) as error:
            return InvalidRequestError, str(error)
        self._deliveries.schedule(self)
        return None, ""

    def written(self) -> None:
        """A round has ended: what it sets free is free, unless a fetch has still to look without it.

        Also if it failed: the next one writes everything.
        """
        self._is_written = True
        self._set_free()

    def hold(self) -> None:
        """Set nothing free until :meth:`let_go` was called as often."""
        self._holds += 1

    def let_go(self) -> None:
        """The end of a :meth:`hold`."""
        self._holds -= 1
        self._set_free()

    def _set_free(self) -> None:
        if self._is_written and not self._holds and self.machine is not None:
            self._is_written = False
            self.machine.written()
            self.offer()

    def release(self, member: str) -> bool:
        """Give back what a member has acquired, of very much a part; whether there was anything."""
        if self.machine is None or self.gone or not self.machine.release(member, self.settings.terms):
            return False
        self.keep()
        self.offer()
        return True

    def keep(self) -> None:
        """Have what has changed written."""
        if self.saved is not None:
            self.saved.post()

    def close(self) -> None:
        """The partition is gone: waiting members are told, and nothing is written any more."""
        self.gone = True
        if self.saved is not None:
            self.saved.close()
        self.partition.unwatch(self)
        line, self._line = self._line, {}
        for waiter in line:
            waiter.offered(self)


class Deliveries:
    """The share partitions of one broker that are being read. Hub side."""

    def __init__(
        self,
        hub: Hub,
        topics: TopicTable,
        producers: ProducerStates,
        records: RecordInterface,
        states: States,
        settings: SettingsTable,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.clock = clock.monotonic
        self._time = clock.time
        self._topics = topics
        self._producers = producers
        self._records = records
        self._states = states
        self._known: dict[str, dict[Partition, Delivery]] = {}
        self._deadlines: Deadlines[Delivery] = Deadlines(hub, Delivery.expire, lambda: self.clock())

    def close(self) -> None:
        """The broker stops."""
        self._deadlines.close()

    def check(self) -> None:
        """Read the clock again, after a test has set it forward."""
        self._deadlines.check()

    def settle(self) -> None:
        """The same; waits as a green thread until what is due has expired."""
        self._deadlines.settle()

    def schedule(self, delivery: Delivery) -> None:
        """Set when its next lock expires."""
        if delivery.machine is not None and not delivery.gone:
            self._deadlines.set(delivery, delivery.machine.wake_at)

    def end(self, partition: Partition, settings: ShareSettings) -> int:
        """Behind the last record that members may have."""
        if settings.read_committed:
            return self._producers.last_stable_offset(partition)
        return partition.high_watermark

    # -- opening ---------------------------------------------------------------------------------------

    def of_group(self, group: str) -> list[Delivery]:
        """The deliveries of a group."""
        return list(self._known.get(group, {}).values())

    def known(self, group: str, partition: Partition) -> Delivery | None:
        """A share partition that is being read."""
        return self._known.get(group, {}).get(partition)

    def open(self, group: str, partition: Partition) -> Delivery:
        """A share partition; begins where the group is to begin if nobody has read it yet.

        Waits as a green thread. Raises the errors of the log.
        """
        found = self.known(group, partition)
        if found is None:
            found = self._known.setdefault(group, {})[partition] = Delivery(group, partition, self)
            try:
                self._begin(found)
            except BaseException as error:
                self.drop(found)
                found.opening.set_exception(error)
                raise
            found.opening.set(None)
        found.opening.get()
        return found

    def _begin(self, delivery: Delivery) -> None:
        group, partition = delivery.group, delivery.partition
        state, keys = self._states.load(group, partition)
        prefix = key_of(group, partition.topic.topic_id, partition.number)
        epoch = 0 if state is None else state.state_epoch
        saved = Saved(self._states.writer, prefix, keys, epoch, lambda: delivery.machine, delivery.written)
        is_new = state is None or state.start == NO_START
        if state is None or is_new:
            machine = SharePartition(self._first_offset(delivery))
            machine.told = None
        else:
            machine = state.revived()
        start = machine.start
        machine.truncate(partition.high_watermark)
        machine.trim(partition.log_start)
        delivery.machine, delivery.saved = machine, saved
        if delivery.gone:  # meanwhile
            saved.close()
        else:
            partition.watch(delivery)
        error = saved.end(saved.begin(whole=is_new or start != machine.start))
        if error is not None:
            raise LogWriteError(self._states.writer.log.path, f"the state of group {group!r} was not written")

    def _first_offset(self, delivery: Delivery) -> int:
        settings, partition = delivery.settings, delivery.partition
        if settings.reset == EARLIEST:
            return partition.log_start
        if settings.reset == BY_DURATION:
            since = int((self._time() - settings.duration) * 1000)
            found = self._records.list_offsets({delivery.key: max(since, 0)})[delivery.key]
            if found.error is None and found.offset >= 0:
                return found.offset
        return partition.high_watermark

    def drop(self, delivery: Delivery) -> None:
        """Keep a share partition in memory no longer; its stored state stays."""
        of_group = self._known.get(delivery.group, {})
        if of_group.get(delivery.partition) is delivery:
            del of_group[delivery.partition]
            if not of_group:
                del self._known[delivery.group]
        delivery.close()

    def drop_and_wait(self, delivery: Delivery) -> None:
        """The same, when what is being written of it has been; waits as a green thread."""
        if delivery.saved is not None:
            delivery.saved.idle()
        self.drop(delivery)

    def drop_all(self) -> None:
        """Keep nothing in memory; waits as a green thread."""
        for group in list(self._known):
            for delivery in Pace().over(self.of_group(group), every=1):
                self.drop_and_wait(delivery)

    def forget(self, topic: Topic) -> None:
        """A topic was deleted; waits as a green thread."""
        for group in list(self._known):
            for delivery in [one for one in self.of_group(group) if one.partition.topic is topic]:
                self.drop_and_wait(delivery)

    # -- reading ---------------------------------------------------------------------------------------

    def read(
        self, delivery: Delivery, offset: int, max_bytes: int, settings: ShareSettings
    ) -> tuple[Error | None, list[bytes], list[LogBatch]]:
        """The batches from an offset on, and what they are to members. May wait as a green thread."""
        key = delivery.key
        wanted = {key: FetchFrom(offset, max_bytes)}
        try:
            fetched = self._records.fetch(
                wanted,
                max_wait=0.0,
                min_bytes=0,
                max_bytes=max_bytes,
                read_committed=settings.read_committed,
            )[key]
        except DamagedError:
            return CorruptRecordError, [], []
        except LogError:
            return KafkaStorageError, [], []
        fetched = fetched._replace(batches=fetched.batches[:BATCHES_AT_ONCE])
        return fetched.error, list(fetched.batches), list(self._described(delivery.partition, fetched))

    def _described(self, partition: Partition, fetched: Fetched) -> list[LogBatch]:
        described = []
        headers = [read_header(batch) for batch in fetched.batches]
        aborted = []
        if fetched.aborted and headers:
            begin, end = headers[0].base_offset, headers[-1].next_offset
            aborted = self._producers.aborted(partition, begin, end)
        for header in Pace().over(headers):
            first, last = header.base_offset, header.next_offset - 1
            is_record = header.is_transactional and not header.is_control
            was_aborted = is_record and any(
                one.producer_id == header.producer_id and one.first <= first and last <= one.last
                for one in aborted
            )
            described.append(LogBatch(first, last, not was_aborted))
        return described
