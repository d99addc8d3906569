"""The lines of the table."""

from __future__ import annotations

from functools import partial

import disk_log
import embedded_broker
import kafka_python
from chaos_costs import CHAOS_LINES
from console_lines import CONSOLE_LINES
from facade_lines import FACADE_LINES
from facade_loads import listening_broker
from line import Figure, Line, measurement, megabytes, milliseconds, pick, rate, reference_measurement
from native_lines import NATIVE_LINES
from overlay_lines import OVERLAY_LINES
from security_lines import SECURITY_LINES
from zmtp_lines import ZMTP_LINES
from zper_lines import ZPER_LINES

RECORDS = 300_000  # through the embedded broker
REFERENCE_RECORDS = 100_000  # through kafka-python; the mock broker drops what is above 5 MiB in a partition
ROUND_TRIPS = 1000
REFERENCE_ROUND_TRIPS = 100

latencies = measurement(partial(embedded_broker.latency, count=ROUND_TRIPS))
reference_latencies = reference_measurement(
    partial(kafka_python.latency, count=REFERENCE_ROUND_TRIPS), kafka_python.mock_broker
)


def reference_iteration(group: str | None) -> Figure:
    return pick(
        reference_measurement(
            partial(kafka_python.iterate, count=REFERENCE_RECORDS, group=group),
            partial(kafka_python.mock_broker, records=REFERENCE_RECORDS),
        )
    )


def sending(name: str, least: float, **what: bool) -> Line:
    return Line(
        name,
        rate,
        pick(measurement(partial(embedded_broker.send, count=RECORDS, **what))),
        pick(
            reference_measurement(
                partial(kafka_python.send, count=REFERENCE_RECORDS, **what), kafka_python.mock_broker
            )
        ),
        "kafka-python, mock broker",
        least=least,
    )


appending = measurement(disk_log.appending)
large_log = measurement(disk_log.large)

LINES = [
    *NATIVE_LINES,
    *OVERLAY_LINES,
    *ZMTP_LINES,
    *SECURITY_LINES,
    *CHAOS_LINES,
    *CONSOLE_LINES,
    sending("KafkaProducer.send, flushed", 700_000),
    sending("KafkaProducer.send with a key, flushed", 650_000, keyed=True),
    sending("KafkaProducer.send with a key and a header, flushed", 500_000, keyed=True, header=True),
    Line(
        "KafkaProducer.send over TCP, flushed",
        rate,
        pick(
            reference_measurement(
                partial(embedded_broker.send_over_tcp, count=RECORDS),
                partial(listening_broker, partitions=kafka_python.PARTITIONS),
            )
        ),
        pick(
            reference_measurement(
                partial(kafka_python.send, count=REFERENCE_RECORDS), kafka_python.mock_broker
            )
        ),
        "kafka-python, mock broker",
        least=400_000,
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
        "the hub's longest turn while it sends",
        milliseconds,
        pick(measurement(partial(embedded_broker.longest_turn, count=RECORDS))),
        None,
        "",
        most=0.02,
    ),
    *FACADE_LINES,
    *ZPER_LINES,
    Line(
        "import, Broker() up, first record consumed",
        milliseconds,
        pick(measurement(embedded_broker.first_record)),
        pick(reference_measurement(kafka_python.first_record, kafka_python.mock_broker)),
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
    Line(
        "log: batches appended",
        rate,
        pick(appending, 1),
        pick(appending),
        "diskcache, values of 1000 records",
        least_ratio=0.5,
    ),
    Line(
        "log: single messages appended",
        rate,
        pick(appending, 2),
        pick(appending),
        "diskcache, values of 1000 records",
        least_ratio=0.2,
    ),
    Line(
        "log: 10 000 000 records, sequential read",
        rate,
        pick(large_log, 1),
        pick(large_log),
        "diskcache, values of 1000 records",
        least_ratio=1,
    ),
    Line(
        "log: 10 000 000 records, random seek, p99",
        milliseconds,
        pick(large_log, 2),
        None,
        "",
        most=0.005,
    ),
    Line(
        "log: 10 000 000 records, opening",
        milliseconds,
        pick(large_log, 3),
        None,
        "",
        most=1.0,
    ),
    Line(
        "log: retention of half of it, longest append",
        milliseconds,
        pick(large_log, 4),
        None,
        "",
        most=0.1,
    ),
]
