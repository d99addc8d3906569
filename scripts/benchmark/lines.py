"""The lines of the table: what is measured, against what, and how much is wanted."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import embedded_broker
import kafka_python
import native_nodes
import pyzmq_loops
from processes import Figures, run

MESSAGES = 300_000  # through the mesh and the pyzmq loops
RECORDS = 300_000  # through the embedded broker
REFERENCE_RECORDS = 100_000  # through kafka-python; the mock broker drops what is above 5 MiB in a partition
ROUND_TRIPS = 1000
REFERENCE_ROUND_TRIPS = 100

Figure = Callable[[int], float]  # from the number of the turn to what was measured in it


def rate(value: float) -> str:
    return f"{value:,.0f}/s"


def milliseconds(value: float) -> str:
    return f"{1000 * value:,.2f} ms"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


class Line(NamedTuple):
    """``unit`` formats the figures; ``beside`` says what the reference is; at most one bound is set:
    ``least_ratio`` of figure to reference, or ``most`` for the figure itself.
    """

    name: str
    unit: Callable[[float], str]
    measure: Figure
    reference: Figure | None
    beside: str
    least_ratio: float | None = None
    most: float | None = None

    @property
    def wanted(self) -> str:
        if self.least_ratio is not None:
            return f"ratio >= {self.least_ratio:g}"
        return "" if self.most is None else f"<= {self.unit(self.most)}"

    def verdict(self, figure: float, ratio: float | None) -> str:
        if self.least_ratio is not None:
            return "yes" if ratio is not None and ratio >= self.least_ratio else "NO"
        return "" if self.most is None else "yes" if figure <= self.most else "NO"


def measurement(*programs: Callable[..., Figures]) -> Callable[[int], Figures]:
    """The programs' figures one after the other; several lines may ask for them, they are run once a turn."""

    @lru_cache(maxsize=1)
    def figures(turn: int) -> Figures:
        return run(*programs)

    return figures


def pick(figures: Callable[[int], Figures], position: int = 0) -> Figure:
    return lambda turn: figures(turn)[position]


plain_loops = measurement(
    partial(pyzmq_loops.publish, count=MESSAGES), partial(pyzmq_loops.receive, count=MESSAGES)
)
sending = measurement(
    partial(native_nodes.send, count=MESSAGES), partial(native_nodes.receive_plain, count=MESSAGES)
)
consuming = measurement(
    partial(native_nodes.send, count=MESSAGES), partial(native_nodes.consume, count=MESSAGES)
)
storing = measurement(partial(native_nodes.send_and_flush, count=MESSAGES), native_nodes.store)
latencies = measurement(partial(embedded_broker.latency, count=ROUND_TRIPS))
reference_latencies = measurement(
    partial(kafka_python.latency, count=REFERENCE_ROUND_TRIPS), kafka_python.mock_broker
)


def reference_iteration(group: str | None) -> Figure:
    return pick(
        measurement(
            partial(kafka_python.iterate, count=REFERENCE_RECORDS, group=group),
            partial(kafka_python.mock_broker, records=REFERENCE_RECORDS),
        )
    )


LINES = [
    Line(
        "Producer.send",
        rate,
        pick(sending),
        pick(plain_loops),
        "pyzmq: PUB send_multipart loop",
        least_ratio=0.5,
    ),
    Line(
        "Consumer",
        rate,
        pick(consuming, 1),
        pick(plain_loops, 1),
        "pyzmq: SUB recv_multipart loop",
        least_ratio=0.5,
    ),
    Line(
        "Store: sent, stored, acknowledged",
        rate,
        pick(storing),
        pick(plain_loops, 1),
        "pyzmq: SUB recv_multipart loop",
        least_ratio=0.35,
    ),
    Line(
        "KafkaProducer.send, flushed",
        rate,
        pick(measurement(partial(embedded_broker.send, count=RECORDS))),
        pick(measurement(partial(kafka_python.send, count=REFERENCE_RECORDS), kafka_python.mock_broker)),
        "kafka-python, mock broker",
        least_ratio=5,
    ),
    Line(
        "KafkaConsumer, iterated",
        rate,
        pick(measurement(partial(embedded_broker.iterate, count=RECORDS, group=None))),
        reference_iteration(None),
        "kafka-python, mock broker",
        least_ratio=10,
    ),
    Line(
        "KafkaConsumer, iterated, in a group",
        rate,
        pick(measurement(partial(embedded_broker.iterate, count=RECORDS, group="bench"))),
        reference_iteration("bench"),
        "kafka-python, mock broker",
        least_ratio=10,
    ),
    Line(
        "produce to consume, p50",
        milliseconds,
        pick(latencies),
        pick(reference_latencies),
        "kafka-python, mock broker",
        most=0.002,
    ),
    Line(
        "produce to consume, p99",
        milliseconds,
        pick(latencies, 1),
        pick(reference_latencies, 1),
        "kafka-python, mock broker",
    ),
    Line(
        "import, Broker() up, first record consumed",
        milliseconds,
        pick(measurement(embedded_broker.first_record)),
        pick(measurement(kafka_python.first_record, kafka_python.mock_broker)),
        "kafka-python, mock broker running",
        most=0.5,
    ),
    Line(
        "resident memory after 1 000 000 records",
        megabytes,
        pick(measurement(partial(embedded_broker.resident_memory, count=1_000_000))),
        None,
        "",
        most=150e6,
    ),
]
