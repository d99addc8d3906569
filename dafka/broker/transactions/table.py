"""All transactional ids: those in use are in memory, the others in the log until they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from kafka.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    ProducerFencedError,
)

from dafka.broker.interface.groups import Error
from dafka.broker.limits import TRANSACTIONAL_ID_EXPIRATION, TRANSACTIONAL_IDS_KEPT
from dafka.broker.topics.table import Partition, Topic, TopicTable
from dafka.broker.transactions.ending import storage_error
from dafka.broker.transactions.transaction import (
    OPEN,
    OPEN_ROWS,
    TRANSACTION_ROWS,
    TRANSACTIONS,
    Transaction,
)
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.limits import PACE_ITEMS
from dafka.hub.turns import Pace, next_turn
from dafka.log import Log, LogError


class TransactionTable:
    """The transactions of one log. Hub side."""

    def __init__(self, log: Log, writer: Writer, topics: TopicTable) -> None:
        self._writer = writer
        self._topics = topics
        self._table = log.table(TRANSACTIONS, TRANSACTION_ROWS)
        self._open = log.table(OPEN, OPEN_ROWS)
        self._known: dict[str, Transaction] = {}
        self._by_producer: dict[int, Transaction] = {}
        touched = set()
        for key in Pace().over(self._open):
            producer_id, kind, rest = key.split("/", 2)
            if kind == "t":
                self.get(rest)
            else:
                touched.add(int(producer_id))
        nameless = touched - self._by_producer.keys()
        if nameless:  # an earlier version did not write the transactional id
            for transactional_id, row in self._table.items():
                if row["producer_id"] in nameless:
                    self.get(transactional_id)

    def get(self, transactional_id: str) -> Transaction | None:
        """The transaction of a transactional id; None if the id is unknown."""
        found = self._known.get(transactional_id)
        if found is None and isinstance(transactional_id, str):
            row = self._table.get(transactional_id)
            if row is not None:
                found = Transaction.load(transactional_id, row)
                if found.state.is_open:
                    for key, value in Pace().over(self._open.items(found.prefix)):  # at the start only
                        found.touch(key, value, self._partition)
                self.add(found)
        return found

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transaction of a producer id; None if it is not in memory."""
        return self._by_producer.get(producer_id)

    def add(self, transaction: Transaction) -> None:
        """Add a transaction that is new."""
        self._known[transaction.transactional_id] = transaction
        self._by_producer[transaction.producer_id] = transaction

    def become(self, transaction: Transaction, fields: Mapping[str, Any]) -> None:
        """Change fields of a transaction, which may be its producer id."""
        self._by_producer.pop(transaction.producer_id, None)
        for name, value in fields.items():
            setattr(transaction, name, value)
        self.add(transaction)

    def discard(self, transaction: Transaction) -> None:
        """Forget a transaction whose row was deleted or never written."""
        self._known.pop(transaction.transactional_id, None)
        self._by_producer.pop(transaction.producer_id, None)

    def __len__(self) -> int:
        """The number of transactional ids."""
        return len(self._table)

    def own(self, transactional_id: str, producer_id: int, epoch: int) -> Transaction | Error:
        """The transaction of this producer, or the error of its call."""
        if not transactional_id:
            return InvalidRequestError
        transaction = self.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            return InvalidProducerIdMappingError
        if transaction.epoch != epoch:
            return ProducerFencedError
        return ConcurrentTransactionsError if transaction.busy else transaction

    def in_use(self) -> list[Transaction]:
        """The transactions in memory; all open ones are among them."""
        return list(self._known.values())

    def all(self) -> Iterator[tuple[str, int, str]]:
        """Transactional id, producer id and state of every transaction, without loading them into memory."""
        for transactional_id in self._table:
            found = self._known.get(transactional_id)
            row = self._table.get(transactional_id) if found is None else None
            if found is not None:
                yield transactional_id, found.producer_id, found.state.value
            elif row is not None:
                yield transactional_id, row["producer_id"], row["state"]

    def expired(self, now: float, pause: Callable[[], object]) -> Iterator[Transaction]:
        """Ids unused for TRANSACTIONAL_ID_EXPIRATION, and the longest unused beyond TRANSACTIONAL_IDS_KEPT.

        Calls ``pause`` now and then.
        """
        idle: list[tuple[float, str]] = []
        for count, transactional_id in enumerate(self._table.unordered()):
            found = self._known.get(transactional_id)
            row = self._table.get(transactional_id) if found is None else None
            if row is not None:
                idle.append((row["updated"], transactional_id))
            elif found is not None and not found.state.is_open:
                idle.append((found.updated, transactional_id))
            if not count % PACE_ITEMS:
                pause()
        surplus = len(self._table) - TRANSACTIONAL_IDS_KEPT
        for count, (updated, transactional_id) in enumerate(sorted(idle)):
            if updated >= now - TRANSACTIONAL_ID_EXPIRATION and count >= surplus:
                break
            transaction = self.get(transactional_id)
            if transaction is not None and not transaction.busy and not transaction.state.is_open:
                yield transaction

    def write(self, transaction: Transaction, rows: Rows) -> Error | None:
        """Write rows and mark the transaction as busy meanwhile; waits as a green thread.

        After very many rows the caller goes on in a turn of its own: its dictionaries may have to grow where
        those of the log have grown.
        """
        transaction.busy = True
        try:
            self._writer.put_and_wait(rows)
            if len(rows) > PACE_ITEMS:
                next_turn()
        except LogError as error:
            return storage_error(f"writing transaction {transaction.transactional_id!r}", error)
        finally:
            transaction.busy = False
        return None

    def _partition(self, name: str) -> Partition | None:
        topic_id, _, number = name.partition("/")
        topic: Topic | None = self._topics.by_id(UUID(hex=topic_id))
        return None if topic is None else self._topics.partition(topic.name, int(number))
