"""What the pipelines have in common: options, sessions, triggers, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from dafka.protocol.errors import DafkaError
from dafka.spark.session import session

Command = Callable[..., Any]
_QUIET = {"spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}


def pipeline(command: Command) -> Command:
    """Give a command its Spark session as ``spark``, and the options that say which. Errors are one line."""

    @click.option(
        "--master", metavar="URL", help="Spark's master.  [default: this machine, or spark-submit's]"
    )
    @click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
    @wraps(command)
    def wrapped(*args: Any, master: str | None, conf: tuple[str, ...], **keywords: Any) -> Any:
        if wrong := [setting for setting in conf if "=" not in setting]:
            raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE", param_hint="--conf")
        settings = _QUIET | dict(setting.split("=", 1) for setting in conf)
        try:
            spark = session(f"dafka {command.__name__}", master, settings)
            try:
                return command(*args, spark=spark, **keywords)
            finally:
                spark.stop()
        except (DafkaError, PySparkException) as error:
            raise click.ClickException(str(error).strip().splitlines()[0]) from error

    return wrapped


def source_options(command: Command) -> Command:
    """``--bootstrap-servers``, and which topics: the command gets ``source``, options of a read."""

    @click.option("--bootstrap-servers", required=True, metavar="HOST:PORT", help="Where the topics are.")
    @click.option("--topics", metavar="A,B", help="Topics by their names.")
    @click.option("--pattern", metavar="REGEX", help="Topics by a pattern.")
    @click.option("--option", multiple=True, metavar="NAME=VALUE", help="An option of the data source.")
    @wraps(command)
    def wrapped(
        *args: Any,
        bootstrap_servers: str,
        topics: str | None,
        pattern: str | None,
        option: tuple[str, ...],
        **keywords: Any,
    ) -> Any:
        if (topics is None) == (pattern is None):
            raise click.UsageError("say either --topics or --pattern")
        if wrong := [setting for setting in option if "=" not in setting]:
            raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE", param_hint="--option")
        source = {"kafka.bootstrap.servers": bootstrap_servers, "startingOffsets": "earliest"}
        source |= {"subscribe": topics} if topics is not None else {"subscribePattern": str(pattern)}
        source |= dict(setting.split("=", 1) for setting in option)
        return command(*args, source=source, **keywords)

    return wrapped


def trigger_options(command: Command) -> Command:
    """``--every``: the command gets ``every``, None for once."""
    return click.option(
        "--every",
        metavar="TIME",
        help="Go on for ever, a batch so often (10 seconds).  [default: once, to the end]",
    )(command)


def read_stream(spark: SparkSession, source: Mapping[str, str], form: str = "dafka") -> Any:
    """A streaming frame of topics, with headers."""
    return spark.readStream.format(form).options(includeHeaders="true", **source).load()


def run(writer: DataStreamWriter, checkpoint: str, every: str | None) -> StreamingQuery:
    """Run a query to its end, or for ever; returns it when it is over."""
    trigger: dict[str, Any] = {"availableNow": True} if every is None else {"processingTime": every}
    query = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return query


def rows_read(query: StreamingQuery) -> int:
    """How many rows the last micro-batches of a query had."""
    return sum(progress.numInputRows for progress in query.recentProgress)
