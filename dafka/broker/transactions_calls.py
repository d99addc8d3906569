"""The transactional part of a broker: every call is passed on to the coordinator while the broker runs.

On the wire it takes the versions before KIP-890's second protocol, which are listed in
:mod:`dafka.broker.transactions_coordinator`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from dafka.broker.groups_interface import NO_GENERATION, NO_MEMBER, CommittedOffset, Error, TopicPartition
from dafka.broker.transactions_coordinator import TransactionCoordinator
from dafka.broker.transactions_interface import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    ListedTransaction,
    ProducerIdentity,
    ProducersOfPartition,
    TransactionDescription,
    TransactionInterface,
)


class TransactionCalls(TransactionInterface):
    """A broker's transactions; its class has a ``_transactions`` and knows whether it runs."""

    _transactions: TransactionCoordinator

    @abstractmethod
    def _check(self) -> None:
        """Raise if the broker does not run."""

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout: float,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
    ) -> ProducerIdentity:
        self._check()
        return self._transactions.init_producer_id(transactional_id, timeout, producer_id, epoch)

    def add_partitions_to_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Error | None]:
        self._check()
        return self._transactions.add_partitions_to_transaction(
            transactional_id, producer_id, epoch, partitions
        )

    def add_offsets_to_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, group: str
    ) -> Error | None:
        self._check()
        return self._transactions.add_offsets_to_transaction(transactional_id, producer_id, epoch, group)

    def commit_transaction_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = NO_GENERATION,
        member_id: str = NO_MEMBER,
        instance_id: str | None = None,
    ) -> dict[TopicPartition, Error | None]:
        self._check()
        return self._transactions.commit_transaction_offsets(
            transactional_id,
            producer_id,
            epoch,
            group,
            offsets,
            generation=generation,
            member_id=member_id,
            instance_id=instance_id,
        )

    def end_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> Error | None:
        self._check()
        return self._transactions.end_transaction(transactional_id, producer_id, epoch, commit)

    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ProducersOfPartition]:
        self._check()
        return self._transactions.describe_producers(partitions)

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        self._check()
        return self._transactions.describe_transactions(transactional_ids)

    def list_transactions(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
    ) -> list[ListedTransaction]:
        self._check()
        return self._transactions.list_transactions(states, producer_ids)
