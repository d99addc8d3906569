"""Copying partitions, several at a time, each record once.

Each partition is copied by an idempotent producer with an id of its own, which the checkpoint keeps, and the
sequence of a record follows from its offset in the destination. Batches are noted before they are sent, so
the destination's end says how far a killed or interrupted copy came, whatever the source has deleted since;
and a late request of a killed process is refused or recognised by its sequence. No other client may write to
the destination's topics before the switch, which is checked with every answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from kafka.errors import KafkaConnectionError, KafkaError, OffsetOutOfRangeError

from dafka.broker.interface.broker import EARLIEST, LATEST, Fetched, FetchFrom, Produced
from dafka.migrating.batches import Piece, committed, piece, sequenced
from dafka.migrating.checkpoint import Checkpoint, Progress, TopicPartition
from dafka.migrating.errors import MigrationError
from dafka.migrating.servers import Side
from dafka.protocol.batch import SEQUENCES

log = logging.getLogger(__name__)

FETCH_BYTES = 4 << 20  # of one partition at a time
FETCH_ALL_BYTES = 16 << 20  # of all partitions of a job
FETCH_SECONDS = 0.5
ATTEMPTS = 8  # without any progress, with growing pauses: some 30 seconds
PAUSE, LONGEST_PAUSE = 0.25, 2.0
PATIENCE = 60.0  # seconds that a destination may be away

Ends = Mapping[TopicPartition, int]


class Copy:
    """Copies partitions up to where they are told to; ``run`` is called once or, when following, for ever."""

    def __init__(
        self,
        source: Side,
        destination: Side,
        checkpoint: Checkpoint,
        copied: Callable[[int], object],
        stopping: threading.Event,
    ) -> None:
        self._source = source.connection
        self._destination = destination.connection
        self._checkpoint = checkpoint
        self._copied = copied  # called with numbers of records
        self._stopping = stopping

    def run(self, partitions: Sequence[Progress], ends: Ends | None, jobs: int) -> None:
        """Copy up to ``ends``, or without them until ``stopping`` is set.

        Raises MigrationError. When ``stopping`` is set all progress is in the checkpoint.
        """
        jobs = max(min(jobs, len(partitions)), 1)
        failed = threading.Event()
        with ThreadPoolExecutor(jobs) as pool:
            shares = [partitions[number::jobs] for number in range(jobs)]
            tasks = [pool.submit(self._share, share, ends, failed) for share in shares]
            wait(tasks, return_when=FIRST_EXCEPTION)
            if any(task.done() and task.exception() for task in tasks):
                failed.set()
        for task in tasks:
            task.result()

    def _share(self, partitions: Sequence[Progress], ends: Ends | None, failed: threading.Event) -> None:
        places = {one.key: one for one in partitions}
        self._synchronise(partitions)
        attempts = 0
        while not (self._stopping.is_set() or failed.is_set()):
            wanted = [one for one in places.values() if ends is None or one.source < ends[one.key]]
            if not wanted:
                return
            before = sum(one.source for one in wanted)
            try:
                self._round(wanted, ends)
            except KafkaConnectionError as error:
                log.info("tried again: %s", error)
                time.sleep(PAUSE)
                self._synchronise(wanted)
            moved = sum(one.source for one in wanted) > before
            attempts = 0 if moved or ends is None else attempts + 1
            if attempts > ATTEMPTS:
                stuck = ", ".join(f"{topic}-{number}" for topic, number in list(places)[:3])
                raise MigrationError(f"no progress with {stuck}; is a transaction open in the source?")
            if attempts > 1:
                time.sleep(PAUSE * attempts)

    def _round(self, wanted: Sequence[Progress], ends: Ends | None) -> None:
        """Fetch something of each partition, note it, and produce it."""
        # A fetch begins with the first partition asked for, so each has its turn.
        places = {one.key: one for one in sorted(wanted, key=lambda one: one.count)}
        before = {key: one.source for key, one in places.items()}
        fetched: dict[TopicPartition, Fetched] = self._source.call(
            "fetch",
            {key: FetchFrom(one.source, FETCH_BYTES) for key, one in places.items()},
            max_wait=FETCH_SECONDS,
            min_bytes=1,
            max_bytes=FETCH_ALL_BYTES,
            read_committed=True,
        )
        plans: dict[TopicPartition, tuple[list[Piece], int]] = {}
        for key, answer in fetched.items():
            one = places[key]
            if answer.error is OffsetOutOfRangeError and one.source < answer.log_start_offset:
                log.warning("%s-%d: the source let go of offsets %d to %d", *key, one.source,
                            answer.log_start_offset - 1)  # fmt: skip
                one.source = answer.log_start_offset
            elif answer.error is not None:
                log.info("%s-%d is read again: %s", *key, answer.error.__name__)
            else:
                end = ends[key] if ends is not None else 1 << 62
                plans[key] = self._plan(one, answer, end)
        self._produce(places, plans)
        self._checkpoint.save([one for one in wanted if one.source != before[one.key]])

    def _plan(self, one: Progress, answer: Fetched, end: int) -> tuple[list[Piece], int]:
        """The batches to produce, and the offset at which reading of the source continues."""
        pieces, position, destination = [], one.source, one.destination
        for header, batch in committed(answer.batches, answer.aborted):
            found = None if batch is None else piece(batch, header, position, end)
            position = max(position, min(header.next_offset, end))
            if found is not None:
                _place(one, found, destination)
                destination += len(found.offsets)
                one.planned.append((destination, position))
                pieces.append(found)
        return pieces, position

    def _produce(
        self,
        places: Mapping[TopicPartition, Progress],
        plans: Mapping[TopicPartition, tuple[list[Piece], int]],
    ) -> None:
        batches: dict[TopicPartition, list[bytes]] = {}
        for key, (pieces, position) in plans.items():
            if not pieces:
                places[key].source = position
                continue
            one = places[key]
            batches[key] = []
            sequence = one.destination - one.sequence_start
            for each in pieces:
                batches[key].append(sequenced(each.batch, one.producer_id, one.epoch, sequence % SEQUENCES))
                sequence += len(each.offsets)
        if not batches:
            return
        self._checkpoint.save([places[key] for key in batches])
        produced: dict[TopicPartition, Produced] = self._destination.call("produce", batches, -1)
        unclear = []
        for key, answer in produced.items():
            one, (_, position) = places[key], plans[key]
            if answer.error is not None:
                log.info("%s-%d: %s %s", *key, answer.error.__name__, answer.detail)
                if not getattr(answer.error, "retriable", False) and "equence" not in answer.error.__name__:
                    raise MigrationError(
                        f"{one.topic}-{one.number} is refused: {answer.error.__name__} {answer.detail}"
                    )
                unclear.append(one)
                continue
            if answer.base_offset != one.destination:
                raise MigrationError(
                    f"{one.topic}-{one.number}: record {one.count} was written at {answer.base_offset} "
                    f"instead of {one.destination}: something else writes to the destination"
                )
            written = one.planned[-1][0] - one.destination
            one.catch_up(one.planned[-1][0])
            one.source = position
            self._copied(written)
        if unclear:
            time.sleep(PAUSE)
            self._synchronise(unclear, renew=True)

    def _synchronise(self, partitions: Sequence[Progress], *, renew: bool = False) -> None:
        """Find the records that the destination has beyond the checkpoint. Partitions without a producer id,
        or with one that the destination has forgotten, get a new one. Waits for an absent destination."""
        give_up = time.monotonic() + PATIENCE
        pause = PAUSE
        while True:
            try:
                self._ask_destination(partitions, renew)
                return
            except KafkaConnectionError as error:
                if time.monotonic() > give_up or self._stopping.is_set():
                    raise MigrationError(f"the destination does not answer: {error}") from error
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _ask_destination(self, partitions: Sequence[Progress], renew: bool) -> None:
        ends = self._destination.call("list_offsets", {one.key: LATEST for one in partitions})
        for one in partitions:
            if ends[one.key].error is not None:
                raise KafkaConnectionError(f"{one.topic}-{one.number}: {ends[one.key].error.__name__}")
            end, before = ends[one.key].offset, one.destination
            if not one.catch_up(end):
                raise MigrationError(
                    f"{one.topic}-{one.number} of the destination ends at {end}, where no batch of the "
                    f"migration does that came behind {before}: something else writes to it"
                )
            self._copied(end - before)
            if one.producer_id < 0 or (renew and end == before):
                identity = self._destination.call("init_producer_id", None, 60.0)
                if identity.error is not None:
                    raise KafkaConnectionError(f"no producer id: {identity.error.__name__}")
                one.producer_id, one.epoch = identity.producer_id, identity.epoch
                one.sequence_start = one.destination
        self._checkpoint.save(partitions)


def ends_of(side: Side, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The end offsets of the committed records of partitions."""
    return _offsets(side, partitions, LATEST)


def starts_of(side: Side, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The first offsets of partitions."""
    return _offsets(side, partitions, EARLIEST)


def _offsets(side: Side, partitions: Sequence[TopicPartition], which: int) -> dict[TopicPartition, int]:
    if not partitions:
        return {}
    asked = dict.fromkeys(partitions, which)
    for attempt in range(ATTEMPTS):  # a topic that was just created is not known everywhere at once
        try:
            answers = side.connection.call("list_offsets", asked, read_committed=which == LATEST)
        except KafkaError as error:
            raise MigrationError(f"{side.name} does not say where its partitions end: {error}") from error
        failed = {key: answer.error for key, answer in answers.items() if answer.error is not None}
        if not failed:
            break
        time.sleep(PAUSE * attempt)
    else:
        (topic, number), cause = next(iter(failed.items()))
        raise MigrationError(f"{side.name}: {topic}-{number}: {cause.__name__}")
    return {key: answer.offset for key, answer in answers.items()}


def _place(one: Progress, each: Piece, destination: int) -> None:
    if isinstance(each.offsets, range):
        one.place(each.offsets[0], destination)
    else:
        for number, offset in enumerate(each.offsets):
            one.place(offset, destination + number)
