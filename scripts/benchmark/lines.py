"""The lines of the table: what is measured, against what, and how much is wanted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import embedded_broker
import kafka_python
import native_nodes
import pyzmq_loops
from processes import run


def rate(value: float) -> str:
    return f"{value:,.0f}/s"


def milliseconds(value: float) -> str:
    return f"{1000 * value:,.2f} ms"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


class Line(NamedTuple):
    """``measure`` and ``reference`` give one run's figure, which ``unit`` formats; ``beside`` names the
    reference. At most one of the bounds is set: ``least_ratio`` of figure to reference, ``most`` of the figure.
    """

    name: str
    unit: Callable[[float], str]
    measure: Callable[[], float]
    reference: Callable[[], float] | None
    beside: str
    least_ratio: float | None = None
    most: float | None = None

    @property
    def wanted(self) -> str:
        if self.least_ratio is not None:
            return f"ratio >= {self.least_ratio:g}"
        return "-" if self.most is None else f"<= {self.unit(self.most)}"

    def is_met(self, figure: float, ratio: float | None) -> bool:
        if self.least_ratio is not None:
            return ratio is not None and ratio >= self.least_ratio
        return self.most is None or figure <= self.most


def first_of(*programs: Callable[..., float]) -> Callable[[], float]:
    return lambda: run(*programs)[0]


def second_of(*programs: Callable[..., float]) -> Callable[[], float]:
    return lambda: run(*programs)[1]


MESSAGES = 300_000  # through the mesh and the pyzmq loops
RECORDS = 300_000  # through the embedded broker
REFERENCE_RECORDS = 50_000  # through kafka-python, which is slower
ROUND_TRIPS = 1000
REFERENCE_ROUND_TRIPS = 200

pyzmq = partial(pyzmq_loops.publish, count=MESSAGES), partial(pyzmq_loops.receive, count=MESSAGES)

LINES = [
    Line(
        "native: Producer.send",
        rate,
        first_of(partial(native_nodes.send, count=MESSAGES), partial(native_nodes.receive_plain, count=MESSAGES)),
        first_of(*pyzmq),
        "PUB send_multipart loop",
        least_ratio=0.5,
    ),
    Line(
        "native: Consumer",
        rate,
        second_of(partial(native_nodes.send, count=MESSAGES), partial(native_nodes.consume, count=MESSAGES)),
        second_of(*pyzmq),
        "SUB recv_multipart loop",
        least_ratio=0.5,
    ),
    Line(
        "native: sent, stored and acknowledged",
        rate,
        first_of(partial(native_nodes.send_and_flush, count=MESSAGES), native_nodes.store),
        second_of(*pyzmq),
        "SUB recv_multipart loop",
        least_ratio=0.35,
    ),
    Line(
        "KafkaProducer.send, flushed",
        rate,
        first_of(partial(embedded_broker.send, count=RECORDS)),
        first_of(partial(kafka_python.send, count=REFERENCE_RECORDS), kafka_python.mock_broker),
        "kafka-python",
        least_ratio=5,
    ),
    Line(
        "KafkaConsumer, iterated",
        rate,
        first_of(partial(embedded_broker.iterate, count=RECORDS)),
        first_of(
            partial(kafka_python.iterate, count=REFERENCE_RECORDS),
            partial(kafka_python.mock_broker, records=REFERENCE_RECORDS),
        ),
        "kafka-python",
        least_ratio=10,
    ),
    Line(
        "latency of one record, p50",
        milliseconds,
        first_of(partial(embedded_broker.latency, count=ROUND_TRIPS, percentile=50)),
        first_of(
            partial(kafka_python.latency, count=REFERENCE_ROUND_TRIPS, percentile=50), kafka_python.mock_broker
        ),
        "kafka-python",
        most=0.002,
    ),
    Line(
        "latency of one record, p99",
        milliseconds,
        first_of(partial(embedded_broker.latency, count=ROUND_TRIPS, percentile=99)),
        first_of(
            partial(kafka_python.latency, count=REFERENCE_ROUND_TRIPS, percentile=99), kafka_python.mock_broker
        ),
        "kafka-python",
    ),
    Line(
        "import, Broker() up, first record consumed",
        milliseconds,
        first_of(embedded_broker.first_record),
        first_of(kafka_python.first_record, kafka_python.mock_broker),
        "kafka-python, its broker running",
        most=0.5,
    ),
    Line(
        "resident memory after 1 000 000 records",
        megabytes,
        first_of(partial(embedded_broker.resident_memory, count=1_000_000)),
        None,
        "",
        most=150e6,
    ),
]
