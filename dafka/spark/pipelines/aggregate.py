"""Windows over JSON events: counts, sums and means by key, to a topic or to Parquet.

The schema of the values is declared, and a value that does not fit it ends the query with the reason, unless
bad values are to be left out. An event counts in the window of its time; windows wait for late events as long
as the watermark says, and are written once, when they are complete. Those that are still open when a run ends
are kept in the checkpoint, and how many they are is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from dafka.spark.errors import OptionError
from dafka.spark.pipelines.running import (
    Command,
    pipeline,
    read_stream,
    run_query,
    source_options,
    trigger_options,
)


class Aggregated(NamedTuple):
    """The counts of a run.

    ``read``: events. ``open``: windows (of each key) that are not written, because events of them may still
    come. ``watermark``: events before this time come too late, "" if it is not known.
    """

    read: int
    open: int
    watermark: str

    def __str__(self) -> str:
        if not self.open:
            return f"{self.read} events read"
        behind = f" (now {self.watermark})" if self.watermark else ""
        which, their = ("1 window is", "its") if self.open == 1 else (f"{self.open} windows are", "their")
        return (
            f"{self.read} events read; {which} still open and not written: the checkpoint keeps what is "
            f"counted until the watermark{behind} passes {their} end, which later events move"
        )


class Windows(NamedTuple):
    """The windows and their columns. Times as in Spark (``10 minutes``); columns are those of ``schema``."""

    schema: str
    time: str
    size: str
    watermark: str
    by: Sequence[str] = ()
    sums: Sequence[str] = ()
    means: Sequence[str] = ()
    skip_bad: bool = False


def windows_of(records: DataFrame, windows: Windows) -> DataFrame:
    """A row for each window and key: ``start``, ``end``, the key, ``count``, ``sum_X``, ``mean_X``.

    Raises OptionError for columns that the schema does not have.
    """
    text = fn.col("value").cast("string")
    mode = {"mode": "PERMISSIVE" if windows.skip_bad else "FAILFAST"}
    events = records.select(fn.from_json(text, windows.schema, mode).alias("event")).select("event.*")
    for column in (windows.time, *windows.by, *windows.sums, *windows.means):
        if column not in events.columns:
            raise OptionError(f"the schema has no column {column!r}; it has {', '.join(events.columns)}")
    kind = events.schema[windows.time].dataType.simpleString()
    if kind != "timestamp":
        raise OptionError(
            f"column {windows.time} holds the time of an event: it has to be timestamp, not {kind}"
        )
    measures = [
        fn.count("*").alias("count"),
        *(fn.sum(column).alias(f"sum_{column}") for column in windows.sums),
        *(fn.avg(column).alias(f"mean_{column}") for column in windows.means),
    ]
    found = (
        events.withWatermark(windows.time, windows.watermark)
        .groupBy(fn.window(windows.time, windows.size), *windows.by)
        .agg(*measures)
    )
    rest = [column for column in found.columns if column != "window"]
    return found.select(fn.col("window.start").alias("start"), fn.col("window.end").alias("end"), *rest)


def aggregate_topics(
    spark: SparkSession,
    source: Mapping[str, str],
    windows: Windows,
    checkpoint: str,
    *,
    folder: str | None = None,
    topic: str | None = None,
    every: str | None = None,
) -> Aggregated:
    """Write windows to Parquet in ``folder``, or as JSON to ``topic``; windows are written when complete."""
    found = windows_of(read_stream(spark, source), windows)
    if folder is not None:
        writer = found.writeStream.format("parquet").option("path", folder)
    else:
        keys = [fn.col(column).cast("string") for column in windows.by]
        key = fn.concat_ws(",", *keys) if keys else fn.lit(None).cast("string")
        records = found.select(key.alias("key"), fn.to_json(fn.struct(*found.columns)).alias("value"))
        target = {"kafka.bootstrap.servers": source["kafka.bootstrap.servers"], "topic": str(topic)}
        writer = records.writeStream.format("dafka").options(exactlyOnce="true", **target)
    read, last = run_query(writer, checkpoint, every)
    operators = last["stateOperators"] if last else []
    times = last.get("eventTime", {}) if last else {}
    return Aggregated(read, sum(one["numRowsTotal"] for one in operators), times.get("watermark", ""))


def target_options(command: Command) -> Command:
    """The target of the windows: the command gets ``folder`` or ``topic``, and None for the other one."""

    @click.option("--to-parquet", "folder", metavar="FOLDER", help="Write windows there ...")
    @click.option("--to-topic", "topic", metavar="TOPIC", help="... or to this topic, as JSON, exactly once.")
    @wraps(command)
    def wrapped(*args: Any, folder: str | None, topic: str | None, **keywords: Any) -> Any:
        if (folder is None) == (topic is None):
            raise click.UsageError("say either --to-parquet or --to-topic")
        return command(*args, folder=folder, topic=topic, **keywords)

    return wrapped


@click.command()
@source_options
@click.option(
    "--schema", required=True, metavar="DDL", help='Of the values: "at timestamp, user string, n int".'
)
@click.option("--time", required=True, metavar="COLUMN", help="When an event happened.")
@click.option("--window", "size", default="1 hour", show_default=True, help="Length of a window.")
@click.option(
    "--watermark", default="10 minutes", show_default=True, help="How long late events are waited for."
)
@click.option("--by", multiple=True, metavar="COLUMN", help="Windows for each value of it; may be repeated.")
@click.option("--sum", "sums", multiple=True, metavar="COLUMN", help="Add it up; may be repeated.")
@click.option("--mean", "means", multiple=True, metavar="COLUMN", help="Its mean; may be repeated.")
@click.option("--skip-bad", is_flag=True, help="Leave out values that do not fit.  [default: fail]")
@target_options
@click.option("--checkpoint", required=True, metavar="FOLDER", help="Where the query keeps how far it is.")
@trigger_options
@pipeline
def aggregate(
    spark: SparkSession,
    source: dict[str, str],
    schema: str,
    time: str,
    size: str,
    watermark: str,
    by: tuple[str, ...],
    sums: tuple[str, ...],
    means: tuple[str, ...],
    skip_bad: bool,
    folder: str | None,
    topic: str | None,
    checkpoint: str,
    every: str | None,
) -> str:
    """Count, add up and average JSON events of topics in windows of time."""
    windows = Windows(schema, time, size, watermark, by, sums, means, skip_bad)
    return str(aggregate_topics(spark, source, windows, checkpoint, folder=folder, topic=topic, every=every))


if __name__ == "__main__":
    aggregate()
