"""The broker on the mesh: a store that also speaks for the leaders.

The store role keeps what native producers publish and answers FETCH and GET-HEADS for everything in the log,
the leaders' partitions included. The leaders' own records do not come in from the mesh. So records that
arrive under a leader's address are another node's mistake, and are dropped: they would be appended to a
partition that only the leader numbers. Records of a deleted topic's leaders, which another store may have
kept, are dropped as well.

All HEADs come from one tick, a slice of the leaders at a time, so that ten thousand partitions make a
steady trickle and not a burst every second.
"""

from __future__ import annotations

import math
from collections import Counter

from dafka.broker.limits import HEAD_INTERVAL
from dafka.broker.topics.deleted import FOR_GOOD
from dafka.broker.topics.table import Partition, Topic, TopicTable
from dafka.commit.writer import Writer
from dafka.hub.hub import Hub
from dafka.log import Log
from dafka.mesh.endpoint import Endpoint
from dafka.mesh.store import StoreNode
from dafka.protocol.commands import Claim, Command, DirectHead, Fetch, Head, Trimmed
from dafka.protocol.runs import Run


class BrokerNode(StoreNode):
    """A store on the broker's log that publishes what the broker's leaders have committed."""

    def __init__(
        self, hub: Hub, endpoint: Endpoint, log: Log, writer: Writer, address: bytes, topics: TopicTable
    ) -> None:
        self.discarded: Counter[str] = Counter()
        self._topics = topics
        self._heading: list[Partition] = [
            partition
            for topic in topics
            for partition in topic.partitions
            if partition.writable and partition.next_sequence
        ]
        self._headed = 0
        super().__init__(hub, endpoint, log, writer, address)
        for led in self._heading:
            self.role.lead(led.topic.octets, led.address)
        for topic, partition, offset, sequence in topics.deleted:
            if offset == FOR_GOOD:
                self.role.forget(topic, [partition])
            else:
                self.role.trimmed(topic, partition, sequence)

    def publish_committed(
        self, partition: Partition, first: int, contents: list[bytes], records: int
    ) -> None:
        """Publish what a leader has committed, from sequence ``first`` on: ``records`` of clients."""
        self.count(records, sum(map(len, contents)))
        if not first:
            self._heading.append(partition)
        self.lead(Run(None, partition.address, partition.topic.octets, first, contents))

    def count(self, records: int, octets: int) -> None:
        """Records of clients that were committed, for the metrics."""
        self._counts["records_in"] += records
        self._counts["bytes_in"] += octets

    def forget(self, topic: Topic) -> None:
        """A topic was deleted: no more HEADs for it, and a FETCH is told that the records are gone."""
        self._heading = [partition for partition in self._heading if partition.topic is not topic]
        self.role.forget(topic.octets, [one.address for one in topic.partitions if one.writable])
        for partition in topic.partitions:
            self.role.trimmed(topic.octets, partition.address, partition.next_sequence)

    def on_run(self, run: Run) -> None:
        if self._topics.leads(run.topic, run.address):
            self.discarded["leader-address"] += len(run.contents)
        elif not self._topics.deleted.is_mentioned(run.topic, run.address):
            super().on_run(run)

    def on_command(self, command: Command) -> None:
        if isinstance(command, (Head, Trimmed)) and self._topics.leads(command.topic, command.address):
            self.discarded["leader-address"] += 1
        elif isinstance(command, Claim) and self._topics.leads(command.topic, command.partition):
            held = Claim(command.partition, self.role.address, command.topic, 0, numbering=True)
            self.endpoint.publish(self, (held,))
        elif isinstance(command, DirectHead) and self._topics.leads(command.topic, command.address):
            # Other stores tell what they have of it; none has more than its leader, and none is asked for it.
            stored = self.log.find(command.topic, command.address)
            if stored is None or command.sequence >= stored.next_sequence:
                self.discarded["leader-address"] += 1
        elif isinstance(command, Fetch):
            end = self._end_of_deleted(command)
            if command.sequence < end:
                gone = Trimmed(command.address, command.partition, command.topic, end, self.role.address)
                self.endpoint.publish(self, (gone,))
            elif not end:
                super().on_command(command)
        elif not (
            isinstance(command, (Head, DirectHead))
            and self._topics.deleted.is_mentioned(command.topic, command.address)
        ):
            super().on_command(command)

    def _end_of_deleted(self, command: Fetch) -> int:
        """The sequence that the partition ended before if it belonged to a deleted topic, else 0."""
        deleted = self._topics.deleted
        wanted = command.topic, command.partition
        return deleted.end_of(*wanted) if deleted.is_mentioned(*wanted) else 0

    def tick(self, now: float) -> None:
        super().tick(now)
        heading = self._heading
        if not heading:
            return
        count = math.ceil(len(heading) * self.tick_interval / HEAD_INTERVAL)
        due = [heading[(self._headed + step) % len(heading)] for step in range(min(count, len(heading)))]
        self._headed = (self._headed + len(due)) % len(heading)
        self.endpoint.publish(
            self,
            [
                Head(partition.address, partition.topic.octets, partition.stored.next_sequence - 1)
                for partition in due
            ],
        )
