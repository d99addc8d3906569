"""Writing from Spark: which columns a frame may have, and what tasks and the driver do.

At least once is the rule, as for Spark's own Kafka sink: a task that Spark runs again writes its rows again.
With ``exactlyOnce`` tasks write in transactions, which the driver commits (:mod:`dafka.spark.transactions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from dafka.spark.cluster import Cluster, cluster, reason
from dafka.spark.errors import ColumnError, OptionError, UnknownTopicError, WriteError, reason_first
from dafka.spark.option_values import TopicPartition
from dafka.spark.options import WriteOptions
from dafka.spark.transactions import (
    Notes,
    TaskTransaction,
    abandon,
    begin,
    check_open,
    declare_over,
    end,
    is_over,
    transactional_id,
)
from dafka.spark.writing import RecordWriter

_TYPES: dict[str, tuple[str, ...]] = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}
# Spark's local properties that name the query of a task.
_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"
_BATCH_ID = "streaming.sql.batchId"


class Written(WriterCommitMessage):
    """The report of a task to the driver. ``query`` and ``run`` are empty for a batch write."""

    def __init__(
        self,
        records: int,
        where: TopicPartition | None = None,
        transaction: TaskTransaction | None = None,
        query: str = "",
        run: str = "",
    ) -> None:
        self.records = records
        self.where = where
        self.transaction = transaction
        self.query = query
        self.run = run


class _Sink:
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    @property
    def _brokers(self) -> Cluster:
        return cluster(self._options.access)

    def _write(self, rows: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task."""
        with RecordWriter(self._brokers, self._options) as writer:
            for batch in rows:
                writer.write(batch)
            writer.flush()
            return Written(writer.records)

    def _write_in_transaction(self, rows: Iterator[pa.RecordBatch], name: str, write: str) -> Written:
        """Write the rows of a task in a transaction that stays open, unless its write is over."""
        brokers = self._brokers
        identity = begin(brokers, name, self._options.transaction_timeout)
        if is_over(brokers, write):
            raise WriteError("this write is over: another attempt has succeeded, or another task failed")
        transaction = TaskTransaction(name, *identity[1:])
        with RecordWriter(brokers, self._options, identity, name) as writer:
            try:
                for batch in rows:
                    writer.write(batch)
                writer.flush()
            except BaseException:
                # An open transaction would block readers of committed records until it times out.
                if writer.places:
                    end(brokers, [transaction], commit=False)
                raise
            where = min(writer.places, default=None)
            return Written(writer.records, where, transaction if writer.places else None)


class BatchSink(_Sink, DataSourceArrowWriter):
    """One write of a frame. It is pickled, so that tasks and the driver know it by the same number."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema)
        if overwrite:
            raise OptionError("topics can only be appended to: say mode('append')")
        self._job = uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """The rows of one task."""
        with reason_first():
            if not self._options.exactly_once:
                return self._write(iterator)
            first = next(iterator, None)
            if first is None:
                return Written(0)
            context = _context()
            name = transactional_id(self._job, context.partitionId(), context.attemptNumber())
            return self._write_in_transaction(chain([first], iterator), name, self._job)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have written."""
        with reason_first():
            if self._options.exactly_once:
                transactions = _transactions(messages)
                self._shut_out(transactions)
                check_open(self._brokers, transactions)
                end(self._brokers, transactions, commit=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Some task failed for good."""
        with reason_first():
            if self._options.exactly_once:
                end(self._brokers, _transactions(messages), commit=False)
                self._shut_out()

    def _shut_out(self, but: Sequence[TaskTransaction] = ()) -> None:
        """Fence all tasks that may still write: those of a failed write, and slower attempts."""
        declare_over(self._brokers, self._job, self._options.transaction_timeout)
        abandon(self._brokers, self._job, self._options.transaction_timeout, begun=True, but=but)


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """The sink of a streaming query; for each micro-batch Spark makes another object, in another process."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """The rows of one task of a micro-batch."""
        with reason_first():
            if not self._options.exactly_once:
                return self._write(iterator)
            context = _context()
            said = [context.getLocalProperty(name) for name in (_QUERY_ID, _RUN_ID, _BATCH_ID)]
            query, run, batch = (value or "" for value in said)
            if not (query and run and batch):
                raise WriteError("exactlyOnce: Spark does not say which micro-batch this is")
            first = next(iterator, None)
            notes = Notes(self._brokers, query)
            # Asked for when there are rows to write, which may take long: an attempt that is late by then
            # must not begin, for that would abort what another has written.
            if first is None or notes.last().batch >= int(batch):
                for _ in iterator:
                    pass
                return Written(0, query=query, run=run)
            name = transactional_id(query, context.partitionId(), context.attemptNumber())
            written = self._write_in_transaction(chain([first], iterator), name, run)
            if written.transaction is not None and notes.last().batch >= int(batch):
                end(self._brokers, [written.transaction], commit=False)
                written.transaction = None
            written.query, written.run = query, run
            return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks of a micro-batch have written."""
        with reason_first():
            written = [message for message in messages if isinstance(message, Written)]
            if not self._options.exactly_once or not written:
                return
            query, timeout = written[0].query, self._options.transaction_timeout
            notes, transactions = Notes(self._brokers, query), _transactions(messages)
            if notes.last().batch >= batchId:
                end(self._brokers, transactions, commit=False)
                notes.finish(batchId)
                abandon(self._brokers, query, timeout)
                return
            # Other open transactions are of earlier runs, or of other attempts at these tasks.
            abandon(self._brokers, query, timeout, but=transactions)
            if transactions:
                where = min(message.where for message in written if message.where is not None)
                notes.decide(batchId, where, transactions)
                try:
                    check_open(self._brokers, transactions)
                except WriteError:
                    notes.take_back(batchId, where)
                    raise
                end(self._brokers, transactions, commit=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Some task of a micro-batch failed for good, or :meth:`commit` did."""
        with reason_first():
            if not self._options.exactly_once:
                return
            timeout = self._options.transaction_timeout
            told = {message.query: message.run for message in messages if isinstance(message, Written)}
            for query, run in told.items():
                # A noted decision stays: the next run of the query commits the transactions.
                if Notes(self._brokers, query).last().batch < batchId:
                    end(self._brokers, _transactions(messages), commit=False)
                    declare_over(self._brokers, run, timeout)
                    abandon(self._brokers, query, timeout, begun=True)


def _transactions(messages: Sequence[WriterCommitMessage | None]) -> list[TaskTransaction]:
    found = (message.transaction for message in messages if isinstance(message, Written))
    return [transaction for transaction in found if transaction is not None]


def check_columns(options: WriteOptions, schema: StructType) -> None:
    """Raises ColumnError for a frame that cannot be written; columns of other names are left out."""
    kinds = {field.name: field.dataType.simpleString() for field in schema}
    if "value" not in kinds:
        raise ColumnError(
            f"there is no column value to write; the frame has {', '.join(kinds) or 'no columns'}"
        )
    if options.topic is None and "topic" not in kinds:
        raise ColumnError("neither a column topic nor an option topic says where records go")
    if options.include_timestamp and "timestamp" not in kinds:
        raise ColumnError("includeTimestamp needs a column timestamp")
    for name, allowed in _TYPES.items():
        if name == "timestamp" and not options.include_timestamp:
            continue
        if name == "topic" and options.topic is not None:
            continue
        if name in kinds and kinds[name] not in allowed:
            raise ColumnError(f"column {name} is {kinds[name]}; it has to be {' or '.join(allowed)}")


def check_target(options: WriteOptions) -> None:
    """Raise what every task would meet: UnreachableError, or UnknownTopicError for the option topic."""
    brokers = cluster(options.access)
    topics = [] if options.topic is None else [options.topic]
    for name, topic in brokers.metadata(topics, create=True).topics.items():
        if topic.error is not None:
            raise UnknownTopicError(f"topic {name!r} at {options.access.servers}: {reason(topic.error)}")


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise WriteError("records are written by tasks of Spark only")
    return context
