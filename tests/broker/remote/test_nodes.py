"""Connections to one broker: their sharing, and the effect of a failed attempt on waiting calls."""

from __future__ import annotations

import time
from contextlib import suppress

import gevent
from broker.clients import batch
from broker.remote.fake_broker import HANG, fetched, produced
from kafka.errors import (
    KafkaConnectionError,
)
from timing import until

from dafka.broker.interface.broker import FetchFrom

API_VERSIONS = 18

PRODUCE, FETCH = 0, 1
BATCH = batch(b"v")


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
        greens = [gevent.spawn(failing) for _ in range(100)]
        return [green.get(timeout=200) for green in greens]

    assert max(remote.hub.run(work)) < 100 * 0.5 / 2
    until(lambda: broker.connections == 1)

    remote.hub.run(failing)  # a later call makes an attempt of its own
    until(lambda: broker.connections == 2)


def test_connections_are_shared_and_given_back(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[PRODUCE] = produced
    broker.answers[FETCH] = lambda request: fetched(request, BATCH)
    remote = remote_to(fake.addresses)

    def work():
        def one():
            for _ in range(5):
                remote.remote.produce({("t", 0): [BATCH]})
                remote.remote.metadata(["t"])
                wanted = {("t", 0): FetchFrom(0, 1000)}
                remote.remote.fetch(wanted, max_wait=1.0, min_bytes=1, max_bytes=1000)

        gevent.joinall([gevent.spawn(one) for _ in range(20)], raise_error=True, timeout=200)

    remote.hub.run(work)
    # The bootstrap connection, one for everything, one for produce, and the fetches that overlapped.
    assert broker.connections <= 3 + 20
    assert broker.counts[PRODUCE] == 100


def test_an_owner_has_a_connection_of_its_own_until_it_is_forgotten(fake, remote_to):
    remote = remote_to(fake.addresses)

    def work():
        node = remote.remote.cluster.nodes[0]
        with node.waiting("one") as own:
            pass
        with node.waiting() as others, node.waiting("two") as another:
            assert len({own, others, another}) == 3
        with node.waiting("one") as again, node.waiting() as shared:
            assert again is own
            assert shared is others
        remote.remote.forget_connection("one")
        assert own.closed
        assert not another.closed
        with node.waiting("one") as new:
            assert new is others

    remote.hub.run(work)


def test_an_owner_has_another_connection_after_a_request_that_was_given_up(fake, remote_to):
    remote = remote_to(fake.addresses)

    def work():
        node = remote.remote.cluster.nodes[0]
        with suppress(KeyError), node.waiting("one") as own:
            raise KeyError
        assert own.closed
        with node.waiting("one") as new:
            assert new is not own
        with node.waiting("one") as again:
            assert again is new

    remote.hub.run(work)
