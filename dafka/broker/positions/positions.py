"""The positions of all partitions of a broker: where they begin, when they are stored, and what they forbid.

A partition's positions begin when they are first asked for, with a checkpoint that is committed before
anything is told. Compaction and positions exclude each other: a compacted topic gets none, and a topic that
has some is not made compacted (:meth:`Positions.begun`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import gevent
import gevent.event
from kafka.errors import PolicyViolationError, UnknownTopicOrPartitionError

from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.positions import PositionsInterface
from dafka.broker.limits import CHECKPOINT_INTERVAL
from dafka.broker.positions.checkpoints import (
    POSITIONS,
    Checkpoint,
    Checkpoints,
    first_rows,
    has_positions,
    places_of,
)
from dafka.broker.positions.partition import MeasuredPartition
from dafka.broker.positions.reading import OctetCache, Reading
from dafka.broker.records.producer_state import ProducerStates, row_name
from dafka.broker.topics.config_table import ConfigTable
from dafka.broker.topics.table import Partition, Topic, TopicTable
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces
from dafka.log import Log, LogClosedError, LogError, LogPartition
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

_STORED_AT_ONCE = 100  # partitions whose checkpoints are written in one round


class Positions(PositionsInterface):
    """The positions of the partitions of one log. Hub side; runs until :meth:`close`.

    ``check()`` raises BrokerStoppedError if the broker is stopped.
    """

    def __init__(
        self,
        hub: Hub,
        log: Log,
        writer: Writer,
        topics: TopicTable,
        configs: ConfigTable,
        producers: ProducerStates,
        check: Callable[[], None],
    ) -> None:
        self._hub = hub
        self._log = log
        self._writer = writer
        self._topics = topics
        self._configs = configs
        self._producers = producers
        self._check = check
        self._cache = OctetCache()
        self._open: dict[Partition, MeasuredPartition] = {}
        self._unstored: dict[MeasuredPartition, None] = {}
        self._storing: gevent.Greenlet | None = None
        self._closed = False

    def open(self, topic: str, partition: int, *, base: int | None = None) -> MeasuredPartition:
        self._check()
        found = self._topics.partition(topic, partition)
        if found is None:
            raise UnknownTopicOrPartitionError(f"there is no partition {partition} of a topic {topic!r}")
        if found not in self._open and not self._has(found):
            run_to_completion(self._hub, self._begin, found, base or 0)
        positions = self._of(found)
        if base is not None and positions.begin != base:
            raise PolicyViolationError(
                f"the positions of ({topic!r}, {partition}) began at {positions.begin} and not at {base}; "
                "they never change"
            )
        return positions

    def partitions(self) -> list[tuple[str, int]]:
        self._check()
        return [
            (partition.topic.name, partition.number)
            for topic in Pace().over(list(self._topics))
            for partition in topic.partitions
            if not topic.deleted and self._has(partition)
        ]

    def begun(self, topic: Topic) -> bool:
        """Whether the positions of one of its partitions have begun: it must not become compacted."""
        return has_positions(self._log, topic.topic_id.hex)

    @contextmanager
    def trimming(self, stored: LogPartition, offset: int) -> Iterator[None]:
        """For a ``with`` block that deletes the records below ``offset``; waits until they are measured.

        Raises the log's errors.
        """
        with ExitStack() as undo:
            partition = self._topics.of_log(stored)
            if partition is not None and self._has(partition):
                try:
                    undo.enter_context(self._of(partition).deleting(offset))
                except UnknownTopicOrPartitionError:
                    pass  # deleted, and its positions with it
                except BrokerStoppedError as error:
                    raise LogClosedError(self._log.path, str(error)) from error
            yield

    def forget(self, topic: Topic) -> None:
        """A topic was deleted."""
        gone = {one: self._open.pop(one) for one in Pace().over(topic.partitions) if one in self._open}
        for positions in gone.values():
            self._unstored.pop(positions, None)
            positions.wake()
        if gone:
            self._cache.forget(gone)

    def places_of(self, topic: Topic) -> Iterator[tuple[str, str]]:
        """The rows about a topic's partitions."""
        return places_of(self._log, topic.topic_id.hex + "/")

    def close(self) -> None:
        """Store what was measured and end all waiting; waits as a green thread. The writer must still run."""
        self._closed = True
        if self._storing is not None:
            self._storing.kill()
        for positions in self._open.values():
            positions.wake()
        try:
            self._store_all()
        except LogError as error:
            log.warning("positions were not stored, and are measured again: %s", error)

    # -- beginning ------------------------------------------------------------------------------

    def _begin(self, partition: Partition, base: int) -> None:
        topic = partition.topic
        with self._topics.unchanging(), self._configs.unchanging():
            if topic.deleted:
                raise UnknownTopicOrPartitionError(f"topic {topic.name!r} was deleted")
            if self._configs.settings(topic).compacted:
                raise PolicyViolationError(
                    f"topic {topic.name!r} is compacted (cleanup.policy), so its records have no positions "
                    "for ZPER: compaction would change them"
                )
            if not self._has(partition):
                begin = Checkpoint(partition.log_start, base)
                self._writer.put_and_wait(first_rows(row_name(partition), begin))

    def _has(self, partition: Partition) -> bool:
        return has_positions(self._log, row_name(partition))

    def _of(self, partition: Partition) -> MeasuredPartition:
        if partition in self._open:
            return self._open[partition]
        try:
            checkpoints = Checkpoints(self._log, row_name(partition))
        except LookupError as error:
            raise UnknownTopicOrPartitionError(f"topic {partition.topic.name!r} was deleted") from error
        if partition.topic.deleted:  # meanwhile: nobody would forget it any more
            raise UnknownTopicOrPartitionError(f"topic {partition.topic.name!r} was deleted")
        positions = self._open.get(partition)  # another green thread may have been faster
        if positions is None:
            positions = self._open[partition] = MeasuredPartition(
                partition,
                checkpoints,
                Reading(self._log, self._producers, partition, self._cache),
                self._producers,
                self._check,
                self._commit,
                self._changed,
            )
        return positions

    # -- storing --------------------------------------------------------------------------------

    def _commit(self, partition: Partition, rows: Rows) -> None:
        def check() -> None:
            if partition.topic.deleted:
                raise UnknownTopicOrPartitionError(f"topic {partition.topic.name!r} was deleted")

        outcome = gevent.event.AsyncResult()
        self._writer.put(
            rows, lambda error: outcome.set(None) if error is None else outcome.set_exception(error), check
        )
        outcome.get()

    def _changed(self, positions: MeasuredPartition) -> None:
        self._unstored[positions] = None
        if self._storing is None and not self._closed:
            self._storing = self._hub.spawn(self._store_later)

    def _store_later(self) -> None:
        try:
            while self._unstored:
                gevent.sleep(CHECKPOINT_INTERVAL)
                try:
                    self._store_all()
                except LogClosedError:
                    return
                except LogError as error:
                    log.warning("positions could not be stored yet: %s", error)
        finally:
            self._storing = None

    def _store_all(self) -> None:
        failed: Exception | None = None
        for some in in_pieces(Pace().over(list(self._unstored)), _STORED_AT_ONCE):
            greens = [gevent.spawn(_store, positions) for positions in some]  # in one round
            gevent.joinall(greens)
            for positions, green in zip(some, greens, strict=True):
                failed = failed or green.value
                if positions.is_stored:
                    self._unstored.pop(positions, None)
        if failed is not None:
            raise failed


def _store(positions: MeasuredPartition) -> Exception | None:
    try:
        if not positions.is_stored:
            positions.store()
    except UnknownTopicOrPartitionError:
        return None
    except LogError as error:
        return error
    return None


__all__ = ["POSITIONS", "Positions"]
