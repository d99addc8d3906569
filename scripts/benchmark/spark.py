"""`scripts/bench spark`: the data source beside a source in memory, and beside Spark's own Kafka source.

Records have values of 100 bytes, in six partitions; Spark is local with two cores. Every reading is timed to
a count and a sum of lengths, or to a streaming query's end. Spark's own source is measured where its package
can be had from Maven Central, on this project's broker and, where scripts/apache_kafka runs, on Apache Kafka.
Each query runs `--runs` times after one that is not counted; the table shows medians.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from uuid import uuid4

from pyspark.sql import SparkSession
from spark_sources import MemorySource, fill, filled
from tabulate import tabulate

from dafka import Broker
from dafka.spark import session
from dafka.spark.errors import OptionError
from dafka.spark.kafka_package import add_kafka_source

ROOT = Path(__file__).parents[2]
WANTED = 0.25  # of the source in memory
HEADERS = ["", "records/s", "reference", "", "ratio", "wanted", ""]
Row = list[str]


def main() -> None:
    options = parse()
    here = str(Path(__file__).parent)  # Spark's Python workers import the source in memory from there
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    with ExitStack() as stack:
        spark, kafka = start(stack, options.kafka)
        spark.dataSource.register(MemorySource)
        broker = stack.enter_context(Broker(listen="127.0.0.1:0"))
        servers = broker.bootstrap_servers
        fill(servers, "bench", options.records)
        if kafka:
            apache = stack.enter_context(apache_kafka())
            if apache is not None:
                fill(apache, "bench", options.records)
        else:
            apache = None
        print(tabulate(rows(spark, servers, apache, kafka, options), headers=HEADERS, disable_numparse=True))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench spark", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000, help="to be read (10 000 000)")
    parser.add_argument("--writes", type=int, default=1_000_000, help="to be written (1 000 000)")
    parser.add_argument("--runs", type=int, default=3, help="the table shows medians of so many runs (3)")
    parser.add_argument("--no-kafka", dest="kafka", action="store_false", help="without Spark's Kafka source")
    return parser.parse_args()


def start(stack: ExitStack, kafka: bool) -> tuple[SparkSession, bool]:
    """A session, with Spark's Kafka source if its package can be had."""
    conf = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "2g"}
    spark = session("bench", conf=conf)
    stack.callback(spark.stop)
    if kafka:
        try:
            print(f"Spark's own source: {add_kafka_source(spark)}, on Spark {spark.version}")
        except OptionError as error:
            print(f"{error}; it is left out.")
            kafka = False
    return spark, kafka


@contextmanager
def apache_kafka() -> Iterator[str | None]:
    """The address of an Apache Kafka; None, with the reason printed, where it cannot run."""
    command = [str(ROOT / "scripts" / "apache_kafka"), "run"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            print("Apache Kafka cannot be had here; it is left out.")
        yield address or None
    finally:
        process.stdin.close()
        process.wait(30)


def rows(
    spark: SparkSession, servers: str, apache: str | None, kafka: bool, options: argparse.Namespace
) -> Iterator[Row]:
    count, runs = filled(options.records), options.runs

    def timed(records: int, run: Callable[[], None]) -> float:
        seconds = []
        for _ in range(runs + 1):
            began = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - began)
        return records / median(seconds[1:])

    def batch(form: str, **settings: str) -> float:
        return timed(count, lambda: check(spark, form, settings, count))

    def stream(form: str, address: str) -> float:
        return timed(count, lambda: to_the_end(spark, form, address))

    def writing(form: str, address: str) -> float:
        return timed(options.writes, lambda: write(spark, form, address, options.writes))

    def topic(address: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": address, "subscribe": "bench"}

    memory = batch("memory_rows", records=str(options.records))
    ours = batch("dafka", **topic(servers))
    yield line("batch read", ours, memory, "Python source, same batches from memory", WANTED)
    streamed, written = stream("dafka", servers), writing("dafka", servers)
    yield line("AvailableNow read", streamed, memory, "the same", WANTED)
    yield line(f"batch write of {options.writes:,}", written)
    for name, address in (("this broker", servers), ("Apache Kafka", apache)):
        if kafka and address is not None:
            reference = f"Spark's Kafka source, {name}"
            yield line("batch read", ours, batch("kafka", **topic(address)), reference, 1)
            yield line("AvailableNow read", streamed, stream("kafka", address), reference, 1)
            yield line("batch write", written, writing("kafka", address), f"Spark's Kafka sink, {name}")


def line(
    name: str,
    figure: float | None,
    reference: float | None = None,
    beside: str = "",
    least: float | None = None,
) -> Row:
    ratio = None if reference is None or figure is None else figure / reference
    return [
        name,
        "-" if figure is None else f"{figure:,.0f}",
        "-" if reference is None else f"{reference:,.0f}",
        beside,
        "-" if ratio is None else f"{ratio:.2f}",
        "" if least is None else f">= {least:g}",
        "" if least is None or ratio is None else "yes" if ratio >= least else "NO",
    ]


def check(spark: SparkSession, form: str, settings: dict[str, str], count: int) -> None:
    frame = spark.read.format(form).options(**settings).load()
    row = frame.selectExpr("count(*) as records", "sum(length(value)) as octets").first()
    if row is None or (row.records, row.octets) != (count, 100 * count):
        sys.exit(f"bench: {form} has read {row}, not {count} records")


def to_the_end(spark: SparkSession, form: str, address: str) -> None:
    settings = {"kafka.bootstrap.servers": address, "subscribe": "bench", "startingOffsets": "earliest"}
    frame = spark.readStream.format(form).options(**settings).load()
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        writer.trigger(availableNow=True).start().awaitTermination()


def write(spark: SparkSession, form: str, address: str, count: int) -> None:
    values = spark.range(count).selectExpr("cast(repeat('x', 100) as binary) as value")
    settings = {"kafka.bootstrap.servers": address, "topic": f"written-{uuid4().hex}"}
    values.write.format(form).mode("append").options(**settings).save()


if __name__ == "__main__":
    main()
