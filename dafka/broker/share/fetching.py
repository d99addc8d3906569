"""One ShareFetch: it takes what there is of its partitions, or stands in line for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

import gevent
import gevent.event
from kafka.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError

from dafka.broker.interface.share import Acquired, SharedRecords, ShareFetchLimits, SharePlace
from dafka.broker.share import limits
from dafka.broker.share.acquisition import Acquisition
from dafka.broker.share.delivery import Deliveries, Delivery
from dafka.broker.share.partition import LogBatch
from dafka.hub.turns import Pace


class ShareFetch:
    """A fetch of one member. Hub side; :meth:`run` waits as a green thread."""

    def __init__(self, deliveries: Deliveries, member: str, wanted: ShareFetchLimits) -> None:
        self._deliveries = deliveries
        self._member = member
        self._wanted = wanted
        self.min_bytes = wanted.min_bytes
        self._bytes = 0
        self._records = 0
        self._most = min(max(wanted.max_bytes, 0), limits.FETCH_BYTES)
        self._answers: dict[SharePlace, SharedRecords] = {}
        self._places: dict[Delivery, SharePlace] = {}
        self._offered: dict[Delivery, None] = {}
        self._wake = gevent.event.Event()
        self._abandoned = False

    def run(
        self,
        opened: Mapping[Delivery, SharePlace],
        opening: Iterable[tuple[Delivery, SharePlace]],
        settled: Callable[[], Collection[Delivery]],
        wait: bool,
    ) -> dict[SharePlace, SharedRecords]:
        """Acquire records of these share partitions, in their order; waits if there are none.

        As in Kafka those that are still being opened are read only if there is nothing in the others, and up
        to the first with records; and what was acknowledged with this fetch counts only when it is on disk.
        ``settled()`` waits for that, and returns the share partitions that it was about.
        """
        self._places = dict(opened)
        ends = time.monotonic() + (self._wanted.max_wait if wait else 0.0)
        try:
            self._take(list(self._places), ends)
            for delivery, place in () if self._is_over else opening:
                self._places[delivery] = place
                self._take([delivery], ends)
                if self._is_over:
                    break
            if not self._is_over:
                self._take([one for one in settled() if one in self._places], ends)
            while not self._is_over:
                left = ends - time.monotonic()
                if left <= 0:
                    break
                self._stand()
                self._wake.wait(left)
                self._wake.clear()
                offered, self._offered = list(self._offered), {}
                self._take(offered, ends)
            if not self._answers and self.min_bytes > 1 and not self._abandoned:
                self._take(list(self._places), 0.0)  # all that is available now, even if it is less
        finally:
            try:
                _each(self._places, lambda delivery: delivery.leave(self))
            finally:  # the next one in the line gets what this one leaves
                _each(self._offered, lambda delivery: delivery.offer())
        return self._answers

    @property
    def _is_over(self) -> bool:
        return bool(self._answers) or self._abandoned

    def looked_at(self) -> list[SharePlace]:
        """The partitions that it has looked at, as in Kafka not those that are full. Waits as a green
        thread."""
        return [
            place
            for delivery, place in Pace().over(self._places.items())
            if place in self._answers or not delivery.is_full
        ]

    def offered(self, delivery: Delivery) -> None:
        """There is something to take."""
        self._offered[delivery] = None
        self._wake.set()

    def abandon(self) -> None:
        """The broker stops, or nobody wants the records any more."""
        self._abandoned = True
        self._wake.set()

    def _stand(self) -> None:
        """Stand in the lines of all share partitions that have nothing."""
        settings = None
        for delivery in Pace().over(self._places):
            settings = settings or delivery.settings
            if delivery in self._offered:
                continue
            if self.min_bytes <= 1 and delivery.has_records(settings):
                self.offered(delivery)
            else:
                delivery.stand(self)

    def _take(self, deliveries: Collection[Delivery], ends: float) -> None:
        pace = Pace()
        part = self._most
        left = iter(deliveries)
        try:
            if self.min_bytes > 1 and len(self._places) > 1 and self._is_enough():
                deliveries, ends = list(self._places), 0.0
            if len(deliveries) > 1:
                in_turn, part = self._in_turn(deliveries)
                left = iter(in_turn)
            for delivery in pace.over(left, every=1):
                if self._records >= self._wanted.max_records or (self._bytes >= self._most and self._records):
                    self._offered[delivery] = None  # for the next one
                    return
                answer = self._take_from(delivery, time.monotonic() >= ends, part)
                if answer is not None:
                    self._answers[self._places[delivery]] = answer
        finally:
            self._offered.update(dict.fromkeys(left))

    def _is_enough(self) -> bool:
        """Whether there are as many octets as were asked for, in all share partitions together."""
        found = 0
        for delivery in Pace().over(list(self._places), every=1):
            machine, settings = delivery.machine, delivery.settings
            begin = None if delivery.gone or machine is None else machine.next_offset(settings.terms)
            if begin is not None and begin < self._deliveries.end(delivery.partition, settings):
                _, batches, _ = self._deliveries.read(delivery, begin, self.min_bytes, settings)
                found += sum(map(len, batches))
                if found >= self.min_bytes:
                    return True
        return False

    def _in_turn(self, deliveries: Collection[Delivery]) -> tuple[list[Delivery], int]:
        """The order in which something is taken of them, and how many octets of each.

        As in Kafka first come the ones at which a fetch has looked before and left as they were, and all of
        which something can be acquired if there are records have equal parts. Those without any are left out:
        of a session's hundreds mostly all but one.
        """
        left: list[Delivery] = []
        others: list[Delivery] = []
        full: list[Delivery] = []
        parts = 0
        settings, now = next(iter(deliveries)).settings, self._deliveries.clock()  # all are of one group
        for delivery in Pace().over(deliveries):
            begin = delivery.next_offset(settings)
            parts += begin is not None
            in_turn = full if begin is None else left if begin == delivery.looked_at else others
            if begin is not None:
                delivery.looked_at = begin
            if delivery.is_worth_a_look(begin, settings, now):
                in_turn.append(delivery)
        return left + others + full, max(self._most // max(parts, 1), 1)

    def _goes_on(self, taking: Acquisition | None) -> bool:
        """Whether an acquisition, None before it has begun, is to take more."""
        if taking is not None and (taking.is_complete or taking.has_enough):
            return False
        return self._records < self._wanted.max_records

    def _take_from(self, delivery: Delivery, is_last: bool, part: int) -> SharedRecords | None:
        machine = delivery.machine
        if delivery.gone or machine is None:
            return SharedRecords(UnknownTopicOrPartitionError)
        settings, partition = delivery.settings, delivery.partition
        batches: list[bytes] = []
        taking: Acquisition | None = None
        enough, before, failed = True, -1, None
        pace = Pace()
        most = min(self._most, self._bytes + part)
        while self._goes_on(taking) and (self._bytes < most or not self._records):
            pace.rest()
            delivery.expire()
            begin = machine.next_offset(settings.terms)
            if begin is None or begin <= before or begin >= self._deliveries.end(partition, settings):
                break  # records given back meanwhile are for the next fetch: batches are in order
            before = begin
            failed, read, described = self._deliveries.read(
                delivery, begin, max(min(limits.READ_BYTES, most - self._bytes), 1), settings
            )
            if delivery.gone:
                failed = UnknownTopicOrPartitionError
            elif failed is OffsetOutOfRangeError and machine.trim(partition.log_start):
                failed = None
                continue
            if failed is not None:
                break
            if self._bytes and sum(map(len, read)) > most - self._bytes:
                break  # the log gives one batch at least, whatever its size
            is_part = len(read) >= limits.BATCHES_AT_ONCE
            if not (is_last or is_part) and self._bytes + sum(map(len, read)) < self.min_bytes:
                enough = False
                break
            if taking is None:
                taking = machine.begin(
                    self._member,
                    begin,
                    settings.terms,
                    records=self._wanted.max_records - self._records,
                    strict=self._wanted.strict,
                    batch_size=self._wanted.batch_size,
                )
            count, had = taking.count, max(len(taking.acquired) - 1, 0)  # the last one may become longer
            machine.acquire(self._deliveries.clock(), taking, begin, described)
            self._deliveries.schedule(delivery)
            if taking.count > count:
                taken = _with_acquired(read, described, taking.acquired[had:])
                batches += taken
                self._bytes += sum(map(len, taken))
                # Aborted records before the last one count, as in Kafka.
                last = taking.acquired[-1].last
                passed = (one for one in described if not one.deliver and one.last < last)
                self._records += taking.count - count
                self._records += sum(one.last - max(one.first, begin) + 1 for one in passed)
        acquired = taking.acquired if taking is not None else []
        if failed is not None and not acquired:
            return SharedRecords(failed)  # otherwise of the next fetch
        delivery.keep()
        delivery.offer(None if enough else self.min_bytes)
        return SharedRecords(None, None, _joined(batches), acquired) if acquired else None


def _each(deliveries: Iterable[Delivery], act: Callable[[Delivery], None]) -> None:
    """For each of them, with pauses; without, for those that are left when the green thread is ended in one.

    A fetch that stays in a line is offered what others wait for.
    """
    left = iter(deliveries)
    try:
        for delivery in Pace().over(left):
            act(delivery)
    finally:
        for delivery in left:
            act(delivery)


def _with_acquired(batches: list[bytes], described: list[LogBatch], acquired: list[Acquired]) -> list[bytes]:
    """The batches that have acquired records."""
    found = []
    position = 0
    for content, batch in zip(batches, described, strict=True):
        while position < len(acquired) and acquired[position].last < batch.first:
            position += 1
        if position < len(acquired) and acquired[position].first <= batch.last:
            found.append(content)
    return found


def _joined(batches: list[bytes]) -> list[bytes]:
    """A batch that was read twice, because a part of it was acquired each time, comes once."""
    found: list[bytes] = []
    for content in batches:
        if not found or found[-1][:8] != content[:8]:
            found.append(content)
    return found
