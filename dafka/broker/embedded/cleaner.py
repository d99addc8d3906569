"""The log cleaner: retention and compaction as each topic is configured, and the records of deleted topics.

The leaders' partitions of a deleted topic are deleted. A native producer goes on with its partition, in a new
topic of that name, so only the records below the new beginning are deleted there. Both happen after the
deletion of the topic, and a broker that starts finishes the deletions that were not completed.
"""

from __future__ import annotations

from collections.abc import Callable

import gevent.event

from dafka.broker.positions.positions import Positions
from dafka.broker.records.presence import Presence
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.topics.config_table import ConfigTable
from dafka.broker.topics.configs import TopicSettings
from dafka.broker.topics.deleted import FOR_GOOD
from dafka.broker.topics.table import Partition, TopicTable
from dafka.commit.retention import NO_RETENTION, Cleaner, Compaction, Retention, Rules, trim_in_steps
from dafka.commit.writer import Writer
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.log import Log, LogClosedError, LogError, LogPartition
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

_DROPS = 64  # partitions that are deleted in one round
_REST = 10.0  # seconds until a deletion that failed is tried again


class LogCleaner:
    """Retention, compaction, and the records of deleted topics. Hub side; runs until :meth:`close`.

    Compaction ends at the last stable offset: the transactions behind it are still open. Records that have
    positions are measured before they are deleted, and never compacted.
    """

    def __init__(
        self,
        hub: Hub,
        log: Log,
        writer: Writer,
        topics: TopicTable,
        configs: ConfigTable,
        presence: Presence,
        producers: ProducerStates,
        positions: Positions,
        interval: float,
        clock: Callable[[], float],
    ) -> None:
        self._log = log
        self._writer = writer
        self._topics = topics
        self._configs = configs
        self._presence = presence
        self._producers = producers
        self._positions = positions
        self._closed = False
        self._cleaner = Cleaner(
            hub, log, writer, self._rules, self.trimmed, interval, positions.trimming, clock
        )
        self._deleted: list[tuple[bytes, bytes, int]] = [entry[:3] for entry in Pace().over(topics.deleted)]
        self._wake = gevent.event.Event()
        self._green = hub.keep(self._delete_all)

    def configured(self) -> None:
        """Settings have changed: look at all partitions soon."""
        self._cleaner.wake()

    def look(self) -> None:
        """Look at all partitions now; waits as a green thread until that is done."""
        self._cleaner.look()

    def deleted(self, partitions: list[Partition]) -> None:
        """A topic with these partitions was deleted: delete its records. May wait as a green thread."""
        for partition in Pace().over(partitions):
            end = FOR_GOOD if partition.writable else partition.high_watermark
            self._deleted.append((partition.topic.octets, partition.address, end))
        self._wake.set()

    def trimmed(self, stored: LogPartition) -> None:
        """The beginning of a partition has moved: followers and waiting fetches are told."""
        self._presence.trimmed(stored)
        partition = self._topics.of_log(stored)
        if partition is not None:
            partition.wake()

    def trim(self, partition: Partition, offset: int) -> None:
        """Delete the records below an offset; waits as a green thread. Raises the log's errors."""
        with self._positions.trimming(partition.stored, offset):
            trim_in_steps(self._writer, partition.stored, offset)
        self.trimmed(partition.stored)

    def close(self) -> None:
        """End after the step that is under way; waits as a green thread. The writer must still run."""
        self._closed = True
        self._wake.set()
        self._cleaner.close()
        self._green.join()

    # -- the rules ------------------------------------------------------------------------------

    def _rules(self, stored: LogPartition) -> Rules | None:
        partition = self._topics.of_log(stored)
        if partition is None:
            gone = self._topics.deleted.was_led(stored.topic, stored.address)
            return None if gone else Rules(_retention(self._configs.settings(None)))
        settings = self._configs.settings(partition.topic)
        if not settings.compacted or self._positions.begun(partition.topic):
            return Rules(_retention(settings))
        return Rules(_retention(settings), self._compaction(settings, partition))

    def _compaction(self, settings: TopicSettings, partition: Partition) -> Compaction:
        def aborted(start: int, end: int) -> list[tuple[int, int, int]]:
            return [found[:3] for found in self._producers.aborted(partition, start, end)]

        return Compaction(
            settings.delete_retention_ms,
            settings.min_compaction_lag_ms,
            settings.max_compaction_lag_ms,
            settings.min_dirty_ratio,
            self._producers.last_stable_offset(partition),
            aborted,
        )

    # -- deleted topics -------------------------------------------------------------------------

    def _delete_all(self) -> None:
        while not self._closed:
            self._wake.clear()
            try:
                self._delete_some()
            except LogClosedError:
                return
            except LogError as error:
                log.warning("the records of deleted topics could not be deleted yet: %s", error)
            self._wake.wait(_REST if self._deleted else None)

    def _delete_some(self) -> None:
        pace = Pace()
        while self._deleted and not self._closed:
            some = self._deleted[:_DROPS]
            found = [(self._log.find(topic, address), end) for topic, address, end in some]
            drops = [stored for stored, end in found if stored is not None and end == FOR_GOOD]
            if drops:
                self._writer.drop_and_wait(*drops)
            for stored, end in found:
                if stored is not None and end > stored.first_offset:
                    with self._positions.trimming(stored, end):
                        trim_in_steps(self._writer, stored, end)
                    self.trimmed(stored)
            natives = [stored for stored, end in found if stored is not None and end != FOR_GOOD]
            self._topics.trimmed(natives)
            del self._deleted[: len(some)]
            pace.rest()  # nothing is waited for where nothing was ever written


def _retention(settings: TopicSettings) -> Retention:
    return Retention(settings.retention_ms, settings.retention_bytes) if settings.deleted else NO_RETENTION
