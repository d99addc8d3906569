"""Writing from Spark: which columns a frame may have, and what tasks and the driver do.

At least once is the rule, as for Spark's own Kafka sink: a task that Spark runs again writes its rows again.
With ``exactlyOnce`` tasks write in transactions, which the driver commits (:mod:`dafka.spark.transactions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from dafka.spark.cluster import cluster, reason
from dafka.spark.errors import ColumnError, OptionError, UnknownTopicError, WriteError
from dafka.spark.options import TopicPartition, WriteOptions
from dafka.spark.reporting import reason_first
from dafka.spark.transactions import (
    Notes,
    TaskTransaction,
    abandon,
    begin,
    end,
    give_up,
    given_up,
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
# What Spark says about the query that a task belongs to.
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


class Written(WriterCommitMessage):
    """What a task tells the driver. ``skipped``: its micro-batch had been committed before."""

    def __init__(
        self,
        query: str,
        task: int,
        records: int,
        where: TopicPartition | None = None,
        transaction: TaskTransaction | None = None,
        skipped: bool = False,
    ) -> None:
        self.query = query
        self.task = task
        self.records = records
        self.where = where
        self.transaction = transaction
        self.skipped = skipped


class _Sink:
    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        check_columns(options, schema)
        if overwrite:
            raise OptionError(
                "topics can only be appended to: say mode('append'), outputMode('append' or 'update')"
            )
        self._options = options

    def _write(self, rows: Iterator[pa.RecordBatch], job: str, task: int) -> Written:
        """Write the rows of a task; with exactlyOnce in a transaction that stays open."""
        options = self._options
        brokers = cluster(options.access)
        first = next(rows, None)
        if first is None:
            return Written(job, task, 0)
        name = transactional_id(job, task) if options.exactly_once else None
        identity = None if name is None else begin(brokers, name, options.transaction_timeout)
        if name is not None and given_up(brokers, job):
            raise WriteError("another task failed, and this write was given up")
        transaction = None if name is None or identity is None else TaskTransaction(name, *identity[1:])
        with RecordWriter(brokers, options, identity, name) as writer:
            try:
                writer.write(first)
                for batch in rows:
                    writer.write(batch)
                writer.flush()
            except BaseException:
                # Left open, it would keep who reads committed records waiting until its time is over.
                if transaction is not None and writer.places:
                    end(brokers, [transaction], commit=False)
                raise
            where = min(writer.places, default=None)
            return Written(job, task, writer.records, where, transaction if writer.places else None)

    def _end(self, messages: Sequence[WriterCommitMessage | None], commit: bool) -> None:
        transactions = [
            message.transaction
            for message in messages
            if isinstance(message, Written) and message.transaction is not None
        ]
        if transactions:
            end(cluster(self._options.access), transactions, commit)


class BatchSink(_Sink, DataSourceArrowWriter):
    """One write of a frame. It is pickled, so that tasks and the driver know it by the same number."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self._job = uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """The rows of one task."""
        with reason_first():
            return self._write(iterator, self._job, _context().partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have written."""
        with reason_first():
            self._end(messages, commit=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Some task failed for good."""
        with reason_first():
            self._end(messages, commit=False)
            if self._options.exactly_once:
                give_up(cluster(self._options.access), self._job, self._options.transaction_timeout)


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """The sink of a streaming query; for each micro-batch Spark makes another object, in another process."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """The rows of one task of a micro-batch."""
        with reason_first():
            context = _context()
            query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
            if not self._options.exactly_once:
                return self._write(iterator, query or "", context.partitionId())
            if query is None or batch is None:
                raise WriteError("exactlyOnce: Spark does not say which micro-batch this is")
            if Notes(cluster(self._options.access), query).last().batch >= int(batch):
                for _ in iterator:
                    pass
                return Written(query, context.partitionId(), 0, skipped=True)
            return self._write(iterator, query, context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks of a micro-batch have written."""
        with reason_first():
            written = [message for message in messages if isinstance(message, Written)]
            if not self._options.exactly_once or not written:
                return
            query = written[0].query
            notes = Notes(cluster(self._options.access), query)
            if any(message.skipped for message in written):
                notes.finish(batchId)
            else:
                tasks = [message.task for message in written if message.transaction is not None]
                places = [message.where for message in written if message.where is not None]
                if tasks:
                    notes.decide(batchId, min(places), tasks)
                    self._end(messages, commit=True)
            # What is open still, tasks have left that a run before had and this one has not.
            abandon(cluster(self._options.access), query, self._options.transaction_timeout)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Some task of a micro-batch failed for good, or :meth:`commit` did."""
        with reason_first():
            if self._options.exactly_once:
                brokers, timeout = cluster(self._options.access), self._options.transaction_timeout
                for query in {message.query for message in messages if isinstance(message, Written)}:
                    # What is decided stays so: the next run of the query commits it.
                    if Notes(brokers, query).last().batch < batchId:
                        self._end(messages, commit=False)
                        abandon(brokers, query, timeout, begun=True)


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
    """Raises what every task would meet: UnreachableError, UnknownTopicError for the option topic."""
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
