"""Connections to one broker: who shares them, and what a failure to open one means for the others."""

from __future__ import annotations

import time

import gevent
from broker.remote.fake_broker import HANG
from kafka.errors import KafkaConnectionError

API_VERSIONS = 18


def test_those_that_wait_for_a_connection_share_the_failure_to_open_it(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[API_VERSIONS] = lambda request: HANG
    remote = remote_to(fake.addresses, connect_timeout=0.5)

    def failing() -> float:
        started = time.monotonic()
        try:
            remote.remote.metadata(None)
        except KafkaConnectionError as error:
            assert "has not answered within 500 ms" in str(error)
            return time.monotonic() - started
        raise AssertionError("it did not fail")

    def work() -> list[float]:
        greens = [gevent.spawn(failing) for _ in range(20)]
        return [green.get(timeout=30) for green in greens]

    assert max(remote.hub.run(work)) < 20 * 0.5 / 2
    assert broker.connections == 1

    remote.hub.run(failing)  # who asks later brings an attempt of its own
    assert broker.connections == 2
