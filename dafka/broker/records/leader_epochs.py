"""Leader epochs (KIP-101, KIP-279, KIP-320): readers notice that records were taken back.

With durability ``'process'`` a power cut takes the last seconds of a log, and their offsets are given to
other records. A client that had read further would go on in the middle of those unnoticed. So every batch
has the epoch of its leader, the epoch goes up whenever committed records may have been lost, and a partition
knows at which offset each of its epochs begins. Clients compare: with an older epoch than the leader's they
are refused until they have looked up the new one, and with epoch and offset of their last record they are
told where that epoch ends.

One number counts for all leaders of the broker. It goes up when the broker starts and the machine has gone
down since it last ran, for a power cut may take the last rows of the database without a trace, and when the
log has found a partition cut (:mod:`dafka.log.lost`). It is on the disk before anything bears it: an epoch
that was taken back itself would be given twice. A folder that was restored from a backup has lost what came
after it, epochs as well: the number goes up by RESTORED then, beyond any that were given meanwhile. The
restore is noted with it: a broker that finds it again, because the last one was killed, leaves it at that.

A partition's history is a row of the table ``epochs``, written in one transaction with the first batch of a
new epoch; without a row all its records are of epoch 0. Partitions of native producers have epoch 0 for ever:
such a producer numbers its records itself, and a store that has lost some fetches the same ones again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafka.errors import FencedLeaderEpochError, UnknownLeaderEpochError

from dafka.broker.interface.broker import NO_EPOCH, Error
from dafka.broker.topics.epoch_history import FIRST, EpochHistory
from dafka.broker.topics.table import Partition, Topic
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.log import LOST_TABLE, Log, shapes
from dafka.log.boot import begun_timeline, forget_restored, restored_ahead

RESTORED = 1000
"""By how much the epoch goes up after a restore: more often no machine goes down between two backups."""

EPOCHS = "epochs"
_TERM = "epoch"  # the table with the broker's epoch, and the run of the machine in which it was given

_LARGEST = 2**31 - 1


def _epoch(value: object) -> bool:
    return shapes.natural(value) and value <= _LARGEST  # type: ignore[operator]


_first = shapes.row_of(_epoch, shapes.natural)
EPOCH_ROWS = shapes.rows(
    re.compile("[0-9a-f]{32}/[0-9]{1,6}").fullmatch,
    lambda value: bool(value) and shapes.list_of(_first)(value),
)


class LeaderEpochs:
    """The epochs of one broker's partitions. Hub side.

    ``boot`` tells runs of the machine from each other; None where the system does not say, and then every
    start counts as one. Waits as a green thread; raises the log's errors.
    """

    def __init__(self, log: Log, writer: Writer, boot: str | None) -> None:
        self._histories = log.table(EPOCHS, EPOCH_ROWS)
        table = log.table(_TERM, shapes.named_rows(current=_epoch, boot=shapes.text, restore=shapes.natural))
        known = table.get("current")
        fresh = known is None and not log.names()
        lost = len(log.table(LOST_TABLE)) > 0
        down = boot is None or table.get("boot") != boot
        self.current = 0 if known is None else int(known)
        restored = restored_ahead(log.path)
        restore = begun_timeline(log.path)
        self._path = log.path
        self.restored = restored > 0
        """Whether the folder is a backup's, and this is its first broker."""
        if restore and table.get("restore") == restore:
            restored = 0  # it has gone up for it
        if not fresh and (lost or down or restored):
            self.current = min(self.current + (RESTORED * restored or 1), _LARGEST)
        if known != self.current or down or restored:
            values: Rows = {(_TERM, "current"): self.current, (_TERM, "boot"): boot or ""}
            if restored:
                values[_TERM, "restore"] = restore
            writer.put_and_wait(values)
            log.space.checkpoint()  # which syncs the disk

    def forget_restored(self) -> None:
        """All is done that the first broker of a restored folder has to do."""
        if self.restored:
            forget_restored(self._path)

    def of(self, partition: Partition) -> EpochHistory:
        """A partition's history, which for a leader includes the epoch that it leads in."""
        if partition.epochs is None:
            row = self._histories.get(_key(partition)) if partition.writable else None
            partition.epochs = FIRST if row is None else EpochHistory.of(row)
        if not partition.writable or partition.epochs.latest == self.current:
            return partition.epochs
        return partition.epochs.begun(self.current, partition.high_watermark, partition.log_start)

    def latest(self, partition: Partition) -> int:
        """The epoch in which a partition is led."""
        return self.current if partition.writable else FIRST.latest

    def refusal(self, partition: Partition, epoch: int) -> Error | None:
        """The error for a client that expects ``epoch`` of the leader; NO_EPOCH: it expects none."""
        current = self.latest(partition)
        if epoch in (NO_EPOCH, current):
            return None
        return FencedLeaderEpochError if epoch < current else UnknownLeaderEpochError

    def begin(self, partition: Partition, rows: Rows) -> EpochHistory | None:
        """Called when a leader appends: if it is the first time in this epoch, the partition's history from
        then on, whose row is added to ``rows``. It counts when these are committed."""
        history = self.of(partition)
        if history is partition.epochs:
            return None
        rows[EPOCHS, _key(partition)] = history.row()
        return history

    def places_of(self, topic: Topic) -> Iterator[tuple[str, str]]:
        """The rows with the histories of a topic's partitions."""
        return ((EPOCHS, key) for key in self._histories.keys(f"{topic.topic_id.hex}/"))


def _key(partition: Partition) -> str:
    return f"{partition.topic.topic_id.hex}/{partition.number}"
