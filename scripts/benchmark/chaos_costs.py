"""Costs of a broker that could misbehave and does not: processor time beside that of a plain one."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

from line import Line, measurement, pick, rate
from processes import Figures

ROUNDS = 7
ROUND_TRIPS = 300  # records sent and waited for, one by one
RECORDS = 20_000  # records sent at once, and iterated


def costs() -> Figures:
    """Records in a second of processor time, one by one and at once, of a Broker, of a TestBroker and of one
    with chaos and no faults: the best of several rounds, in which the three take turns."""
    from dafka import Broker
    from dafka.testing import TestBroker, chaos

    made: list[Callable[[], Any]] = [
        lambda: Broker(listen="127.0.0.1:0"),
        TestBroker,
        lambda: chaos.plan([]),
    ]
    best = [[0.0, 0.0] for _ in made]
    for _ in range(ROUNDS):
        for position, make in enumerate(made):
            best[position] = [max(pair) for pair in zip(best[position], _round(make), strict=True)]
    return tuple(figure for pair in best for figure in pair)


def _round(make: Callable[[], Any]) -> list[float]:
    from compat.kafka import KafkaConsumer, KafkaProducer

    with make() as broker:
        servers = broker.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers) as producer:
            producer.send("t", b"x" * 100).get(100)
            began = process_time()
            for _ in range(ROUND_TRIPS):
                producer.send("t", b"x" * 100).get(100)
            single = ROUND_TRIPS / (process_time() - began)
            consumer = KafkaConsumer("t", bootstrap_servers=servers, auto_offset_reset="earliest")
            began = process_time()
            for _ in range(RECORDS):
                producer.send("t", b"x" * 100)
            producer.flush()
            for _ in range(ROUND_TRIPS + 1 + RECORDS):
                next(consumer)
            many = RECORDS / (process_time() - began)
            consumer.close()
    return [single, many]


_costs = measurement(costs)

CHAOS_LINES = [
    Line(
        f"chaos: {name}, {how}",
        rate,
        pick(_costs, 2 * place + position),
        pick(_costs, position),
        "Broker",
        least_ratio=least,
    )
    for place, name, least in ((1, "TestBroker", 0.9), (2, "no faults in the plan", None))
    for position, how in enumerate(("records one by one", "records at once"))
]
