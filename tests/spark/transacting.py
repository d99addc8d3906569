"""What the tests of exactly-once writes do as tasks, and what they look at."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from dafka.spark.options import write_options
from dafka.spark.ranges import OffsetRange
from dafka.spark.reading import RangeReader
from dafka.spark.sink import BatchSink, Written
from dafka.spark.transactions import TaskTransaction, begin, transactional_id
from dafka.spark.writing import RecordWriter

PLACE = ("t", 0)


def write_task(brokers, task, values, query="q", attempt=0):
    """What a task does: write in a transaction and leave it open."""
    options = write_options({"bootstrap.servers": brokers.access.servers, "topic": "t"})
    name = transactional_id(query, task, attempt)
    identity = begin(brokers, name, 60)
    rows = pa.record_batch(
        {"value": pa.array(values, pa.binary()), "partition": pa.array([0] * len(values), pa.int32())}
    )
    with RecordWriter(brokers, options, identity, name) as writer:
        writer.write(rows)
        writer.flush()
    return TaskTransaction(name, identity.producer_id, identity.epoch)


def batch_sink(brokers):
    """What tasks and driver have of a batch write to topic t."""
    options = write_options(
        {"bootstrap.servers": brokers.access.servers, "topic": "t", "exactlyOnce": "true"}
    )
    return BatchSink(options, StructType([StructField("value", BinaryType())]), overwrite=False)


def written(transaction, query="q", run="run"):
    """What a task tells the driver."""
    return Written(1, PLACE, transaction, query, run)


def rows(values):
    return iter([pa.record_batch({"value": pa.array(values, pa.binary())})])


def ongoing(brokers):
    return brokers.call("list_transactions", ["Ongoing"])


def committed(brokers):
    last = brokers.offsets({PLACE: -1}, read_committed=True)[PLACE]
    reader = RangeReader(brokers, ["value"], read_committed=True)
    return [
        value for rows in reader.read(OffsetRange(*PLACE, 0, last)) for value in rows.column(0).to_pylist()
    ]
