"""Native producers' partitions, as they come in from the mesh, become partitions of topics."""

from __future__ import annotations

from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.topics.table import TopicTable
from dafka.hub.hub import Hub
from dafka.log import LogClosedError, LogError, LogPartition
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)


class Adoption:
    """Registers native partitions with the table of topics after their first commit. Hub side."""

    def __init__(self, hub: Hub, topics: TopicTable, lifecycle: Lifecycle) -> None:
        self._hub = hub
        self._topics = topics
        self._lifecycle = lifecycle
        self._waiting: set[LogPartition] = set()

    def committed(self, grown: set[LogPartition]) -> None:
        """Listener of the writer: called in its green thread after each commit, must not wait.

        Wakes what waits for a partition that has grown, and has those adopted that are new.
        """
        for stored in grown:
            partition = self._topics.of_log(stored)
            if partition is not None:
                partition.wake()
            elif self._topics.wants(stored):
                if not self._waiting:
                    self._hub.spawn(self._adopt)
                self._waiting.add(stored)

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
