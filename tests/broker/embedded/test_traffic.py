"""What clients read, and how long their calls take."""

from __future__ import annotations

import pytest

from compat.kafka import KafkaConsumer
from dafka.broker import running
from dafka.broker.embedded.traffic import Times
from dafka.testing import TestBroker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_quantiles_are_right_within_a_fifth():
    times = Times(Clock())
    for number in range(1, 1001):
        times.add(number / 1000)
    half, most = times.quantiles(0.5, 0.99)
    assert half == pytest.approx(0.5, rel=0.2)
    assert most == pytest.approx(0.99, rel=0.2)


def test_any_duration_finds_a_place():
    times = Times(Clock())
    for seconds in (-1.0, 0.0, 1e9):
        times.add(seconds)
    assert times.quantiles(0.0)[0] < 1e-6 and times.quantiles(1.0)[0] > 3600


def test_old_durations_do_not_count():
    clock = Clock()
    times = Times(clock)
    times.add(5.0)
    clock.now += 11
    times.add(0.001)
    assert times.quantiles(1.0)[0] == pytest.approx(5.0, rel=0.2)  # of the window before
    clock.now += 11
    assert times.quantiles(1.0)[0] == pytest.approx(0.001, rel=0.2)
    clock.now += 11
    assert times.quantiles(1.0) is None


def test_a_broker_counts_what_is_committed_and_read():
    with TestBroker() as broker:
        broker.preload("t", [b"x" * 100] * 1000)
        consumer = KafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        )
        read = 0
        while read < 1000:
            read += sum(map(len, consumer.poll(1000).values()))
        consumer.close()
        core = next(one.core for one in running.brokers() if one.owner is broker)
        assert core.committed[0] == core.traffic.records == 1000
        assert core.traffic.octets == core.committed[1] > 0
        assert core.traffic.produces.quantiles(0.5) and core.traffic.fetches.quantiles(0.5)
