"""Parquet that ``archive`` wrote back into topics, with keys, headers and timestamps, in order by key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import click
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dafka.spark.errors import OptionError
from dafka.spark.options import write_options
from dafka.spark.pipelines.archive import RECORDS, SCHEMA
from dafka.spark.pipelines.running import pipeline

_PIECE = 1000  # rows between two looks at the clock


def replay_records(
    spark: SparkSession,
    folder: str,
    target: Mapping[str, str],
    *,
    where: str | None = None,
    rate: float | None = None,
    keep_partitions: bool = False,
) -> int:
    """Write the archived records to topics of their names, or the one in ``target``; how many they were.

    The records of one partition are written by one task in their order, so those of one key keep it.
    ``where`` is a condition in SQL over the columns. ``rate`` is records a second, all tasks together. With
    ``keep_partitions`` records go to the partitions they came from, otherwise by their keys.
    """
    records = spark.read.schema(SCHEMA).parquet(f"{folder}/{RECORDS}")
    if where is not None:
        records = records.where(where)
    counted = records.count()
    records = records.repartition("topic", "partition").sortWithinPartitions("topic", "partition", "offset")
    columns = ["key", "value", "headers", "topic", "timestamp", *(["partition"] if keep_partitions else [])]
    records = records.select(*columns)
    if rate is not None:
        records = throttled(records, rate)
        options = write_options(target)
        if options.exactly_once and counted / rate > options.transaction_timeout:
            raise OptionError(
                f"{counted} records at {rate:g} a second take {counted / rate:.0f} s, longer than a "
                f"transaction may ({options.transaction_timeout:g} s): a higher rate, fewer records, or at "
                "least once"
            )
    records.write.format("dafka").mode("append").options(includeTimestamp="true", **target).save()
    return counted


def throttled(frame: DataFrame, rate: float) -> DataFrame:
    """The same rows, no more than ``rate`` a second from all tasks that run at a time."""
    if rate <= 0:
        raise OptionError(f"a rate is more than 0 records a second, not {rate:g}")
    tasks = min(frame.rdd.getNumPartitions(), frame.sparkSession.sparkContext.defaultParallelism)
    return frame.mapInArrow(_throttle(rate / max(tasks, 1)), frame.schema)


def _throttle(rate: float) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def throttle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started, rows = time.monotonic(), 0
        for batch in batches:
            for begin in range(0, batch.num_rows, _PIECE):
                piece = batch.slice(begin, _PIECE)
                time.sleep(max(started + rows / rate - time.monotonic(), 0))
                rows += piece.num_rows
                yield piece

    return throttle


@click.command()
@click.argument("folder")
@click.option("--bootstrap-servers", required=True, metavar="HOST:PORT", help="Where the topics are.")
@click.option("--topic", help="The topic for all records.  [default: the ones they came from]")
@click.option("--where", metavar="SQL", help="Which records: topic = 'a' and timestamp >= '2024-01-01'.")
@click.option("--rate", type=float, metavar="N", help="Records a second.  [default: as fast as it goes]")
@click.option("--keep-partitions", is_flag=True, help="Write to the partitions that records came from.")
@click.option("--exactly-once", is_flag=True, help="Write in transactions: all of it is seen, or nothing.")
@pipeline
def replay(
    spark: SparkSession,
    folder: str,
    bootstrap_servers: str,
    topic: str | None,
    where: str | None,
    rate: float | None,
    keep_partitions: bool,
    exactly_once: bool,
) -> str:
    """Write the archive in FOLDER back into topics, keeping keys, headers, timestamps and order by key."""
    target = {"kafka.bootstrap.servers": bootstrap_servers, "exactlyOnce": str(exactly_once).lower()}
    if topic is not None:
        target["topic"] = topic
    count = replay_records(
        spark, folder.rstrip("/"), target, where=where, rate=rate, keep_partitions=keep_partitions
    )
    return f"{count} records written"


if __name__ == "__main__":
    replay()
