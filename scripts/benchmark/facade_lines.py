"""The lines about larger loads on the facade, each beside kafka-python over TCP doing the same."""

from __future__ import annotations

from functools import partial

from facade_loads import Load, by_kafka_python, group, in_process, listening_broker, paced_latency, throughput
from line import Figure, Line, measurement, milliseconds, pick, rate, reference_measurement

BESIDE = "kafka-python over TCP"


def _both(
    load: Load, partitions: int, ours: dict[str, object], theirs: dict[str, object]
) -> list[list[Figure]]:
    """Figures of the load by ours and by kafka-python, one pair for each that the load returns."""
    here = measurement(partial(in_process, load, partitions=partitions, **ours))
    there = reference_measurement(
        partial(by_kafka_python, load=load, **theirs), partial(listening_broker, partitions=partitions)
    )
    return [[pick(here, position), pick(there, position)] for position in range(3)]


def _throughput(name: str, partitions: int, count: int, fewer: int, **options: object) -> list[Line]:
    sent, read, _ = _both(throughput, partitions, {"count": count, **options}, {"count": fewer, **options})
    return [
        Line(f"{name}: KafkaProducer.send, flushed", rate, *sent, BESIDE),
        Line(f"{name}: KafkaConsumer, iterated", rate, *read, BESIDE),
    ]


members = _both(group, 64, {"members": 10, "count": 200_000}, {"members": 10, "count": 40_000})
paced = _both(paced_latency, 4, {"seconds": 3.0}, {"seconds": 3.0})

FACADE_LINES = [
    *_throughput("1 kB values", 4, 100_000, 20_000, size=1000),
    *_throughput("100 kB values", 4, 2000, 1000, size=100_000),
    *_throughput("gzip, 100 B values", 4, 200_000, 40_000, size=100, compression="gzip"),
    *_throughput("1000 partitions", 1000, 100_000, 20_000, size=100),
    Line("10 members, 64 partitions: read", rate, *members[0], BESIDE),
    Line("10 members, 64 partitions: rebalance", milliseconds, *members[1], BESIDE, most=0.5),
    Line("latency at 10 000 records/s, p50", milliseconds, *paced[0], BESIDE),
    Line("latency at 10 000 records/s, p99", milliseconds, *paced[1], BESIDE),
    Line("latency at 10 000 records/s, p99.9", milliseconds, *paced[2], BESIDE),
]
