"""Topics from one cluster to another: from Kafka to Dafka or back, once or continuously.

Both sides go through the format ``dafka``, which speaks to either. With ``--from-format kafka`` reading goes
through Spark's own Kafka source, which comes from Maven Central if the session does not have it. Records keep
partition, key, headers and timestamp; topics that the target lacks are created with as many partitions.
"""

from __future__ import annotations

from collections.abc import Mapping

import click
from pyspark.sql import SparkSession

from dafka.broker.interface.broker import TopicSpec
from dafka.spark.cluster import cluster, reason
from dafka.spark.errors import WriteError
from dafka.spark.kafka_package import add_kafka_source
from dafka.spark.options import read_options, write_options
from dafka.spark.pipelines.running import (
    pipeline,
    read_stream,
    run,
    source_options,
    trigger_options,
)


def migrate_topics(
    spark: SparkSession,
    source: Mapping[str, str],
    target: Mapping[str, str],
    checkpoint: str,
    *,
    from_format: str = "dafka",
    every: str | None = None,
) -> int:
    """Copy the records; how many this run has copied. ``target`` are options of a write.

    ``from_format`` "kafka" reads through Spark's own source. Raises OptionError where that cannot be had.
    """
    create_topics(source, target)
    if from_format == "kafka":
        add_kafka_source(spark)
    records = read_stream(spark, source, from_format)
    writer = records.select("key", "value", "headers", "topic", "partition", "timestamp").writeStream
    writer = writer.format("dafka").options(includeTimestamp="true", **target)
    return run(writer, checkpoint, every)


def create_topics(source: Mapping[str, str], target: Mapping[str, str]) -> None:
    """Create the missing topics, with as many partitions as in the source. Raises WriteError."""
    options = read_options(source)
    counts: dict[str, int] = {}
    for topic, number in cluster(options.access).partitions(options.subscription):
        counts[topic] = max(counts.get(topic, 0), number + 1)
    there = cluster(write_options(target).access)
    known = {name: len(topic.partitions) for name, topic in there.metadata(None).topics.items()}
    missing = {topic: TopicSpec(count) for topic, count in counts.items() if topic not in known}
    few = {topic: count for topic, count in counts.items() if known.get(topic, count) < count}
    for answer in (
        there.call("create_topics", missing) if missing else {},
        there.call("create_partitions", few) if few else {},
    ):
        for topic, outcome in answer.items():
            if outcome.error is not None:
                raise WriteError(f"topic {topic!r} at {there.access.servers}: {reason(outcome.error)}")


@click.command()
@source_options
@click.option("--to", "servers", required=True, metavar="HOST:PORT", help="Where the records go.")
@click.option("--checkpoint", required=True, metavar="FOLDER", help="Where the query keeps how far it is.")
@click.option("--exactly-once", is_flag=True, help="Write in transactions.  [default: at least once]")
@click.option(
    "--from-format",
    type=click.Choice(["dafka", "kafka"]),
    default="dafka",
    show_default=True,
    help="The reader: this project's source, or Spark's own, from Maven Central.",
)
@trigger_options
@pipeline
def migrate(
    spark: SparkSession,
    source: dict[str, str],
    servers: str,
    checkpoint: str,
    exactly_once: bool,
    from_format: str,
    every: str | None,
) -> str:
    """Copy topics to another cluster, with partitions, keys, headers and timestamps."""
    target = {"kafka.bootstrap.servers": servers, "exactlyOnce": str(exactly_once).lower()}
    count = migrate_topics(spark, source, target, checkpoint, from_format=from_format, every=every)
    return f"{count} records copied to {servers}"


if __name__ == "__main__":
    migrate()
