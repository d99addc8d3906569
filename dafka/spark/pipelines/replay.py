"""Parquet that ``archive`` wrote back into topics, with keys, headers and timestamps, in order by key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import click
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dafka.spark.cluster import cluster
from dafka.spark.errors import OptionError
from dafka.spark.options import EARLIEST, LATEST, Access, write_options
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
    append: bool = False,
) -> int:
    """Write the archived records to topics of their names, or the one in ``target``; how many they were.

    Without a topic in ``target``, a topic of the archive that has records is refused with an OptionError:
    it would have them twice. With ``append`` the records go behind them.

    The records of one partition are written by one task in their order, so those of one key keep it.
    ``where`` is a condition in SQL over the columns. ``rate`` is records a second, all tasks together. With
    ``keep_partitions`` records go to the partitions they came from, otherwise by their keys.
    """
    records = spark.read.schema(SCHEMA).parquet(f"{folder}/{RECORDS}")
    if where is not None:
        records = records.where(where)
    options = write_options(target)
    if options.topic is None and not append:
        topics = [row.topic for row in records.select("topic").distinct().collect()]
        _check_empty(options.access, topics)
    counted = records.count()
    records = records.repartition("topic", "partition").sortWithinPartitions("topic", "partition", "offset")
    columns = ["key", "value", "headers", "topic", "timestamp", *(["partition"] if keep_partitions else [])]
    records = records.select(*columns)
    if rate is not None:
        records = throttled(records, rate)
        if options.exactly_once and counted / rate > options.transaction_timeout:
            raise OptionError(
                f"{counted} records at {rate:g} a second take {counted / rate:.0f} s, longer than a "
                f"transaction may ({options.transaction_timeout:g} s): a higher rate, fewer records, or at "
                "least once"
            )
    records.write.format("dafka").mode("append").options(includeTimestamp="true", **target).save()
    return counted


def _check_empty(access: Access, topics: Sequence[str]) -> None:
    there = cluster(access)
    partitions = [
        (topic, partition.number)
        for topic, described in there.metadata(topics).topics.items()
        for partition in described.partitions
    ]
    starts = there.offsets(dict.fromkeys(partitions, EARLIEST))
    ends = there.offsets(dict.fromkeys(partitions, LATEST))
    if full := sorted({topic for topic, number in partitions if starts[topic, number] < ends[topic, number]}):
        raise OptionError(
            f"{'topic' if len(full) == 1 else 'topics'} {', '.join(map(repr, full))} at {access.servers} "
            f"{'has' if len(full) == 1 else 'have'} records, and would have those of the archive twice if it "
            "was made from them: --topic for another topic, or --append to write behind what is there"
        )


def throttled(frame: DataFrame, rate: float) -> DataFrame:
    """The same rows, no more than ``rate`` a second from all tasks that run at a time."""
    if not rate > 0:  # nor NaN
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
@click.option("--topic", help="The topic for all records.  [default: the ones they came from, if empty]")
@click.option("--append", is_flag=True, help="Write to the topics they came from, behind what is there.")
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
    append: bool,
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
        spark,
        folder.rstrip("/"),
        target,
        where=where,
        rate=rate,
        keep_partitions=keep_partitions,
        append=append,
    )
    return f"{count} records written"


if __name__ == "__main__":
    replay()
