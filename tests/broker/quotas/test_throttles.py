"""Throttles: who shares what, and that names cost bounded memory."""

from __future__ import annotations

import pytest

from dafka.broker.quotas import throttles
from dafka.broker.quotas.throttles import REQUEST_SECONDS, Throttles

RATE, REQUESTED = "producer_byte_rate", "request_percentage"


class Table:
    """Quotas, as a table has them."""

    def __init__(self, quotas):
        self.quotas = quotas

    def has(self, key):
        return any(key in one for one in self.quotas.values())


class Time:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Time()


def test_without_quotas_nobody_waits(clock):
    one = Throttles(Table({}), clock)
    assert not one
    assert one.use(RATE, "alice", "c", 1e18) == 0.0
    assert one.burst(RATE, "alice", "c") == float("inf")


def test_the_clients_of_a_user_share_its_quota_and_others_do_not(clock):
    one = Throttles(Table({(("user", "alice"),): {RATE: 100.0}}), clock)
    assert one and one.has(RATE) and not one.has(REQUESTED)
    assert one.burst(RATE, "alice", "c") == 1000
    assert [one.use(RATE, "alice", client, 1000) for client in ("c", "d", "c")] == [0.0, 10.0, 20.0]
    assert one.use(RATE, "bob", "c", 1e9) == 0.0
    clock.now += 20
    assert one.use(RATE, "alice", "e", 100) == 1.0


def test_requests_are_never_waited_for_longer_than_a_second(clock):
    one = Throttles(Table({(("client-id", "c"),): {REQUESTED: 1.0}}), clock)
    assert one.use(REQUESTED, "alice", "c", 10.5) == 0.5
    assert one.use(REQUESTED, "alice", "c", 1e9) == REQUEST_SECONDS
    clock.now += 20  # and a single long one is forgotten after as long as a burst lasts
    assert one.use(REQUESTED, "alice", "c", 1.0) == 0.0


def test_names_cost_bounded_memory(clock, monkeypatch):
    monkeypatch.setattr(throttles, "THROTTLES_KEPT", 3)
    one = Throttles(Table({(("client-id", None),): {RATE: 100.0}}), clock)
    for number in range(50):
        assert one.use(RATE, "alice", "busy", 1000) == 10.0 * number
        assert one.use(RATE, "alice", f"c{number}", 1) == 0.0
    assert len(one._used) == 3


def test_of_a_long_name_the_beginning_counts(clock):
    one = Throttles(Table({(("user", None), ("client-id", None)): {RATE: 100.0}}), clock)
    assert [one.use(RATE, "u" * 400, "c" * 30_000 + end, 1000) for end in ("a", "b")] == [0.0, 10.0]
    ((_, user, client),) = one._used
    assert (len(user), len(client)) == (255, 255)
