"""Shared by the pipelines: options, sessions, triggers, and how they end."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from dafka.protocol.errors import DafkaError
from dafka.protocol.json_text import read_json
from dafka.spark.cluster import find_broker
from dafka.spark.options import Access, read_options
from dafka.spark.pipelines.interrupting import InterruptedWork, until_signal
from dafka.spark.session import is_submitted, session

Command = Callable[..., Any]
_LOOK = 1  # seconds between two looks at a query
_PAUSE = 0.02  # seconds between two looks at a micro-batch that is to end
BATCH_SECONDS = 10.0  # a micro-batch may take to end when the query is to stop
_MANY = 20  # micro-batches; Spark keeps its reports on the last 100
BROKER_SECONDS = 10.0  # a broker may take to answer before Spark is started
_OURS = re.compile(r"dafka\.spark\.[\w.]+Error: (.*)")
_SETTINGS = {
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
# On this machine Spark's errors in the log are traces of the error that is about to be printed in one line.
_LOCAL = _SETTINGS | {"spark.log.level": "FATAL"}


def pipeline(command: Command) -> Command:
    """Make a command of a function that gets a Spark session as ``spark`` and returns what to say at the end.

    Adds the options that say which session. The brokers must answer before it starts. Errors are one line.
    Ctrl-C and SIGTERM end what goes on for ever (``every``) as it should end; anything else ends unfinished,
    with a shell's exit status for that signal.
    """

    @click.option(
        "--master", metavar="URL", help="Spark's master.  [default: this machine, or spark-submit's]"
    )
    @click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
    @wraps(command)
    def wrapped(*args: Any, master: str | None, conf: tuple[str, ...], **keywords: Any) -> None:
        if wrong := [setting for setting in conf if "=" not in setting]:
            raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE", param_hint="--conf")
        local = master.startswith("local") if master is not None else not is_submitted()
        settings = (_LOCAL if local else _SETTINGS) | dict(setting.split("=", 1) for setting in conf)
        started: list[SparkSession] = []

        def work() -> str:
            find_brokers(keywords)
            spark = session(f"dafka {command.__name__}", master, settings)
            started.append(spark)
            _without_traces_of_the_end(spark)
            try:
                said: str = command(*args, spark=spark, **keywords)
                return said
            finally:
                spark.stop()

        try:
            click.echo(until_signal(work, lambda: _stop(started)))
        except InterruptedWork as interrupted:
            if interrupted.result is None or keywords.get("every") is None:
                sys.exit(128 + interrupted.number)
            click.echo(interrupted.result)
        except (DafkaError, PySparkException, Py4JError) as error:
            raise click.ClickException(reason(error)) from error

    return wrapped


def find_brokers(keywords: Mapping[str, Any]) -> None:
    """Wait for the brokers that a command's arguments name: ``source``, ``bootstrap_servers``, ``servers``.

    BROKER_SECONDS each, unless an option of the source says how long. A query that runs is more patient: its
    broker was there and may come back. Raises OptionError, UnreachableError.
    """
    accesses = []
    if (source := keywords.get("source")) is not None:
        given = {name.lower(): value for name, value in source.items()}
        default = {"kafka.request.timeout.ms": f"{BROKER_SECONDS * 1000:.0f}"}
        accesses.append(read_options(default | given).access)
    for name in ("bootstrap_servers", "servers"):
        if (servers := keywords.get(name)) is not None:
            accesses.append(Access(servers, BROKER_SECONDS))
    with _quiet("dafka.broker.remote"):  # which warns of every attempt
        for access in accesses:
            find_broker(access)


def _without_traces_of_the_end(spark: SparkSession) -> None:
    """Suppress py4j's and PySpark's traces when a signal ends Java; the signal is raised anyway."""
    logging.getLogger().addFilter(_is_not_of_py4j)  # which logs to the root
    with suppress(AttributeError):  # not PySpark's public interface
        accumulators: Any = spark.sparkContext._accumulatorServer
        accumulators.handle_error = lambda *_: None


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def reason(error: BaseException) -> str:
    """The reason of an error in one line: ours without what Spark says around it, or Spark's first line."""
    text = str(error).strip()
    if ours := _OURS.search(text):
        return ours[1].strip()
    return text.splitlines()[0] if text else type(error).__name__


def _stop(started: list[SparkSession]) -> bool:
    # Java may be on its way out as well: spark-submit gets a Ctrl-C of its own.
    with suppress(Exception):
        for spark in started:
            for query in spark.streams.active:
                let_batch_end(query)
                query.stop()
            spark.sparkContext.cancelAllJobs()
    return bool(started)


def let_batch_end(query: StreamingQuery) -> None:
    """Wait for the micro-batch under way, at most BATCH_SECONDS.

    To stop a query in the middle of one ends Python's workers while they work, and they print traces of that.
    """
    deadline = time.monotonic() + BATCH_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(_PAUSE)


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


def run(writer: DataStreamWriter, checkpoint: str, every: str | None) -> int:
    """Run a query to its end, or until it is stopped; returns the number of rows read."""
    return run_query(writer, checkpoint, every)[0]


def run_query(
    writer: DataStreamWriter, checkpoint: str, every: str | None
) -> tuple[int, dict[str, Any] | None]:
    """:func:`run`; returns Spark's last report, too, None if there was none."""
    trigger: dict[str, Any] = {"availableNow": True} if every is None else {"processingTime": every}
    query = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
    read: dict[int, int] = {}  # rows by micro-batch; Spark keeps the last ones only
    try:
        while not query.awaitTermination(_LOOK):
            last = query.lastProgress
            if last is not None and last.batchId - max(read, default=-1) > _MANY:
                read |= rows_by_batch(query)
        rows = sum((rows_committed_last(query) | read | rows_by_batch(query)).values())
        last = query.lastProgress
        return rows, None if last is None else read_json(last.json)
    finally:
        query.stop()


def rows_by_batch(query: StreamingQuery) -> dict[int, int]:
    """How many rows each of the last micro-batches had, by Spark's reports."""
    return {progress.batchId: progress.numInputRows for progress in query.recentProgress}


def rows_committed_last(query: StreamingQuery) -> dict[int, int]:
    """The micro-batch that this run executed last, if it is committed, and the rows that it has read.

    Spark reports a micro-batch only after it is committed: there is no report of the one in which the query
    is stopped between the two. The plan that was executed has counted its rows, and is not public.
    """
    stream = query._jsq.streamingQuery()
    executed = stream.lastExecution()
    committed = stream.commitLog().getLatestBatchId()
    if executed is None or committed.isEmpty() or committed.get() != executed.currentBatchId():
        return {}
    leaves = executed.executedPlan().collectLeaves()
    counts = [leaves.apply(number).metrics().get("numOutputRows") for number in range(leaves.size())]
    return {executed.currentBatchId(): sum(count.get().value() for count in counts if count.isDefined())}
