"""First writes: a batch of a transaction adds its partition (KIP-890, second part: Produce 12 and above).

Clients send batches behind each other without waiting. Those that wait for their partition to be added stand
in line, and so do all behind them of the same transactional id that would overtake them.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    ProducerFencedError,
)

from dafka.broker.interface.groups import Error
from dafka.broker.records.append import PartitionAppend
from dafka.broker.records.producer_state import row_name
from dafka.broker.topics.table import Partition
from dafka.broker.transactions.contents import Contents
from dafka.broker.transactions.table import TransactionTable
from dafka.broker.transactions.transaction import State, Transaction
from dafka.hub.turns import Pace

_Named = dict[str, Partition]

_LEFT = (InvalidProducerIdMappingError, InvalidRequestError, ProducerFencedError)
"""Errors of a producer that are left to the check of its batches, which asks the partition about it, too."""


class FirstWrites:
    """Adds the partitions that are written to transactions. Hub side; waits as a green thread."""

    def __init__(self, table: TransactionTable, contents: Contents) -> None:
        self._table = table
        self._contents = contents

    def add(
        self, transactional_id: str, appends: Iterable[tuple[Partition, PartitionAppend]], wide: bool
    ) -> dict[Partition, Error]:
        """Add the partitions of transactional batches; the error of each that could not be added.

        ``wide``: they are so many that others get turns before they stand in line, and may overtake them.
        """
        wanted: dict[tuple[int, int], _Named] = {}
        for partition, append in Pace().over(appends) if wide else appends:
            for header in append.headers:
                if header.is_transactional:
                    producer = header.producer_id, header.producer_epoch
                    wanted.setdefault(producer, {})[row_name(partition)] = partition
        refused: dict[Partition, Error] = {}
        for (producer_id, epoch), named in wanted.items():
            if transactional_id in self._contents.lines:
                has_all = False
            else:
                has_all = self._has_all(transactional_id, producer_id, epoch, named)
            if not has_all:
                refused.update(self._in_line(transactional_id, producer_id, epoch, named))
        return refused

    def _has_all(self, transactional_id: str, producer_id: int, epoch: int, named: _Named) -> bool:
        transaction = self._table.own(transactional_id, producer_id, epoch)
        if not isinstance(transaction, Transaction) or transaction.state is not State.ONGOING:
            return False
        return named.keys() <= transaction.partitions.keys()

    def _in_line(
        self, transactional_id: str, producer_id: int, epoch: int, named: _Named
    ) -> dict[Partition, Error]:
        with self._contents.lines.at_the_front(transactional_id):
            if self._has_all(transactional_id, producer_id, epoch, named):
                return {}
            error, added = self._contents.add_partitions(
                transactional_id, producer_id, epoch, named, raising=True
            )
        if error is None or error in _LEFT:
            return {}
        return {partition: error for partition in named.values() if partition not in added}
