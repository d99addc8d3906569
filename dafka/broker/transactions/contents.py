"""The contents of a transaction: partitions, groups, and the offsets of groups.

Each is written before its client is answered. The first one begins the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import (
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    PolicyViolationError,
    ProducerFencedError,
    StaleMemberEpochError,
    TransactionAbortableError,
    UnsupportedVersionError,
)

from dafka.broker.groups.coordinator import Coordinator
from dafka.broker.groups.offsets import GroupOffsets
from dafka.broker.interface.groups import NO_MEMBER, CommittedOffset, Error, TopicPartition
from dafka.broker.interface.transactions import Writes
from dafka.broker.limits import COMMIT_OFFSETS, TRANSACTION_GROUPS
from dafka.broker.topics.table import Partition
from dafka.broker.transactions.epoch_ends import RAISING_KEPT
from dafka.broker.transactions.table import TransactionTable
from dafka.broker.transactions.timeouts import Timeouts
from dafka.broker.transactions.transaction import State, Transaction
from dafka.commit.rows import Rows
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.lines import Lines
from dafka.hub.turns import Pace, in_pieces

_Producer = tuple[str, int, int]  # transactional id, producer id and epoch
_Member = tuple[int, str, str | None]  # of a group: generation, member id and instance id


class Contents:
    """Adds to the transactions of one broker. Hub side; methods wait as green threads."""

    def __init__(
        self,
        hub: Hub,
        table: TransactionTable,
        offsets: GroupOffsets,
        groups: Coordinator,
        timeouts: Timeouts,
        version: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        """``version()`` is the level of the feature transaction.version."""
        self._hub = hub
        self._table = table
        self._offsets = offsets
        self._groups = groups
        self._timeouts = timeouts
        self._version = version
        self._clock = clock
        self.lines: Lines[str] = Lines()  # of writes that add to the transaction of an id

    # -- partitions -----------------------------------------------------------------------------

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, named: Mapping[str, Partition]
    ) -> tuple[Error | None, list[Partition]]:
        """The error of the partitions, by the names of their rows, but for those that were added."""
        transaction = self._table.own(transactional_id, producer_id, epoch)
        if not isinstance(transaction, Transaction):
            return transaction, []
        known = [partition for name, partition in named.items() if name in transaction.partitions]
        return TransactionAbortableError, known

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        named: Mapping[str, Partition],
        raising: bool,
    ) -> tuple[Error | None, list[Partition]]:
        """Add partitions, by the names of their rows; an error, and those that are added all the same."""
        return run_to_completion(
            self._hub, self._add_partitions, transactional_id, producer_id, epoch, named, raising
        )

    def _add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        named: Mapping[str, Partition],
        raising: bool,
    ) -> tuple[Error | None, list[Partition]]:
        """Write the partitions that a transaction adds; an error, and those that are written all the same."""
        transaction = self._table.own(transactional_id, producer_id, epoch)
        added: list[Partition] = []
        if not isinstance(transaction, Transaction):
            return transaction, added
        has_all = transaction.state is State.ONGOING and named.keys() <= transaction.partitions.keys()
        if raising and not has_all and self._version() < RAISING_KEPT:
            return UnsupportedVersionError, added
        for some in in_pieces(named, COMMIT_OFFSETS):  # the first ones begin the transaction, if none is open
            rows: Rows = {}
            for name in some:
                if name not in transaction.partitions:
                    rows.update(transaction.partition_row(name))
            error = self._note(transaction, rows)
            if error is not None:
                return error, added
            transaction.partitions.update((name, named[name]) for name in some)
            added.extend(named[name] for name in some)
        return None, added

    # -- groups and offsets -----------------------------------------------------------------------

    def add_group(
        self, transactional_id: str, producer_id: int, epoch: int, group: str, raising: bool = False
    ) -> Error | None:
        """Add a group."""
        return run_to_completion(
            self._hub, self._add_group, transactional_id, producer_id, epoch, group, raising
        )

    def _add_group(
        self, transactional_id: str, producer_id: int, epoch: int, group: str, raising: bool
    ) -> Error | None:
        transaction = self._table.own(transactional_id, producer_id, epoch)
        if not isinstance(transaction, Transaction):
            return transaction
        has_it = transaction.state is State.ONGOING and group in transaction.groups
        if raising and not has_it and self._version() < RAISING_KEPT:
            return UnsupportedVersionError
        if group not in transaction.groups and len(transaction.groups) >= TRANSACTION_GROUPS:
            return PolicyViolationError
        rows = {} if group in transaction.groups else transaction.group_row(group)
        error = self._note(transaction, rows)
        if error is None:
            transaction.groups.add(group)
        return error

    def commit_offsets(
        self,
        who: _Producer,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        member: _Member,
        writes: Writes,
    ) -> dict[TopicPartition, Error | None]:
        """Add offsets of a group: :meth:`TransactionInterface.commit_transaction_offsets`."""
        if writes is not Writes.ADDING:
            return self._commit_offsets(who, group, offsets, member, writes)
        with self.lines.at_the_front(who[0]):
            error = self.add_group(*who, group, raising=True)
            if error is not None:
                fenced = error is ProducerFencedError
                return dict.fromkeys(offsets, InvalidProducerEpochError if fenced else error)
            return self._commit_offsets(who, group, offsets, member, writes)

    def _commit_offsets(
        self,
        who: _Producer,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        member: _Member,
        writes: Writes,
    ) -> dict[TopicPartition, Error | None]:
        generation, member_id, instance_id = member
        by_member = generation >= 0 or member_id != NO_MEMBER or instance_id is not None
        transaction = self._open(*who, group, writes)
        error = self._groups.check_type(group) if isinstance(transaction, Transaction) else transaction
        answers: dict[TopicPartition, Error | None] = {}
        # To note a piece takes as long as the next one, where large dictionaries have to grow for it.
        for some in Pace().over(in_pieces(offsets.items(), COMMIT_OFFSETS), every=1):
            if error is None and by_member:
                error = self._groups.check_commit(group, *member, (key for key, _ in some))
                if error in (StaleMemberEpochError, GroupIdNotFoundError):
                    error = IllegalGenerationError  # as in Kafka: an error that producers know
            found, rows = self._offsets.rows(group, dict(some))
            if error is None and rows:
                values = {key: value for (_, key), value in rows.items()}
                error = run_to_completion(self._hub, self._add_offsets, *who, group, values, writes)
            answers.update((key, wrong or error) for key, wrong in found.items())
        return answers

    def _add_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        group: str,
        values: Mapping[str, Any],
        writes: Writes,
    ) -> Error | None:
        transaction = self._open(transactional_id, producer_id, epoch, group, writes)
        if not isinstance(transaction, Transaction):
            return transaction
        rows: Rows = {}
        for key, value in values.items():
            rows.update(transaction.offset_row(key, value))
        error = self._table.write(transaction, rows)
        if error is None:
            # The difference of the two views of keys would look at all of the transaction's.
            self._offsets.hold([key for key in values if key not in transaction.offsets])
            transaction.offsets.update(values)
        return error

    def _open(
        self, transactional_id: str, producer_id: int, epoch: int, group: str, writes: Writes
    ) -> Transaction | Error:
        """The transaction of this producer that has the group, or the error of its offsets."""
        transaction = self._table.own(transactional_id, producer_id, epoch)
        if not isinstance(transaction, Transaction):
            return InvalidProducerEpochError if transaction is ProducerFencedError else transaction
        if transaction.state is not State.ONGOING or group not in transaction.groups:
            return InvalidTxnStateError if writes is Writes.ANNOUNCED else TransactionAbortableError
        return transaction

    def _note(self, transaction: Transaction, rows: Rows) -> Error | None:
        """Write partitions or a group that a transaction adds; the first ones begin the transaction."""
        if transaction.state is State.ONGOING:
            return self._table.write(transaction, rows) if rows else None
        now = self._clock()
        begun = {"state": State.ONGOING, "started": now, "updated": now}
        error = self._table.write(transaction, {**rows, **transaction.open_row(), **transaction.row(**begun)})
        if error is None:
            transaction.state = State.ONGOING
            transaction.started = transaction.updated = now
            self._timeouts.watch(transaction)
        return error
