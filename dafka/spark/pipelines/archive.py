"""Topics to Parquet, partitioned by topic and day: once, or continuously; files hold each record once.

The folder holds the records and the checkpoint of the query; started again, it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping

import click
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from dafka.spark.pipelines.running import (
    pipeline,
    read_stream,
    run,
    source_options,
    trigger_options,
)

RECORDS, CHECKPOINT = "records", "_checkpoint"
SCHEMA = (
    "key binary, value binary, partition int, offset long, timestamp timestamp, timestampType int, "
    "headers array<struct<key:string,value:binary>>, topic string, date date"
)


def archive_topics(
    spark: SparkSession, source: Mapping[str, str], folder: str, every: str | None = None
) -> int:
    """Write what is in the topics to the folder; the number of records written by this run."""
    records = read_stream(spark, source).withColumn("date", fn.to_date("timestamp"))
    writer = records.writeStream.format("parquet").partitionBy("topic", "date")
    return run(writer.option("path", f"{folder}/{RECORDS}"), f"{folder}/{CHECKPOINT}", every)


@click.command()
@click.argument("folder")
@source_options
@trigger_options
@pipeline
def archive(spark: SparkSession, source: dict[str, str], folder: str, every: str | None) -> str:
    """Write topics to Parquet in FOLDER, partitioned by topic and day, each record exactly once."""
    return f"{archive_topics(spark, source, folder.rstrip('/'), every)} records written to {folder}"


if __name__ == "__main__":
    archive()
