"""Apache Kafka's own tools, ProducerPerformance and ConsumerPerformance: what they measure at its node.

A producer that has only just started, at whatever broker, is :func:`cold_producer`.

The node has its own defaults and the heap of its start script; each tool is a Java of its own, with the heap
of its script. The topic has one partition. The producer's figure begins after as many records as it counts,
when Java has compiled what they need; the consumer's leaves out the time in which it joins its group.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from processes import SECONDS, Figures, MeasurementError

sys.path.append(str(Path(__file__).resolve().parents[1]))

from apache.jars import UnavailableError, classpath
from apache.node import FLAGS, java, running

NODE_HEAP = "1g"
TOOL_HEAP = "512m"
TOPIC = "bench"
STEADY = " steady state records sent, "
FETCHED = "fetch.nMsg.sec"


def tools_measurement(*, count: int, size: int) -> Callable[[int], Figures]:
    """Records a second: written with acks=1, and read. Raises UnavailableError without Java or jars."""

    @lru_cache(maxsize=1)
    def figures(turn: int) -> Figures:
        if (missing := _missing()) is not None:
            raise UnavailableError(missing)
        with running(heap=NODE_HEAP) as node:
            broker = ("--bootstrap-server", node.bootstrap_servers, "--topic", TOPIC)
            records = ("--num-records", str(2 * count))
            sizes = ("--warmup-records", str(count), "--record-size", str(size))
            settings = ("--throughput", "-1", "--command-property", "acks=1")
            written = steady_rate(_run("ProducerPerformance", *broker, *records, *sizes, *settings))
            read = fetch_rate(_run("ConsumerPerformance", *broker, *records))
        return written, read

    return figures


def cold_producer(servers: str, topic: str, *, count: int, size: int) -> float:
    """Seconds that a producer in Java takes from its start, with all that it has not compiled yet, until so
    many records are acknowledged (``acks=1``). Its process's own start is not in it."""
    broker = ("--bootstrap-server", servers, "--topic", topic)
    records = ("--num-records", str(count), "--record-size", str(size), "--throughput", "-1")
    return count / whole_rate(_run("ProducerPerformance", *broker, *records, "--command-property", "acks=1"))


def whole_rate(printed: str) -> float:
    """Records a second over the whole run, from what ProducerPerformance prints last."""
    lines = [line for line in printed.splitlines() if " records sent, " in line]
    if not lines:
        raise MeasurementError(f"ProducerPerformance has no figure: {printed}")
    return float(lines[-1].split(" records sent, ")[1].split(" records/sec")[0])


def steady_rate(printed: str) -> float:
    """Records a second, from what ProducerPerformance prints about those after its warm-up."""
    for line in printed.splitlines():
        if STEADY in line:
            return float(line.split(STEADY)[1].split(" records/sec")[0])
    raise MeasurementError(f"ProducerPerformance has no figure: {printed}")


def fetch_rate(printed: str) -> float:
    """Records a second, from ConsumerPerformance's table of one row."""
    rows = [line.split(", ") for line in printed.splitlines()]
    for names, values in pairwise(rows):
        if FETCHED in names and len(names) == len(values):
            return float(values[names.index(FETCHED)])
    raise MeasurementError(f"ConsumerPerformance has no figure: {printed}")


@cache
def _missing() -> str | None:
    """Why there is no Apache Kafka here; a repository that does not answer is asked once."""
    try:
        java(), classpath()
    except UnavailableError as error:
        return str(error)
    return None


def _run(tool: str, *arguments: str) -> str:
    heap = (f"-Xmx{TOOL_HEAP}", "-cp", classpath(), f"org.apache.kafka.tools.{tool}")
    answer = subprocess.run(
        [java(), *FLAGS, *heap, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if answer.returncode:
        raise MeasurementError(f"{tool} failed:\n{answer.stdout}{answer.stderr}")
    return answer.stdout
