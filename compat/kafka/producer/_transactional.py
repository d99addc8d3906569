"""The transactional methods of a producer; what they do is in :mod:`compat.kafka.producer._transactions`."""

from __future__ import annotations

from typing import Any

from kafka.errors import IllegalStateError

from compat.kafka._client import Client
from compat.kafka.producer._sender import Sender
from compat.kafka.producer._transactions import Transactions


class Transactional:
    """The part of a KafkaProducer that begins and ends transactions; in the program's threads."""

    config: dict[str, Any]
    _closed: bool
    _client: Client
    _sender: Sender
    _transactions: Transactions | None

    def init_transactions(self) -> None:
        """Take over the ``transactional_id``, before anything else is done with it.

        A transaction that an earlier instance has left open is aborted, and that instance fenced.

        Raises:
            IllegalStateError: no ``transactional_id`` is configured.
            KafkaTimeoutError: it took longer than ``max_block_ms``.
            ProducerFencedError, KafkaError: what the broker refuses it for.
        """
        self._transactional("Cannot call init_transactions without setting a transactional_id.").initialize()

    def begin_transaction(self) -> None:
        """Begin a transaction: what is sent from now on belongs to it.

        Raises:
            IllegalStateError: no ``transactional_id`` is configured.
            KafkaError: it cannot be begun now: one is open, or ``init_transactions`` was not called.
        """
        self._transactional("Cannot use transactional methods without enabling transactions").begin()

    def send_offsets_to_transaction(self, offsets: Any, group_metadata: Any) -> None:
        """Have offsets of a consumer group committed if, and only if, the transaction is.

        Arguments:
            offsets: ``{TopicPartition: OffsetAndMetadata}``.
            group_metadata: ``KafkaConsumer.group_metadata()``, or the group's name.

        Raises:
            IllegalStateError: no ``transactional_id`` is configured.
            TypeError, ValueError: the group is named wrongly.
            CommitFailedError: the consumer is no member of the group any more; abort the transaction.
            ProducerFencedError, KafkaError: see ``commit_transaction``.
        """
        transactions = self._transactional("Cannot use transactional methods without enabling transactions")
        transactions.send_offsets(offsets, group_metadata)

    def commit_transaction(self) -> None:
        """Send what is buffered, and commit the transaction.

        Raises:
            IllegalStateError: no ``transactional_id`` is configured.
            ProducerFencedError: another instance has taken over; only ``close`` is left.
            KafkaTimeoutError: it took longer than ``max_block_ms``; it may be called again.
            KafkaError: a record could not be sent, or no transaction is open. Abort the open one.
        """
        self._end_transaction(True, "Cannot commit transaction since transactions are not enabled")

    def abort_transaction(self) -> None:
        """Abort the transaction; records that were not sent yet fail with TransactionAbortedError.

        Raises:
            IllegalStateError, ProducerFencedError, KafkaTimeoutError, KafkaError: see
                ``commit_transaction``.
        """
        self._end_transaction(False, "Cannot abort transaction since transactions are not enabled.")

    def _end_transaction(self, commit: bool, refusal: str) -> None:
        transactions = self._transactional(refusal)
        transactions.begin_end(commit)
        self._sender.flush(None)
        transactions.finish(commit)

    def _transactional(self, refusal: str) -> Transactions:
        if self._closed:
            raise self._client.closed_error("KafkaProducer already closed!")
        if self._transactions is None:
            if self.config["enable_idempotence"]:
                refusal = "Transactional method invoked on a non-transactional producer."
            raise IllegalStateError(refusal)
        return self._transactions
