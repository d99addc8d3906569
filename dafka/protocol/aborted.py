"""Which batches readers of committed records pass over: markers, and what belongs to aborted transactions.

A Fetch answer lists the aborted transactions of its batches, each by its producer id and first offset. One is
open from that offset to the next abort marker of its producer; a later transaction of the same producer is
another one. Kafka's consumers keep the same account (KIP-98, "Consumer").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from dafka.protocol.batch import BatchHeader
from dafka.protocol.batch_control import commits
from dafka.protocol.batch_reader import decode_batch


class AbortedTransactions:
    """Follows the batches of one partition in their order."""

    def __init__(self, aborted: Iterable[tuple[int, int]] = ()) -> None:
        self._coming: deque[tuple[int, int]] = deque()  # first offset and producer id, in their order
        self._known: set[tuple[int, int]] = set()
        self._open: set[int] = set()  # producers whose aborted transaction is open at this batch
        self.learn(aborted)

    def learn(self, aborted: Iterable[tuple[int, int]]) -> None:
        """Take over the (producer id, first offset) of a Fetch answer; some may be known already."""
        new = {(first, producer_id) for producer_id, first in aborted} - self._known
        if new:
            self._known |= new
            self._coming = deque(sorted([*self._coming, *new]))

    def skips(self, header: BatchHeader, batch: bytes) -> bool:
        """Whether the batch, the next one of the partition, has no records for readers.

        Raises:
            BatchError: a marker that is damaged.
        """
        while self._coming and self._coming[0][0] < header.next_offset:
            self._open.add(self._coming.popleft()[1])
        producer_id = header.producer_id
        if not header.is_control:
            return header.is_transactional and producer_id in self._open
        if producer_id not in self._open:
            decode_batch(batch)  # for its checksum
        elif not commits(batch):
            self._open.discard(producer_id)
        return True
