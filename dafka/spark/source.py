"""The data source ``dafka``: the classes that Spark calls. The modules next to this one do the work.

Columns and options are those of Spark's own Kafka source. Spark calls this in several Python processes: one
that makes the data source, one that plans (for a streaming query it stays), and those of the executors,
which read and write. Each finds brokers by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from dafka.spark.admission import Holdback, available, limited
from dafka.spark.cluster import cluster
from dafka.spark.errors import ColumnError, reason_first
from dafka.spark.filters import Pushed
from dafka.spark.interpreter import check_workers
from dafka.spark.options import ReadOptions, read_options, write_options
from dafka.spark.planning import (
    Offsets,
    OffsetsJson,
    Planner,
    check_batch,
    check_streaming,
    from_json,
    to_json,
)
from dafka.spark.ranges import OffsetRange
from dafka.spark.reading import RangeReader
from dafka.spark.sink import BatchSink, StreamSink, check_target

FORMAT = "dafka"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
SCHEMA_WITH_HEADERS = StructType([*SCHEMA.fields, StructField("headers", _HEADERS)])


def register(spark: SparkSession) -> None:
    """Make the format ``dafka`` known to a session, and have it push filters down to Python sources.

    Raises :class:`dafka.spark.interpreter.InterpreterError` if Spark's Python workers lack what they need.
    """
    check_workers(spark)
    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(DafkaDataSource)


class DafkaDataSource(DataSource):
    """Topics of Dafka's broker, or of Kafka, as tables and streams."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format()``."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns, after a look at the options: this is the first call of every read."""
        with reason_first():
            return SCHEMA_WITH_HEADERS if read_options(self.options).include_headers else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        with reason_first():
            return BatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        with reason_first():
            return StreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """For ``df.write``."""
        with reason_first():
            options = write_options(self.options)
            sink = BatchSink(options, schema, overwrite)
            check_target(options)
            return sink

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        """For ``df.writeStream``. In ``outputMode("complete")``, which is to overwrite, each micro-batch
        appends the whole result, as with Spark's own Kafka sink."""
        with reason_first():
            return StreamSink(write_options(self.options), schema)


class RangePartition(InputPartition):
    """The range that a task reads."""

    def __init__(self, offsets: OffsetRange, min_timestamp: int | None = None) -> None:
        self.offsets = offsets
        self.min_timestamp = min_timestamp


class _Reading:
    """The base of both readers: options, columns, and how a task reads."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options: ReadOptions = read_options(options)
        self._columns = _columns(schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a partition; on an executor."""
        with reason_first():
            if isinstance(partition, RangePartition):  # for an empty plan Spark makes a partition of its own
                options = self._options
                reader = RangeReader(
                    cluster(options.access),
                    self._columns,
                    fail_on_data_loss=options.fail_on_data_loss,
                    read_committed=options.read_committed,
                    fetch_bytes=options.fetch_bytes,
                    min_timestamp=partition.min_timestamp,
                )
                yield from reader.read(partition.offsets)

    def _planner(self) -> Planner:
        return Planner(cluster(self._options.access), self._options)


class BatchReader(_Reading, DataSourceReader):
    """One batch query."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        check_batch(self._options)
        self._pushed = Pushed()

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        """Take the filters on topic, partition, offset and timestamp."""
        return self._pushed.take(filters)

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges to read; on the driver."""
        with reason_first():
            planner = self._planner()
            ranges = self._pushed.apply(planner.batch())
            oldest = self._pushed.min_timestamp
            if oldest is not None:
                ranges = planner.from_timestamp(ranges, oldest)
            return [RangePartition(offsets, oldest) for offsets in planner.cut(ranges)]


class StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One streaming query. All but :meth:`read` is called on the driver, in one process that stays."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        self._holdback = Holdback(self._options.min_offsets_per_trigger, self._options.max_trigger_delay)
        self._what_is_there_now = False
        self._target: Offsets | None = None
        self._reported: Offsets | None = None

    def initialOffset(self) -> OffsetsJson:
        """Where a new query begins."""
        with reason_first():
            return to_json(self._planner().initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limits of the options. Spark takes one; with both, the maximum is kept here."""
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the query at the offsets of the first look."""
        self._what_is_there_now = True

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:
        """The end of the next micro-batch."""
        with reason_first():
            planner = self._planner()
            before = from_json(start)
            target = self._target
            latest = planner.latest(before) if target is None else planner.reconciled(before, target)
            if self._what_is_there_now:
                self._target = latest
            self._reported = latest
            begin = planner.with_added(before, latest)
            if isinstance(limit, ReadAllAvailable):
                return to_json(latest)
            may_wait = not self._what_is_there_now
            if may_wait and self._holdback.holds(available(begin, latest), time.monotonic()):
                return start
            most = self._options.max_offsets_per_trigger
            return to_json(latest if most is None else limited(begin, latest, most))

    def reportLatestOffset(self) -> OffsetsJson | None:
        """The ends of all partitions when they were last asked for: the lag is the distance to them."""
        return None if self._reported is None else to_json(self._reported)

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        """The ranges of a micro-batch."""
        with reason_first():
            ranges = self._planner().ranges(from_json(start), from_json(end))
            return [RangePartition(offsets) for offsets in ranges]

    def _planner(self) -> Planner:
        # Not in the constructor: PySpark reports errors raised there as its own.
        check_streaming(self._options)
        return super()._planner()


def _columns(schema: StructType) -> list[str]:
    """The names of the columns wanted: all of the source's, or those of a schema that the user gave."""
    known = {field.name: field.dataType for field in SCHEMA_WITH_HEADERS}
    for field in schema:
        if field.name not in known:
            raise ColumnError(f"there is no column {field.name!r} to read; there are {', '.join(known)}")
        if field.dataType != known[field.name]:
            kind = known[field.name].simpleString()
            raise ColumnError(f"column {field.name} is {kind}, not {field.dataType.simpleString()}")
    return list(schema.fieldNames())
