"""The lowest sequence with which a producer has tried to begin a transaction in a partition.

A client sends batches behind each other without waiting. If the first of a transaction is refused and comes
again, a later one must not overtake it: the first would be out of order from then on. So Kafka remembers
the lowest sequence that has come for a transaction that has no records in the partition yet, and refuses
higher ones until there is a record of a transaction, or a marker (KIP-890). That is kept in memory, as in
Kafka; here of a bounded number of producers.
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.broker.limits import FIRST_SEQUENCES_KEPT, PRODUCER_ID_EXPIRATION
from dafka.protocol.batch import BatchHeader


class First(NamedTuple):
    """The lowest ``sequence`` that has come with ``epoch``, since ``time`` (ms).

    ``adding``: the first one that came would have added its partition, as newer clients' batches do.
    """

    sequence: int
    epoch: int
    adding: bool
    time: int


class FirstSequences:
    """What is remembered of the producers of all partitions, by the names of their rows."""

    def __init__(self) -> None:
        self._kept: dict[str, First] = {}  # the oldest first

    def note(self, key: str, header: BatchHeader, adding: bool, now: int) -> None:
        """A batch has come that would begin a transaction, and was not taken. ``now``: ms since 1970."""
        sequence, epoch = header.base_sequence, header.producer_epoch
        old = self.get(key, now)
        if old is None:
            self._kept.pop(key, None)
            self._kept[key] = First(sequence, epoch, adding, now)
            if len(self._kept) > FIRST_SEQUENCES_KEPT:
                del self._kept[next(iter(self._kept))]
        elif epoch > old.epoch or (epoch == old.epoch and sequence < old.sequence):
            self._kept[key] = old._replace(sequence=sequence, epoch=epoch)

    def get(self, key: str, now: int) -> First | None:
        """What is remembered of a producer."""
        found = self._kept.get(key)
        return None if found is None or now - found.time >= PRODUCER_ID_EXPIRATION * 1000 else found

    def forget(self, key: str) -> None:
        """A batch of a transaction was taken, or its marker."""
        self._kept.pop(key, None)
