"""A transactional id: who its producer is, and what its transaction has touched.

A row of the log's table ``transactions`` holds identity and state. While a transaction is open, rows of the
table ``transactions.open`` say whose it is and what it has touched: partitions, groups, and the offsets that
become a group's when it commits. They begin with the producer's id, so a transaction finds its own, and they
go in the same commit that ends it. Only that table is read in full when a broker starts, so the row with the
transactional id stays whatever becomes of the topics that the transaction has touched.

States are Kafka's: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from dafka.broker.groups.offsets import OFFSETS
from dafka.broker.interface.groups import TopicPartition
from dafka.broker.interface.transactions import NO_EPOCH, NO_PRODUCER_ID
from dafka.broker.topics.table import Partition
from dafka.commit.rows import Rows

TRANSACTIONS = "transactions"
OPEN = "transactions.open"

LAST_EPOCH = 2**15 - 2
"""The largest epoch that a producer is given; the one behind it fences it."""


class State(Enum):
    """Kafka's names of states."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"

    @property
    def is_open(self) -> bool:
        """Whether there is something that still has to end."""
        return self in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT)


class Transaction:
    """One transactional id. Times are seconds since 1970; ``busy`` while a change is being written."""

    __slots__ = (
        "busy",
        "epoch",
        "groups",
        "last_epoch",
        "offsets",
        "partitions",
        "producer_id",
        "started",
        "state",
        "timeout",
        "transactional_id",
        "updated",
    )

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_EPOCH
        self.last_epoch = NO_EPOCH  # what the producer had before the last bump that it asked for
        self.timeout = 0.0
        self.state = State.EMPTY
        self.started = -1.0
        self.updated = 0.0
        self.partitions: dict[str, Partition] = {}  # by their names in rows
        self.groups: set[str] = set()
        self.offsets: dict[str, list[Any]] = {}  # rows of the offsets' table that come with the commit
        self.busy = False

    @property
    def deadline(self) -> float:
        """When it has lasted too long."""
        return self.started + self.timeout

    def row(self, **changed: Any) -> Rows:
        """The row that it has, with some fields changed."""
        fields = {
            name: changed.get(name, getattr(self, name))
            for name in ("producer_id", "epoch", "last_epoch", "timeout", "state", "started", "updated")
        }
        fields["state"] = fields["state"].value
        return {(TRANSACTIONS, self.transactional_id): fields}

    @classmethod
    def load(cls, transactional_id: str, row: dict[str, Any]) -> Transaction:
        """A transaction from its row; what it has touched is added by :meth:`touch`."""
        transaction = cls(transactional_id)
        for name, value in row.items():
            setattr(transaction, name, State(value) if name == "state" else value)
        return transaction

    # -- what it has touched --------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """How its rows in OPEN begin."""
        return f"{self.producer_id}/"

    def open_row(self) -> Rows:
        """The row that says that the transaction is open, for as long as it is."""
        return {(OPEN, f"{self.prefix}t/{self.transactional_id}"): True}

    def partition_row(self, name: str) -> Rows:
        """The row that notes a partition."""
        return {(OPEN, f"{self.prefix}p/{name}"): True}

    def group_row(self, group: str) -> Rows:
        """The row that notes a group."""
        return {(OPEN, f"{self.prefix}g/{group}"): True}

    def offset_row(self, key: str, value: list[Any]) -> Rows:
        """The row that notes an offset; ``key`` is its row in the offsets' table."""
        return {(OPEN, f"{self.prefix}o/{key}"): value}

    def touch(self, key: str, value: Any, find: Any) -> None:
        """Note what a row of OPEN says; ``find(name)`` is the partition of that name, or None."""
        kind, _, rest = key[len(self.prefix) :].partition("/")
        if kind == "p":
            partition = find(rest)
            if partition is not None:
                self.partitions[rest] = partition
        elif kind == "g":
            self.groups.add(rest)
        elif kind == "o":
            self.offsets[rest] = value

    def rows_without(self) -> Rows:
        """What deletes its rows in OPEN."""
        rows: Rows = dict.fromkeys(self.open_row())
        for name in self.partitions:
            rows.update(dict.fromkeys(self.partition_row(name)))
        for group in self.groups:
            rows.update(dict.fromkeys(self.group_row(group)))
        for key in self.offsets:
            rows.update(dict.fromkeys(self.offset_row(key, [])))
        return rows

    def offset_rows(self) -> Rows:
        """What makes its offsets those of their groups."""
        return {(OFFSETS, key): value for key, value in self.offsets.items()}

    def forget_touched(self) -> None:
        """It has ended."""
        self.partitions = {}
        self.groups = set()
        self.offsets = {}

    def names(self) -> list[TopicPartition]:
        """Its partitions as clients name them."""
        return sorted(
            (partition.topic.name, partition.number)
            for partition in self.partitions.values()
            if not partition.topic.deleted
        )
