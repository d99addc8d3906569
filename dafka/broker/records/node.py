"""The broker on the mesh: a store that also speaks for the leaders.

The store role keeps what native producers publish and answers FETCH and GET-HEADS for everything in the log,
the leaders' partitions included. The leaders' own records do not come in from the mesh. So records that
arrive under a leader's address are another node's mistake, and are dropped: they would be appended to a
partition that only the leader numbers. Records of a deleted topic's leaders, which another store may have
kept, are dropped as well.

All HEADs come from one green thread, a slice of the leaders at a time, so that ten thousand partitions make a
steady trickle and not a burst every second.
"""

from __future__ import annotations

import math
from collections import Counter

import gevent

from dafka.broker.limits import HEAD_INTERVAL
from dafka.broker.topics.deleted import FOR_GOOD
from dafka.broker.topics.table import Partition, Topic, TopicTable
from dafka.commit.writer import Writer
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces, next_turn
from dafka.log import Log, LogPartition
from dafka.mesh import limits
from dafka.mesh.endpoint import Endpoint
from dafka.mesh.store_node import StoreNode
from dafka.protocol.commands import Claim, Command, DirectHead, Fetch, Head, Trimmed
from dafka.protocol.runs import Run

FORGOTTEN_AT_ONCE = 500
"""Partitions of a deleted topic."""

_PAUSE = 0.1  # seconds between two slices of HEADs


class BrokerNode(StoreNode):
    """A store on the broker's log that publishes what the broker's leaders have committed."""

    def __init__(
        self, hub: Hub, endpoint: Endpoint, log: Log, writer: Writer, address: bytes, topics: TopicTable
    ) -> None:
        self.discarded: Counter[str] = Counter()
        self._topics = topics
        self._heading: dict[Partition, None] = {}
        super().__init__(hub, endpoint, log, writer, address)

    def begin(self) -> None:
        super().begin()
        for topic, address, offset, sequence in Pace().over(self._topics.deleted):
            if offset != FOR_GOOD:
                self.role.trimmed(topic, address, sequence)
        self._hub.keep(self._head)

    def learn(self, partition: LogPartition) -> None:
        names = partition.topic, partition.address
        if self._topics.deleted.was_led(*names):
            return
        super().learn(partition)
        led = self._topics.of_log(partition)
        if led is not None and led.writable and not led.topic.deleted:
            self.role.lead(*names)
            self._heading[led] = None

    def publish_committed(
        self, partition: Partition, first: int, contents: list[bytes], records: int
    ) -> None:
        """Publish what a leader has committed, from sequence ``first`` on: ``records`` of clients."""
        self.count(records, sum(map(len, contents)))
        if not first:
            self._heading[partition] = None
        self.lead(Run(None, partition.address, partition.topic.octets, first, contents))

    def count(self, records: int, octets: int) -> None:
        """Records of clients that were committed, for the metrics."""
        self._counts["records_in"] += records
        self._counts["bytes_in"] += octets

    @property
    def committed(self) -> tuple[int, int]:
        """Records and octets since the start."""
        return self._counts["records_in"], self._counts["bytes_in"]

    def forget(self, topic: Topic) -> None:
        """A topic was deleted: no more HEADs for it, and a FETCH is told that the records are gone.

        Waits as a green thread if it has very many partitions.
        """
        for some in in_pieces(Pace().over(topic.partitions), FORGOTTEN_AT_ONCE):
            for partition in some:
                self._heading.pop(partition, None)
                if not partition.writable:
                    self.role.trimmed(topic.octets, partition.address, partition.next_sequence)
            self.role.forget(topic.octets, [partition.address for partition in some if partition.writable])

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

    def _head(self) -> None:
        """Publish a HEAD of each leader's partition in every HEAD_INTERVAL, some at a time."""
        while not self.closed:
            heading = list(self._heading)
            for due in in_pieces(heading, max(1, math.ceil(len(heading) * _PAUSE / HEAD_INTERVAL))):
                gevent.sleep(_PAUSE)
                for some in in_pieces(due, limits.HEADS_AT_ONCE):
                    if self.closed:
                        return  # and so is the log, maybe
                    self.endpoint.publish(self, [_head_of(one) for one in some if one in self._heading])
                    next_turn()
            if not heading:
                gevent.sleep(_PAUSE)


def _head_of(partition: Partition) -> Head:
    return Head(partition.address, partition.topic.octets, partition.stored.next_sequence - 1)
