"""``KafkaProducer``: kafka-python's producer over a broker in this process, or over TCP.

Only :meth:`KafkaProducer.send` runs for every record, in the caller's thread: checks, serializers,
partition, and one append. Everything that happens once for a batch is
elsewhere: batches and their encoding in :mod:`compat.kafka.producer._batches`, the batches of all partitions
in :mod:`compat.kafka.producer._accumulator`, the green thread that hands them to the broker in
:mod:`compat.kafka.producer._sender`. Topics that are not known yet and partitions that the program chooses
are in :mod:`compat.kafka.producer._partitioning`, transactions in :mod:`compat.kafka.producer._transactions`.

Callbacks of futures run in order in a thread of the producer's own (:mod:`compat.kafka.producer._callbacks`):
they may ``send``, and may not wait for another record of the same producer.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import kafka.producer.kafka as _theirs
from kafka.errors import BrokerResponseError, IllegalStateError
from kafka.partitioner import DefaultPartitioner
from kafka.producer.future import FutureRecordMetadata

from compat.kafka._client import Client, cut_off_in_child
from compat.kafka._metrics import Gauges, ProducerMetrics, new_registry
from compat.kafka._mirror import counterpart_names
from compat.kafka.producer import _accumulator  # its class would hide kafka-python's of this name
from compat.kafka.producer._batches import NANOSECONDS
from compat.kafka.producer._config import check_config, read_config
from compat.kafka.producer._future import RecordFuture, failed_future
from compat.kafka.producer._identity import Identity
from compat.kafka.producer._partitioning import Partitioning
from compat.kafka.producer._sender import Sender
from compat.kafka.producer._transactions import Transactions
from compat.kafka.producer._values import (
    HEADER_OCTETS,
    MOST_OCTETS,
    as_bytes,
    check_size,
    headers_size,
    serialize,
)
from dafka.protocol.batch_writer import TIMESTAMP_LIMIT

log = logging.getLogger(__name__)

EXIT_TIMEOUT = 5.0  # seconds that the interpreter's exit waits for a live producer's records

# Octets a record takes in a batch besides its key and value: length, attributes, timestamp and offset
# deltas, lengths of key and value, number of headers. Long values have up to three more.
_RECORD_OVERHEAD = 11
# A record whose estimate is further than this from a limit cannot be over it.
_SIZE_MARGIN = 128
_TIMESTAMPS = range(-TIMESTAMP_LIMIT, TIMESTAMP_LIMIT + 1)  # the range of a record batch


class KafkaProducer:
    """Publishes records to topics of a broker. Safe for use by many threads.

    The configuration keys and their defaults are kafka-python's. Of those that describe a network connection
    ``bootstrap_servers``, ``bootstrap_timeout_ms``, ``request_timeout_ms`` and ``security_protocol`` matter:
    see :mod:`compat.kafka`.

    Raises:
        ValueError: unknown keys, or an unknown ``compression_type``.
        RuntimeError: the library of the compression type is not installed.
        KafkaConfigurationError: settings that contradict each other.
        KafkaTimeoutError: no broker at ``bootstrap_servers``.
        KafkaConnectionError: the folder of ``DAFKA_EMBEDDED`` cannot be opened, as when it is in use.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = dict(_theirs.KafkaProducer.DEFAULT_CONFIG)
    DEPRECATED_CONFIGS: ClassVar[Any] = getattr(_theirs.KafkaProducer, "DEPRECATED_CONFIGS", ())  # until 3.1

    _closed = True  # until __init__ has succeeded; __del__ looks at it, also without __init__

    def __init__(self, **configs: Any) -> None:
        given = set(configs)
        self.config = read_config(self.DEFAULT_CONFIG, self.DEPRECATED_CONFIGS, configs)
        self._metrics = new_registry(self.config)
        self._client = Client(self.config, self.config["api_version"] is None)
        check_config(self.config, given, str(self))
        self._pid = os.getpid()
        metrics = None if self._metrics is None else ProducerMetrics(self._metrics)
        self._transactions: Transactions | None = None
        identity = self._new_identity() if self.config["enable_idempotence"] else None
        self._accumulator = _accumulator.RecordAccumulator(
            self._client.hub, self.config, self._client.broker.is_remote
        )
        self._sender = Sender(self._client, self._accumulator, self.config, metrics, identity)
        self._topics = self._accumulator.topics
        self._known = self._topics.known
        self._partitioning = Partitioning(self._client, self._topics, self._sender.refresh, self.config)
        self._serializes = any(self.config[key] is not None for key in ("key_serializer", "value_serializer"))
        self._partitions_itself = type(self.config["partitioner"]) is DefaultPartitioner
        self._certainly_small = min(self.config["max_request_size"], MOST_OCTETS) - _SIZE_MARGIN
        self._register_metrics()
        self._time_ns = _nanoseconds(self._client.broker.time)
        self._closed = False
        self._sender.at_exit = _finish_at_exit(self._accumulator, self._pid)
        atexit.register(self._sender.at_exit)
        cut_off_in_child(self)

    def _new_identity(self) -> Identity:
        config = self.config
        if not config["transactional_id"]:
            return Identity(self._client, config["transaction_timeout_ms"])
        self._transactions = Transactions(
            self._client,
            config["transactional_id"],
            config["transaction_timeout_ms"],
            config["retry_backoff_ms"],
            config["max_block_ms"],
        )
        return self._transactions

    def _register_metrics(self) -> None:
        if self._metrics is None:
            return
        accumulator, sender = self._accumulator, self._sender
        gauges: Gauges = {
            "record-send-total": ("records acknowledged", lambda: sender.records_sent),
            "record-error-total": ("records that failed", lambda: sender.records_failed),
            "byte-total": ("octets of acknowledged batches, before compression", lambda: sender.bytes_sent),
            "batch-total": ("batches acknowledged", lambda: sender.batches_sent),
            "incomplete-batches": ("batches under way", lambda: len(accumulator.incomplete)),
        }
        self._metrics.add_gauges("producer-metrics", gauges)

    # -- sending ----------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata:
        """Append a record to its partition's open batch; returns before it is stored.

        Arguments:
            topic: where to; created on first use if the broker and ``allow_auto_create_topics`` say so.
            value, key: octets, or what the serializers make octets of. At least one is not None.
            headers: pairs of a string and octets.
            partition: its number; chosen by the partitioner if None.
            timestamp_ms: milliseconds since the epoch; now if None.

        Returns:
            A future for the record's ``RecordMetadata``.

        Raises:
            ValueError: neither key nor value; an illegal topic name; no such partition.
            TypeError: headers, or serialized key or value, or timestamp of a wrong type.
            MessageSizeTooLargeError: larger than ``max_request_size``, or than consumers read.
            KafkaTimeoutError: within ``max_block_ms`` the topic did not appear, or too much is under way.
            IllegalStateError: the producer is closed, or has a ``transactional_id`` and no open transaction.
            KafkaError: the open transaction has failed and has to be aborted.
        """
        # This is the hottest path of the producer: it avoids calls, and what is rare is in other methods.
        if self._closed:
            raise self._client.closed_error("KafkaProducer already closed!")
        if value is None and key is None:
            raise ValueError("Need at least one: key or value")
        header_size = -1
        if headers is not None:
            header_size = headers_size(headers)
        key_bytes, value_bytes = key, value
        if self._serializes:
            key_bytes, value_bytes = serialize(self.config, topic, headers, key, value)
        if key_bytes is None:
            key_size = -1
            size = _RECORD_OVERHEAD
        else:
            if type(key_bytes) is not bytes:
                key_bytes = as_bytes(key_bytes, "key")
            key_size = len(key_bytes)
            size = _RECORD_OVERHEAD + key_size
        if value_bytes is None:
            value_size = -1
        else:
            if type(value_bytes) is not bytes:
                value_bytes = as_bytes(value_bytes, "value")
            value_size = len(value_bytes)
            size += value_size

        try:
            known = self._known[topic]
        except KeyError:
            known = None
        if known is None:  # not there above: what goes wrong here would be told as a KeyError's consequence
            try:
                known = self._partitioning.await_topic(topic)
            except BrokerResponseError as error:
                log.error("%s: no metadata of topic %s: %s", self, topic, error)
                return failed_future(topic, partition, error, (key_size, value_size, header_size))
        if partition is None and self._partitions_itself:
            if known.only is not None:
                queue = known.only
            elif key_bytes is None:
                try:
                    queue = known.any_queue()
                except IndexError:
                    queue = known.draw()
            else:
                queue = known.queue_of_key(key_bytes) or known.hash_key(key_bytes)
        else:
            queue = self._partitioning.choose(
                topic, known, partition, key, value, key_bytes, value_bytes, size
            )

        if headers:
            size += header_size + HEADER_OCTETS * len(headers)
            headers = tuple(headers)  # type: ignore[assignment]
        if size > self._certainly_small:
            check_size(self.config["max_request_size"], key_bytes, value_bytes, headers)
        if self._transactions is not None:
            self._transactions.check_send()
        if timestamp_ms is None:
            timestamp = self._time_ns()
        elif type(timestamp_ms) is not int or timestamp_ms not in _TIMESTAMPS:
            raise TypeError(timestamp_ms)
        else:
            timestamp = timestamp_ms * NANOSECONDS

        record = (timestamp, key_bytes, value_bytes, headers or ())
        batch = queue.open
        records = batch.records
        index = len(records)
        if index and batch.room >= size:  # without the lock: see compat.kafka.producer._batches
            records.append(record)
            batch.room -= size
            if batch is not queue.open or records[index] is not record:
                index = queue.place(batch, records, record, index)
                if index < 0:
                    batch, index = self._accumulator.append(queue, record, size)
        else:
            batch, index = self._accumulator.append(queue, record, size)

        future: RecordFuture = RecordFuture()
        future._produce_future = batch
        future._place = (index, timestamp, None, key_size, value_size, header_size)
        return future

    # -- flush and close ---------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> None:
        """Send what is buffered, whatever ``linger_ms`` says, and wait until its outcome is known.

        Raises:
            KafkaTimeoutError: it was not within ``timeout`` seconds.
            IllegalStateError: called from a callback, which would wait for itself.
        """
        self._accumulator.flush(timeout)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Send what is buffered, wait for its outcome at most ``timeout`` seconds, and end.

        From a callback it does not wait. ``null_logger`` is accepted and has no effect.

        Raises:
            ValueError: a negative timeout.
            KafkaTimeoutError: records are still under way; the producer stays open.
        """
        if self._closed:
            return
        if timeout is None:
            timeout = threading.TIMEOUT_MAX
        if not 0 <= timeout <= threading.TIMEOUT_MAX:
            raise ValueError(f"Invalid timeout: {timeout}")
        if not self._accumulator.here:
            self._accumulator.flush(timeout)
        self._end()
        for key in ("key_serializer", "value_serializer"):
            close = getattr(self.config[key], "close", None)
            if close is not None:
                close()

    def _end(self) -> None:
        self._closed = True
        self._accumulator.close()
        if self._metrics is not None:
            self._metrics.close()

    def __del__(self) -> None:
        # The garbage collector may run this anywhere, so it does not wait. The sender sends what is left.
        if not self._closed and os.getpid() == self._pid:
            try:
                self._end()
            except Exception:
                log.debug("closing a forgotten producer failed", exc_info=True)

    def _cut_off(self) -> None:
        self._closed = True

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()

    # -- transactions ------------------------------------------------------------------------------

    def init_transactions(self) -> None:
        """Take over the ``transactional_id``, before anything else is done with it.

        A transaction that an earlier instance has left open is aborted, and that instance fenced.

        Raises:
            IllegalStateError: no ``transactional_id`` is configured.
            KafkaTimeoutError: it took longer than ``max_block_ms``.
            ProducerFencedError, KafkaError: the reason of the broker's refusal.
        """
        self._transactional("Cannot call init_transactions without setting a transactional_id.").initialize()

    def begin_transaction(self) -> None:
        """Begin a transaction: records sent from now on belong to it.

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
            TypeError, ValueError: the group is named wrongly, or ``offsets`` are something else.
            CommitFailedError: the consumer is no longer a member of its group; abort the transaction.
            ProducerFencedError, KafkaError: see ``commit_transaction``.
        """
        transactions = self._transactional("Cannot use transactional methods without enabling transactions")
        transactions.send_offsets(offsets, group_metadata)

    def commit_transaction(self) -> None:
        """Send what is buffered and commit the transaction.

        Raises:
            IllegalStateError: no ``transactional_id`` is configured.
            ProducerFencedError: another instance has taken over; only ``close`` is left.
            KafkaTimeoutError: it took longer than ``max_block_ms``; it may be called again.
            KafkaError: a record could not be sent, or no transaction is open. Abort the open one.
        """
        self._end_transaction(True, "Cannot commit transaction since transactions are not enabled")

    def abort_transaction(self) -> None:
        """Abort the transaction; records that were not sent fail with TransactionAbortedError.

        Raises:
            IllegalStateError, ProducerFencedError, KafkaTimeoutError, KafkaError: see
                ``commit_transaction``.
        """
        self._end_transaction(False, "Cannot abort transaction since transactions are not enabled.")

    def _end_transaction(self, commit: bool, refusal: str) -> None:
        transactions = self._transactional(refusal)
        transactions.begin_end(commit)
        self._accumulator.flush(None)
        transactions.finish(commit)

    def _transactional(self, refusal: str) -> Transactions:
        if self._closed:
            raise self._client.closed_error("KafkaProducer already closed!")
        if self._transactions is None:
            if self.config["enable_idempotence"]:
                refusal = "Transactional method invoked on a non-transactional producer."
            raise IllegalStateError(refusal)
        return self._transactions

    # -- everything else ---------------------------------------------------------------------------

    def partitions_for(self, topic: str) -> set[int]:
        """Numbers of the topic's partitions that can be written to; waits up to ``max_block_ms`` for it."""
        known = self._topics.known.get(topic)
        if known is None:
            if self._closed:
                raise self._client.closed_error("KafkaProducer already closed!")
            known = self._partitioning.await_topic(topic)
        return set(known.by_number)

    def bootstrap_connected(self) -> bool:
        """Whether the broker can be called."""
        return not self._closed and self._client.connected()

    def metrics(self, raw: bool = False) -> dict[Any, Any] | None:
        """Figures about this producer, ``{group: {name: value}}``; None if metrics are not enabled."""
        return None if self._metrics is None else self._metrics.by_group(raw)

    @classmethod
    def max_usable_produce_magic(cls, api_version: tuple[int, ...]) -> int:
        """The record format that a broker of this version takes: 2 for all since 0.11."""
        magic: int = _theirs.KafkaProducer.max_usable_produce_magic(api_version)
        return magic

    def __str__(self) -> str:
        config = self.config
        return (
            f"<KafkaProducer client_id={config.get('client_id')} "
            f"transactional_id={config.get('transactional_id')}>"
        )


def _nanoseconds(clock: Callable[[], float]) -> Callable[[], int]:
    """The clock in nanoseconds; whole numbers are divided sooner than others are made whole."""
    return time.time_ns if clock is time.time else lambda: int(clock() * 1000) * 1_000_000


def _finish_at_exit(accumulator: _accumulator.RecordAccumulator, pid: int) -> Any:
    """A function for atexit that sends the records of an open producer; it does not keep it alive."""

    def finish() -> None:
        if os.getpid() != pid:
            return
        try:
            accumulator.finish(EXIT_TIMEOUT)
        except Exception as error:
            log.warning("records were lost at exit: %s", error)

    return finish


__getattr__ = counterpart_names(__name__)
