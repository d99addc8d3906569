"""Native producers' partitions, as they come in from the mesh, become partitions of topics."""

from __future__ import annotations

from collections.abc import Iterator

from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.topics.table import Partition, TopicTable
from dafka.broker.topics.topic import Watcher
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, next_turn
from dafka.log import LogClosedError, LogError, LogPartition
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

WOKEN_AT_ONCE = 1000
"""Watchers of partitions that are called in the turn of a commit, and some more; others little by little."""


class Adoption:
    """Registers native partitions with the table of topics after their first commit. Hub side."""

    def __init__(self, hub: Hub, topics: TopicTable, lifecycle: Lifecycle) -> None:
        self._hub = hub
        self._topics = topics
        self._lifecycle = lifecycle
        self._waiting: set[LogPartition] = set()
        self._unwoken: dict[Partition, None] = {}  # they have grown, and their watchers are called later

    def committed(self, grown: set[LogPartition]) -> None:
        """Listener of the writer: called in its green thread after each commit, must not wait.

        Wakes what waits for a partition that has grown, and has those adopted that are new.
        """
        left = WOKEN_AT_ONCE
        for stored in grown:
            partition = self._topics.of_log(stored)
            if partition is not None:
                watchers = partition.watchers
                left -= len(watchers)
                if left < 0:
                    self._wake_later(partition)
                    continue
                for watcher in watchers:
                    watcher.partition_grew(partition)
            elif self._topics.wants(stored):
                if not self._waiting:
                    self._hub.spawn(self._adopt)
                self._waiting.add(stored)

    def _wake_later(self, partition: Partition) -> None:
        if not self._unwoken:
            self._hub.spawn(self._wake_rest)
        self._unwoken[partition] = None

    def _wake_rest(self) -> None:
        next_turn()  # this one has had the commit, and has woken many
        while self._unwoken:
            try:
                for partition, watcher in Pace().over(self._unwoken_watchers()):
                    watcher.partition_grew(partition)
            except Exception:
                log.exception("what waits for a partition could not be woken")

    def _unwoken_watchers(self) -> Iterator[tuple[Partition, Watcher]]:
        for partition in list(self._unwoken):
            del self._unwoken[partition]  # if it grows from now on, its watchers are called again
            for watcher in partition.watchers:
                yield partition, watcher

    def _adopt(self) -> None:
        new, self._waiting = self._waiting, set()
        if not self._lifecycle.running:
            return  # the next start finds them in the log
        try:
            for topic in self._topics.adopt(new):
                log.info("topic %r has %d partitions", topic.name, len(topic.partitions))
        except LogClosedError:
            pass
        except LogError as error:
            # Nothing is lost: the records are in the log, and their next commit brings them here again.
            log.error("native partitions could not be registered: %s", error)
