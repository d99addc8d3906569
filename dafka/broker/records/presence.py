"""The broker's place on the mesh: its node, once another node may meet it there.

A broker that was given a tower joins that mesh when it starts. A broker with a tower of its own is alone
until the program asks for the address of that tower. Until then there is no node, no tower and no ZeroMQ,
which saves a tenth of the start of ``dafka broker``. Records that are committed by then are in the log, and a
node begins with the log anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gevent.lock import RLock

from dafka.broker.topics.table import Partition, Topic
from dafka.log import LogPartition

if TYPE_CHECKING:
    from dafka.broker.records.node import BrokerNode


class Presence:
    """Passes events on to the node as soon as there is one. Hub side.

    ``make`` makes the node, which then begins with everything that has been committed.
    """

    def __init__(self, make: Callable[[], BrokerNode]) -> None:
        self._make = make
        self._node: BrokerNode | None = None
        self._joining = RLock()
        self._records = self._octets = 0  # committed without a node

    def join(self) -> BrokerNode:
        """The node; may wait as a green thread. Raises ValueError and OSError if it cannot be made."""
        with self._joining:
            if self._node is None:
                node = self._make()
                node.count(self._records, self._octets)
                self._node = node  # it gets changes while it learns the existing partitions
                try:
                    node.begin()
                except BaseException:
                    self._node = None
                    node.close()
                    raise
            return self._node

    def publish_committed(
        self, partition: Partition, first: int, contents: list[bytes], records: int
    ) -> None:
        """A leader has committed, from sequence ``first`` on: ``records`` of clients."""
        if self._node is None:
            self._records += records
            self._octets += sum(map(len, contents))
        else:
            contents = [*map(bytes, contents)]  # some may be views of a client's request
            self._node.publish_committed(partition, first, contents, records)

    @property
    def committed(self) -> tuple[int, int]:
        """Records and octets that were committed since the start, those of native producers included."""
        return (self._records, self._octets) if self._node is None else self._node.committed

    @property
    def joined(self) -> BrokerNode | None:
        """The node, if there is one."""
        return self._node

    def forget(self, topic: Topic) -> None:
        """A topic was deleted."""
        if self._node is not None:
            self._node.forget(topic)

    def trimmed(self, partition: LogPartition) -> None:
        """The beginning of a partition has moved."""
        if self._node is not None:
            self._node.trimmed(partition)

    def close(self) -> None:
        """Leave the mesh; waits for a :meth:`join` that is under way."""
        with self._joining:
            if self._node is not None:
                self._node.close()
