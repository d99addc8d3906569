"""Data for `scripts/bench spark`: topics, and a Spark source with the same rows in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dafka.broker import connect
from dafka.broker.interface.broker import TopicSpec
from dafka.protocol.batch_writer import encode_batch
from dafka.spark.columns import read_columns

PARTITIONS = 6
VALUE = bytes(range(100))
BATCH = 5000  # records in a record batch: half a megabyte, as a busy producer makes them
ROWS = 65_000  # in an Arrow batch, as the data source makes them
_AT_ONCE = 20  # record batches in one produce


def fill(servers: str, topic: str, records: int) -> None:
    """Make the topic, with the records spread over PARTITIONS partitions."""
    connection = connect(servers, 60)
    error, detail = connection.call("create_topics", {topic: TopicSpec(PARTITIONS)})[topic]
    if error is not None:
        raise error(detail)
    now = int(time.time() * 1000)  # older records would be gone in a minute: a broker keeps a week
    batch = encode_batch([(now + number // 100, None, VALUE, ()) for number in range(BATCH)])
    for number in range(PARTITIONS):
        left = records // PARTITIONS // BATCH
        while left:
            some = min(left, _AT_ONCE)
            answer = connection.call("produce", {(topic, number): [batch] * some}, -1)
            if answer[topic, number].error is not None:
                raise answer[topic, number].error(answer[topic, number].detail)
            left -= some


def filled(records: int) -> int:
    """The number of records that :func:`fill` writes."""
    return records // PARTITIONS // BATCH * BATCH * PARTITIONS


class MemorySource(DataSource):
    """The same columns and rows as the topic has, from memory: the upper limit of a Python source."""

    @classmethod
    def name(cls) -> str:
        return "memory_rows"

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
            "timestampType int"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return _MemoryReader(int(self.options["records"]))


class _MemoryReader(DataSourceReader):
    def __init__(self, records: int) -> None:
        self._rows = filled(records) // PARTITIONS

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = _arrow_batch(partition.value)
        for begin in range(0, self._rows, ROWS):
            yield batch.slice(0, min(ROWS, self._rows - begin))


def _arrow_batch(partition: int) -> pa.RecordBatch:
    batch = encode_batch([(int(time.time() * 1000), None, VALUE, ())] * ROWS)
    columns = read_columns(batch, 0, ROWS)
    assert columns is not None
    return pa.record_batch(
        {
            "key": columns.keys,
            "value": columns.values,
            "topic": pa.repeat(pa.scalar("bench"), ROWS),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), ROWS),
            "offset": pa.array(columns.offsets),
            "timestamp": pa.array(columns.timestamps * 1000).cast(pa.timestamp("us", tz="UTC")),
            "timestampType": pa.repeat(pa.scalar(0, pa.int32()), ROWS),
        }
    )
