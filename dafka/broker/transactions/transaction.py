"""A transactional id: its producer, and what its transaction contains.

A row of the log's table ``transactions`` holds producer id, epoch and state. While a transaction is open,
rows of the table ``transactions.open`` hold its transactional id and its contents: partitions, groups, and
the offsets that it commits. Their keys begin with the producer id, so each transaction finds its own rows,
and the commit that ends the transaction deletes them. Only this table is read in full when a broker starts,
so the row with the transactional id stays even if all topics of the transaction are deleted.

States are Kafka's: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, NamedTuple

from dafka.broker.groups.offsets import OFFSET, OFFSETS, is_key
from dafka.broker.interface.groups import TopicPartition
from dafka.broker.interface.transactions import NO_EPOCH, NO_PRODUCER_ID
from dafka.broker.topics.table import Partition
from dafka.commit.rows import Rows
from dafka.log import shapes

TRANSACTIONS = "transactions"
OPEN = "transactions.open"

LAST_EPOCH = 2**15 - 2
"""The largest epoch that a producer gets; the one after it is for fencing."""


class State(Enum):
    """The states, by Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"

    @property
    def is_open(self) -> bool:
        """Whether a transaction is in progress."""
        return self in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT)


_STATES = frozenset(state.value for state in State)
TRANSACTION_ROWS = shapes.rows(
    shapes.any_key,
    shapes.fields(
        {
            "producer_id": shapes.number,
            "epoch": shapes.number,
            "state": lambda value: shapes.text(value) and value in _STATES,
            "updated": shapes.seconds,
        },
        {
            "last_epoch": shapes.number,
            "last_producer_id": shapes.number,
            "next_producer_id": shapes.number,
            "raised": shapes.flag,
            "timeout": shapes.seconds,
            "started": shapes.seconds,
        },
    ),
)
_is_open_key = re.compile("[0-9]{1,19}/(?:t/.*|g/.*|p/[0-9a-f]{32}/[0-9]{1,6}|o/(?P<offset>.*))", re.DOTALL)


def _open_key(key: str) -> bool:
    found = _is_open_key.fullmatch(key)
    return found is not None and (found["offset"] is None or is_key(found["offset"]))


OPEN_ROWS = shapes.RowShape(
    _open_key, lambda key, value: (OFFSET if key.split("/", 2)[1] == "o" else shapes.flag)(value)
)


_FIELDS = (
    *("producer_id", "epoch", "last_producer_id", "last_epoch", "next_producer_id", "raised"),
    *("timeout", "state", "started", "updated"),
)


class Decision(NamedTuple):
    """The state of a producer once the end of its transaction is decided.

    ``epoch`` is that of the markers, and of the producer from then on. ``raised``: the end raises it (second
    part of KIP-890); producer id and epoch before are then kept for retries. ``next_producer_id``: with the
    end the producer gets this id and epoch 0, because there is no epoch behind.
    """

    epoch: int
    last_epoch: int
    raised: bool = False
    next_producer_id: int = NO_PRODUCER_ID


class Transaction:
    """One transactional id. Times are in seconds since 1970. ``busy``: a change of it is being written."""

    __slots__ = (
        "busy",
        "epoch",
        "groups",
        "last_epoch",
        "last_producer_id",
        "next_producer_id",
        "offsets",
        "partitions",
        "producer_id",
        "raised",
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
        self.last_producer_id = NO_PRODUCER_ID  # before the last end
        self.last_epoch = NO_EPOCH  # before the last InitProducerId or end; recognises its retry
        self.next_producer_id = NO_PRODUCER_ID  # from its end on
        self.raised = False  # by its last end
        self.timeout = 0.0
        self.state = State.EMPTY
        self.started = -1.0
        self.updated = 0.0
        self.partitions: dict[str, Partition] = {}  # by row name
        self.groups: set[str] = set()
        self.offsets: dict[str, list[Any]] = {}  # rows for the offsets table
        self.busy = False

    @property
    def deadline(self) -> float:
        """When it exceeds its timeout."""
        return self.started + self.timeout

    def row(self, **changed: Any) -> Rows:
        """Its row in TRANSACTIONS, with some fields changed."""
        fields = {name: changed.get(name, getattr(self, name)) for name in _FIELDS}
        fields["state"] = fields["state"].value
        return {(TRANSACTIONS, self.transactional_id): fields}

    @classmethod
    def load(cls, transactional_id: str, row: dict[str, Any]) -> Transaction:
        """A transaction from its row; :meth:`touch` adds its contents."""
        transaction = cls(transactional_id)
        for name, value in row.items():
            setattr(transaction, name, State(value) if name == "state" else value)
        return transaction

    # -- its end ----------------------------------------------------------------------------------

    @property
    def decision(self) -> Decision:
        """The decision to end it, which has been made."""
        return Decision(self.epoch, self.last_epoch, self.raised, self.next_producer_id)

    def decide(self, decision: Decision) -> None:
        """Take over what a decision says of its producer."""
        self.epoch, self.last_epoch, self.raised, self.next_producer_id = decision
        self.last_producer_id = self.producer_id

    def renewed(self) -> dict[str, int]:
        """The fields that its end changes: a new producer id, if there is one."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return {}
        return {"producer_id": self.next_producer_id, "epoch": 0, "next_producer_id": NO_PRODUCER_ID}

    def was(self, producer_id: int, epoch: int) -> bool:
        """Whether its last end has raised this epoch."""
        ended = self.raised and self.state not in (State.EMPTY, State.ONGOING)
        return ended and (producer_id, epoch) == (self.last_producer_id, self.last_epoch)

    # -- contents -------------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """The prefix of the keys of its rows in OPEN."""
        return f"{self.producer_id}/"

    def open_row(self) -> Rows:
        """The row with its transactional id, which exists while the transaction is open."""
        return {(OPEN, f"{self.prefix}t/{self.transactional_id}"): True}

    def partition_row(self, name: str) -> Rows:
        """The row of a partition."""
        return {(OPEN, f"{self.prefix}p/{name}"): True}

    def group_row(self, group: str) -> Rows:
        """The row of a group."""
        return {(OPEN, f"{self.prefix}g/{group}"): True}

    def offset_row(self, key: str, value: list[Any]) -> Rows:
        """The row of an offset; ``key`` is its key in the offsets table."""
        return {(OPEN, f"{self.prefix}o/{key}"): value}

    def touch(self, key: str, value: Any, find: Any) -> None:
        """Add the contents of a row of OPEN; ``find(name)`` returns the partition of that name, or None."""
        kind, _, rest = key[len(self.prefix) :].partition("/")
        if kind == "p":
            partition = find(rest)
            if partition is not None:
                self.partitions[rest] = partition
        elif kind == "g":
            self.groups.add(rest)
        elif kind == "o" and find("/".join(rest.rsplit("/", 2)[1:])) is not None:
            self.offsets[rest] = value

    @property
    def contents(self) -> int:
        """The number of its partitions, groups and offsets."""
        return len(self.partitions) + len(self.groups) + len(self.offsets)

    def rows_without(self) -> Rows:
        """Rows that delete all its rows in OPEN."""
        rows: Rows = dict.fromkeys(self.open_row())
        for name in self.partitions:
            rows.update(dict.fromkeys(self.partition_row(name)))
        for group in self.groups:
            rows.update(dict.fromkeys(self.group_row(group)))
        for key in self.offsets:
            rows.update(dict.fromkeys(self.offset_row(key, [])))
        return rows

    def offset_rows(self) -> Rows:
        """The rows that commit its offsets."""
        return {(OFFSETS, key): value for key, value in self.offsets.items()}

    def forget_touched(self) -> None:
        """Drop its contents after it has ended."""
        self.partitions = {}
        self.groups = set()
        self.offsets = {}

    def names(self) -> list[TopicPartition]:
        """Its partitions by topic name and number, but for those of deleted topics."""
        return sorted(
            (partition.topic.name, partition.number)
            for partition in self.partitions.values()
            if not partition.topic.deleted
        )
