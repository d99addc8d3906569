"""Throttles: shared allowances, and that names cost bounded memory."""

from __future__ import annotations

import pytest

from dafka.broker.quotas import throttles
from dafka.broker.quotas.allowance import Windows
from dafka.broker.quotas.throttles import Throttles

RATE, REQUESTED = "producer_byte_rate", "request_percentage"
MUTATED, CONNECTED = "controller_mutation_rate", "connection_creation_rate"


class Table:
    """Quotas, as a table has them."""

    def __init__(self, quotas, addresses=()):
        self.quotas = quotas
        self._addresses = dict(addresses)

    def of_address(self, known):
        return self.quotas.get(self._addresses.get(known, (("ip", None),)), {})

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
    assert one.use_if_within(RATE, "alice", "c", 1e18) == (True, 0.0)
    assert one.connects("127.0.0.1") == 0.0
    assert one.room(RATE, "alice", "c") == float("inf")
    assert one.owed(RATE, "alice", "c") == 0.0
    assert one.waits == 0 and not one._used


def test_the_clients_of_a_user_share_its_quota_and_others_do_not(clock):
    one = Throttles(Table({(("user", "alice"),): {RATE: 100.0}}), clock)
    assert one and one.has(RATE) and not one.has(REQUESTED)
    assert one.room(RATE, "alice", "c") == 1000
    assert [one.use(RATE, "alice", client, 1000) for client in ("c", "d", "c")] == [0.0, 10.0, 20.0]
    assert one.use(RATE, "bob", "c", 1e9) == 0.0
    assert one.waits == 2
    clock.now += 11
    assert one.use(RATE, "alice", "e", 1100) == pytest.approx(1.0)


def test_requests_are_never_waited_for_longer_than_a_window(clock):
    one = Throttles(Table({(("client-id", "c"),): {REQUESTED: 1.0}}), clock)
    assert one.use(REQUESTED, "alice", "c", 10.5) == pytest.approx(0.5)
    assert one.use(REQUESTED, "alice", "c", 1e9) == 1.0 == one.owed(REQUESTED, "alice", "c")
    clock.now += 11  # and a single long one is forgotten
    assert one.use(REQUESTED, "alice", "c", 1.0) == 0.0


@pytest.mark.parametrize("key", [RATE, MUTATED])
def test_a_quota_close_to_nothing_has_a_time_that_a_response_can_tell(clock, key):
    one = Throttles(Table({(("user", "alice"),): {key: 5e-324}}), clock)
    longest = one.use(key, "alice", "c", 1e6)
    assert 0 < int(1000 * longest) < 2**31
    assert one.owed(key, "alice", "c") == longest
    assert one.use_if_within(key, "alice", "c", 1) == (False, longest)


def test_windows_are_those_that_are_given_and_topics_have_their_own(clock):
    quotas = {(("user", "alice"),): {RATE: 100.0, MUTATED: 10.0}}
    one = Throttles(Table(quotas), clock, Windows(3, 0.5), Windows(2, 1.0))
    assert one.use(RATE, "alice", "c", 150) == pytest.approx(0.5)
    assert one.use_if_within(MUTATED, "alice", "c", 25).used  # 20 at once, and overdrawn by one use
    assert one.use_if_within(MUTATED, "alice", "c", 1) == (False, 0.5)
    assert one.use(MUTATED, "alice", "c", 5) == pytest.approx(1.0)


def test_addresses_are_counted_each_and_the_default_is_for_the_others(clock):
    own, default = (("ip", "LOCALHOST"),), (("ip", None),)
    table = Table({own: {CONNECTED: 2.0}, default: {CONNECTED: 1.0}}, {"127.0.0.1": own})
    one = Throttles(table, clock)
    assert [bool(one.connects("127.0.0.1")) for _ in range(21)] == [False] * 20 + [True]
    assert [bool(one.connects("10.0.0.1")) for _ in range(11)] == [False] * 10 + [True]
    assert not one.connects("10.0.0.2")
    assert 0 < one.connects("127.0.0.1") <= 1.0
    assert one.connects("::ffff:10.0.0.1") > 0  # the same address


def test_debt_and_what_may_be_used_at_once_can_be_asked_without_using_any(clock):
    one = Throttles(Table({(("user", "alice"),): {RATE: 100.0}}), clock)
    one.use(RATE, "alice", "c", 400)
    assert (one.room(RATE, "alice", "d"), one.owed(RATE, "alice", "d")) == (1000.0, 0.0)
    one.use(RATE, "alice", "c", 1600)
    assert (one.room(RATE, "alice", "d"), one.owed(RATE, "alice", "d")) == (1000.0, 10.0)
    assert one.owed(RATE, "bob", "d") == 0.0
    clock.now += 11
    assert one.owed(RATE, "alice", "d") == 0.0


def test_names_cost_bounded_memory_and_debts_are_not_forgotten_for_new_ones(clock, monkeypatch):
    monkeypatch.setattr(throttles, "THROTTLES_KEPT", 3)
    one = Throttles(Table({(("client-id", None),): {RATE: 100.0}}), clock)
    for number in range(3):
        one.use(RATE, "alice", f"busy{number}", 3000)
    for number in range(50):  # they share what one of them may
        assert one.use(RATE, "alice", f"c{number}", 100) == pytest.approx(max(0.0, number - 9.0))
    assert one.owed(RATE, "alice", "another") == 40.0
    assert [one.owed(RATE, "alice", f"busy{number}") for number in range(3)] == [20.0] * 3
    assert len(one._used) == 3


def test_users_without_debt_make_room_for_new_ones(clock, monkeypatch):
    monkeypatch.setattr(throttles, "THROTTLES_KEPT", 3)
    one = Throttles(Table({(("client-id", None),): {RATE: 100.0}}), clock)
    for number in range(50):
        clock.now += 6
        one.use(RATE, "alice", "busy", 100_000)
        assert one.use(RATE, "alice", f"c{number}", 50) == 0.0
    assert one.owed(RATE, "alice", "busy") > 1000
    assert len(one._used) == 3


def test_only_the_beginning_of_a_long_name_counts(clock):
    one = Throttles(Table({(("user", None), ("client-id", None)): {RATE: 100.0}}), clock)
    assert [one.use(RATE, "u" * 400, "c" * 30_000 + end, 1000) for end in ("a", "b")] == [0.0, 10.0]
    ((_, user, client),) = one._used
    assert (len(user), len(client)) == (255, 255)
