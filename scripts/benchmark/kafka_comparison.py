"""This broker beside Apache Kafka: the same clients with the same settings, one broker after the other.

A turn starts a broker, takes all measurements, each in a fresh client process, and stops it; then the other
one. Both have warmed up but where it is about their start. The table shows medians over the turns. A ratio
above 1 says that this broker is better, whatever is measured. Both brokers have their own defaults, so Apache
Kafka waits three seconds for a new group's members (group.initial.rebalance.delay.ms).
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import bare_loops
import broker_costs
import kafka_clients as clients
import kafka_groups as groups
import kafka_tools
import request_costs
from kafka_servers import SERVERS, Server
from line import microseconds
from lines import megabytes, milliseconds, rate
from processes import Figures, run
from tabulate import tabulate
from tqdm import tqdm

sys.path.append(str(Path(__file__).resolve().parents[1]))

from apache import jars
from apache.node import java

OURS, THEIRS = SERVERS
# Octets of a value, and records: for librdkafka, for clients in Python.
SIZES = {"100 bytes": (100, 400_000, 60_000), "1 kB": (1000, 150_000, 40_000)}
COST_SIZES = {"100 bytes": (100, 2_000_000), "1 kB": (1000, 500_000), "10 kB": (10_000, 50_000)}
BARE_MEGABYTES = 500  # that a loop of Python stores
PARTITIONS = {"one partition": 1, "six": 6}
ROUND_TRIPS = 1000
COLD_RECORDS = 100_000  # by a producer in Java that has only just started
MEMBERS = 100  # of a large group
REQUESTS = 5000  # of each sort, or as many as there is time for
SMALL_REQUESTS = ["Produce", "Fetch", "OffsetCommit", "Heartbeat", "Metadata"]
BESIDE: dict[str, dict[str, int]] = {
    "": {},
    ", a Fetch waits": {"fetches": 1},
    ", a ShareFetch waits": {"share_fetches": 1},
    ", ten ShareFetches wait": {"share_fetches": 10},
    ", a ShareFetch of 300 partitions waits": {"share_fetches": 1, "partitions": 300},
}
HEADERS = ["", OURS, THEIRS, "ratio", "wanted", ""]


Figure = Callable[[Server], float]  # of a running broker


class Line(NamedTuple):
    """A line of the table: higher figures are better, or lower ones; ``least`` is the ratio wanted."""

    name: str
    unit: Callable[[float], str]
    figure: Figure
    higher: bool = True
    least: float | None = None
    cold: bool = False  # measured before the broker has warmed up
    reference: Figure | None = None  # beside this broker, instead of Apache Kafka

    def ratio(self, ours: float, theirs: float) -> float:
        return ours / theirs if self.higher else theirs / ours


def main() -> None:
    options = _parse()
    lines = [line for line in LINES if not options.only or any(word in line.name for word in options.only)]
    if not lines:
        sys.exit("bench: no line has that in its name; these are: " + "; ".join(line.name for line in LINES))
    names = [OURS, THEIRS]
    try:
        jars.classpath()
        java()
    except jars.UnavailableError as error:
        print(f"bench: without Apache Kafka: {error}", file=sys.stderr)
        names = [OURS]
    figures: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tqdm(total=options.runs * len(names) * len(lines), leave=False) as bar:
        for turn in range(options.runs):
            for name in names if turn % 2 == 0 else reversed(names):
                with SERVERS[name]() as server:
                    warm = False
                    for line in lines:
                        if not (line.cold or warm):
                            warm = _warm_up(server)
                        bar.set_description(f"{name}: {line.name}")
                        if name == OURS and line.reference is not None:
                            figures[line.name, THEIRS].append(line.reference(server))
                        if name == OURS or line.reference is None:
                            figures[line.name, name].append(line.figure(server))
                        bar.update()
    rows = [_row(line, figures[line.name, OURS], figures[line.name, THEIRS]) for line in lines]
    style = "github" if options.markdown else "simple"
    alignment = ["left", "right", "right", "right", "right", "left"]
    print(tabulate(rows, headers=HEADERS, tablefmt=style, disable_numparse=True, colalign=alignment))


def _warm_up(server: Server) -> bool:
    octets, count, _ = SIZES["100 bytes"]
    run(partial(clients.librdkafka_consume, servers=server.servers, size=octets, partitions=6, count=count))
    return True


def _row(line: Line, ours: list[float], theirs: list[float]) -> list[str]:
    ratio = line.ratio(median(ours), median(theirs)) if theirs else None
    wanted = "" if line.least is None else f">= {line.least:g}"
    met = "" if ratio is None or line.least is None else "yes" if ratio >= line.least else "NO"
    beside = line.unit(median(theirs)) if theirs else "-"
    return [line.name, line.unit(median(ours)), beside, f"{ratio:.3g}" if ratio else "-", wanted, met]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench kafka", description="Compare this broker with Apache Kafka."
    )
    parser.add_argument("only", nargs="*", metavar="WORD", help="measure the lines with this in their name")
    parser.add_argument("--runs", type=int, default=3, help="the table shows medians of so many runs (3)")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    return parser.parse_args()


def _measured(program: Callable[..., Figures], position: int = 0, **options: object) -> Figure:
    """The figures of one measurement, run in a process of its own."""
    return lambda server: run(partial(program, servers=server.servers, **options))[position]


def _in_process(program: Callable[..., Figures], **options: object) -> Figure:
    return lambda server: run(partial(program, **options))[0]


def _cold_java(server: Server) -> float:
    """Seconds for its first COLD_RECORDS of 100 octets; another Java process each time."""
    topic = clients.new_topic(server.servers, 1)
    return kafka_tools.cold_producer(server.servers, topic, count=COLD_RECORDS, size=100)


def _lines() -> list[Line]:
    lines = [
        Line(
            "broker started to first record",
            milliseconds,
            lambda server: server.first_record,
            higher=False,
            least=20,
            cold=True,
        ),
        Line("memory after the first record", megabytes, Server.resident_memory, False, least=4, cold=True),
        Line("cold Java producer, a broker just started", milliseconds, _cold_java, higher=False, cold=True),
        Line("cold Java producer, the broker is warm", milliseconds, _cold_java, higher=False),
    ]
    for acks in ("1", "all"):
        for size, (octets, count, _) in SIZES.items():
            for partitions, number in PARTITIONS.items():
                options = {"size": octets, "partitions": number, "count": count, "acks": acks}
                name = f"confluent-kafka produce, acks={acks}, {size}, {partitions}"
                lines.append(Line(name, rate, _measured(clients.librdkafka_produce, **options), least=2))
    for size, (octets, count, _) in SIZES.items():
        for partitions, number in PARTITIONS.items():
            options = {"size": octets, "partitions": number, "count": count}
            name = f"confluent-kafka consume, {size}, {partitions}"
            lines.append(Line(name, rate, _measured(clients.librdkafka_consume, **options), least=1.5))
    for size, (octets, _, count) in SIZES.items():
        for partitions, number in PARTITIONS.items():
            options = {"size": octets, "partitions": number, "count": count}
            for verb, program in (
                ("produce", clients.kafka_python_produce),
                ("consume", clients.kafka_python_consume),
            ):
                name = f"kafka-python {verb}, {size}, {partitions}"
                lines.append(Line(name, rate, _measured(program, **options), least=1))
    lines += [
        Line(
            "produce to consume, p50", milliseconds, _measured(clients.latency, 0, count=ROUND_TRIPS), False
        ),
        Line(
            "produce to consume, p99", milliseconds, _measured(clients.latency, 1, count=ROUND_TRIPS), False
        ),
        Line("a new group's first record", milliseconds, _measured(clients.group_start), False, least=30),
        Line("memory after all of this", megabytes, Server.resident_memory, higher=False, least=4),
    ]
    lines += _groups()
    lines += _costs()
    octets, count, _ = SIZES["100 bytes"]
    options = {"size": octets, "partitions": 6, "count": count}
    for verb, over_tcp, embedded in (
        ("KafkaProducer", clients.facade_produce, clients.embedded_produce),
        ("KafkaConsumer", clients.facade_consume, clients.embedded_consume),
    ):
        name = f"compat.kafka {verb} by TCP, beside in process"
        lines.append(
            Line(name, rate, _measured(over_tcp, **options), reference=_in_process(embedded, **options))
        )
    return lines


def _groups() -> list[Line]:
    """Large groups that rebalance, by each protocol, and topics that are queues."""
    lines = []
    for protocol in ("consumer", "classic"):
        figures = _together(groups.rebalance, protocol=protocol, members=MEMBERS, partitions=1000)
        name = f"{MEMBERS} members ({protocol} protocol), 1000 partitions: one more joins"
        lines.append(Line(name, milliseconds, _at(figures, 0), higher=False))
        name = f"the same: a partition has no reader meanwhile, mean ({protocol} protocol)"
        lines.append(Line(name, milliseconds, _at(figures, 1), higher=False))
    octets, count, _ = SIZES["100 bytes"]
    queue = _measured(groups.share, size=octets, count=count)
    lines.append(Line("share group, confluent-kafka, 100 bytes, one member", rate, queue))
    return lines


def _costs() -> list[Line]:
    """The broker's processor time; the clients' is not in it."""

    lines = []
    for size, (octets, count) in COST_SIZES.items():
        figures = _together(broker_costs.records, with_pid=True, size=octets, count=count)
        kinds = (("produced", 2.0), ("produced, in the kernel", None), ("consumed", 1.0))
        for position, (verb, least) in enumerate(kinds):
            name = f"the broker's processor seconds for each GB {verb}, {size}"
            figure = _at(figures, position)
            lines.append(Line(name, "{:.2f} s".format, figure, higher=False, least=least))
    apart, behind = (
        _in_process(bare_loops.stored, count=BARE_MEGABYTES, apart=apart) for apart in (True, False)
    )
    name = "processor seconds for each GB in a loop of Python: files of a megabyte, beside one file"
    lines.append(Line(name, "{:.2f} s".format, apart, higher=False, reference=behind))
    for partitions, count in ((1, 1000), (50, 1000)):
        figures = _together(broker_costs.waiting_fetches, with_pid=True, partitions=partitions, clients=count)
        name = f"the broker's processor time for a fetch that waits in vain, partitions: {partitions}"
        lines.append(Line(name, microseconds, _at(figures, 0), higher=False, least=1))
    costs = {
        f"a record produced{beside}": partial(request_costs.produced, **options)
        for beside, options in BESIDE.items()
    }
    costs |= {f"a small {api}": partial(request_costs.repeated, api=api) for api in SMALL_REQUESTS}
    for what, program in costs.items():
        figure = _at(_together(program, with_pid=True, count=REQUESTS), 0)
        name = f"the broker's processor time for {what}"
        lines.append(Line(name, microseconds, figure, higher=False, least=1))
    return lines


def _together(
    program: Callable[..., Figures], with_pid: bool = False, **options: object
) -> Callable[[Server], Figures]:
    """The figures of one measurement; several lines may ask for them, it is run once for each broker."""

    @lru_cache(maxsize=1)
    def figures(server: Server) -> Figures:
        pid = {"pid": server.pid} if with_pid else {}
        return run(partial(program, servers=server.servers, **pid, **options))

    return figures


def _at(figures: Callable[[Server], Figures], position: int) -> Figure:
    return lambda server: figures(server)[position]


LINES = _lines()

if __name__ == "__main__":
    main()
