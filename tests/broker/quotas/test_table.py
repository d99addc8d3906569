"""The table of quotas: stored quotas, refused changes, and folders from somebody else."""

from __future__ import annotations

import socket
import time

import pytest
from broker.clients import Client
from kafka.errors import InvalidRequestError, PolicyViolationError, UnsupportedVersionError
from timing import until

from dafka import Broker
from dafka.broker.interface.quotas import Match, QuotaChange, QuotaChanges, QuotaFilter
from dafka.broker.quotas import table
from dafka.broker.quotas.table import _is_key, _is_row

ALICE = (("user", "alice"),)
ADDRESS = (("ip", "127.0.0.1"),)
PAIR = (("user", "alice"), ("client-id", None))
RATE = "producer_byte_rate"


def change(entity, **values):
    return QuotaChanges(entity, [QuotaChange(key, value) for key, value in values.items()])


def alter(client, *altered, **more):
    return [one.error for one in client.call("alter_quotas", altered, **more)]


def described(client, *filters, strict=False):
    return client.call("describe_quotas", filters, strict).quotas


@pytest.fixture
def client():
    with Broker() as broker:
        yield Client(broker)


def test_quotas_are_there_after_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        both = change(ALICE, **{RATE: 1000.0}), change(PAIR[::-1], request_percentage=12.5)
        assert alter(Client(broker), *both) == [None, None]
        assert alter(Client(broker), change(ALICE, consumer_byte_rate=5.0)) == [None]
    with Broker(tmp_path) as broker:
        expected = {ALICE: {RATE: 1000.0, "consumer_byte_rate": 5.0}, PAIR: {"request_percentage": 12.5}}
        assert described(Client(broker)) == expected
        assert alter(Client(broker), change(ALICE, **{RATE: None, "consumer_byte_rate": None})) == [None]
        assert not Client(broker).core.quotas.has(RATE)
    with Broker(tmp_path) as broker:
        assert described(Client(broker)) == {PAIR: {"request_percentage": 12.5}}


def test_validate_only_changes_no_quota(client):
    assert alter(client, change(ALICE, **{RATE: 1.0}), validate_only=True) == [None]
    assert described(client) == {}


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ((), {RATE: 1.0}),
        ((("team", "a"),), {RATE: 1.0}),
        (ALICE, {"no_such_rate": 1.0}),
        (ALICE, {"connection_creation_rate": 1.0}),
        (ADDRESS, {RATE: 1.0}),
        (ADDRESS, {"connection_creation_rate": 2.0**31}),
        (ADDRESS, {"connection_creation_rate": 1.5}),
        ((*ADDRESS, *ALICE), {RATE: 1.0}),
        (ALICE, {RATE: 0.0}),
        (ALICE, {RATE: -1.0}),
        (ALICE, {RATE: float("nan")}),
        (ALICE, {RATE: float("inf")}),
        (ALICE, {RATE: 0.5}),
        (ALICE, {RATE: 1.0, "consumer_byte_rate": 0.0}),
    ],
)
def test_invalid_changes_have_no_effect_and_the_others_count(client, entity, values):
    right = change((("user", "bob"),), request_percentage=0.5)
    assert alter(client, change(entity, **values), right) == [InvalidRequestError, None]
    assert described(client) == {(("user", "bob"),): {"request_percentage": 0.5}}


def test_a_quota_that_does_not_exist_can_be_removed(client):
    assert alter(client, change(ALICE, no_such_rate=None)) == [None]
    assert described(client) == {}


def test_addresses_are_found_in_whatever_spelling_the_last_one_set(client):
    table, spelled, key = client.core.quotas, (("ip", "localhost"),), "connection_creation_rate"

    def counts_after(entity, value):
        assert alter(client, change(entity, **{key: value})) == [None]
        return table.of_address("127.0.0.1").get(key)

    assert counts_after(spelled, 3.0) == 3.0
    assert counts_after(ADDRESS, 4.0) == 4.0
    assert counts_after(ADDRESS, None) == 3.0  # the other one is still there
    assert counts_after(spelled, None) is None
    assert counts_after((("ip", None),), 5.0) == 5.0 and table.has(key)


class Names:
    """A server of names, which says what it was asked."""

    def __init__(self, monkeypatch, **known):
        self.known, self.asked = known, []
        monkeypatch.setattr("gevent.socket.getaddrinfo", self.getaddrinfo)

    def getaddrinfo(self, name, port, family, kind):
        self.asked.append(name)
        if name not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        kinds = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in self.known[name]]
        return [(family, kind, 6, "", (one, 0)) for family, one in zip(kinds, self.known[name], strict=True)]


CONNECTIONS = "connection_creation_rate"


def test_a_host_may_have_a_quota_by_its_name(tmp_path, monkeypatch):
    names = Names(monkeypatch, here=["2001:db8::1", "192.0.2.7", "192.0.2.8"])
    here, nowhere = (("ip", "here"),), (("ip", "nowhere"),)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        both = change(here, **{CONNECTIONS: 3.0}), change(nowhere, **{CONNECTIONS: 3.0})
        assert alter(client, *both) == [None, InvalidRequestError]
        assert client.core.quotas.of_address("192.0.2.7") == {CONNECTIONS: 3.0}  # the first one of IPv4
        assert client.core.quotas.of_address("192.0.2.8") == {}
        names.known["here"] = ["192.0.2.9"]  # which nobody notices before the next change
        assert client.core.quotas.of_address("192.0.2.7") == {CONNECTIONS: 3.0}
        assert alter(client, change(here, **{CONNECTIONS: 4.0})) == [None]
        assert client.core.quotas.of_address("192.0.2.7") == {}
        assert client.core.quotas.of_address("192.0.2.9") == {CONNECTIONS: 4.0}
    with Broker(tmp_path) as broker:
        client = Client(broker)
        until(lambda: client.core.quotas.of_address("192.0.2.9"))
        assert alter(client, change(here, **{CONNECTIONS: None})) == [None]
        assert client.core.quotas.of_address("192.0.2.9") == {} == described(client)
        assert not client.core.quotas._placed and not client.core.quotas._hosts._found


def test_a_host_whose_name_is_not_known_at_the_next_start_is_named(tmp_path, monkeypatch, caplog):
    names = Names(monkeypatch, here=["192.0.2.7"])
    with Broker(tmp_path) as broker:
        assert alter(Client(broker), change((("ip", "here"),), **{CONNECTIONS: 3.0})) == [None]
    names.known.clear()
    with Broker(tmp_path) as broker:
        until(lambda: "here has a quota without effect" in caplog.text)
        assert described(Client(broker)) == {(("ip", "here"),): {CONNECTIONS: 3.0}}


def test_nothing_is_altered_twice_at_once(client):
    twice = [QuotaChange(RATE, 1.0), QuotaChange(RATE, None)]
    assert alter(client, QuotaChanges(ALICE, twice)) == [InvalidRequestError]
    both = change(PAIR, **{RATE: 1.0}), change(PAIR[::-1], **{RATE: 2.0})
    assert alter(client, *both) == [None, InvalidRequestError]


def test_there_is_a_limit_to_entities_and_not_to_changing_them(client, monkeypatch):
    monkeypatch.setattr(table, "QUOTAS_KEPT", 2)
    some = [change(((kind, "a"),), **{RATE: 1.0}) for kind in ("user", "client-id")]
    assert alter(client, *some) == [None, None]
    assert alter(client, change(ALICE, **{RATE: 1.0})) == [PolicyViolationError]
    assert alter(client, change(some[0].entity, **{RATE: 2.0})) == [None]


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ([], None),
        ([QuotaFilter("ip", Match.ANY)], None),
        ([QuotaFilter("team", Match.ANY)], UnsupportedVersionError),
        ([QuotaFilter("user", Match.ANY), QuotaFilter("user", Match.DEFAULT)], InvalidRequestError),
        ([QuotaFilter("user", Match.EXACT)], InvalidRequestError),
        ([QuotaFilter("", Match.ANY)], InvalidRequestError),
        ([QuotaFilter("user", Match.ANY), QuotaFilter("ip", Match.ANY)], InvalidRequestError),
        ([QuotaFilter("user", Match.ANY, "a")], InvalidRequestError),
        ([QuotaFilter("user", 7, "a")], InvalidRequestError),
    ],
)
def test_filters_are_checked_as_kafka_does(client, filters, error):
    assert client.call("describe_quotas", filters).error is error


def test_a_row_that_no_broker_writes_is_damage():
    assert _is_key('[["user","alice"]]') and _is_key('[["user",null],["client-id","c"]]')
    for key in ("", "[]", "{}", '[["user"]]', '[["user",1]]', '[["client-id","c"],["user","a"]]', "[" * 9999):
        assert not _is_key(key)
    assert _is_row({RATE: 1.0})
    for row in ({}, [], {RATE: 1}, {RATE: "1"}, {RATE: -1.0}, {RATE: float("nan")}, {"other": 1.0}, None):
        assert not _is_row(row)


def test_many_are_changed_in_rounds_and_nothing_twice_in_any_of_them(client, monkeypatch):
    monkeypatch.setattr("dafka.broker.quotas.table.QUOTA_ROUND", 2)
    users = ["a", "b", "c", "d", "a"]
    changes = [QuotaChanges((("user", user),), [QuotaChange("producer_byte_rate", 1.0)]) for user in users]
    outcomes = client.call("alter_quotas", changes)
    assert [one.error for one in outcomes] == [None] * 4 + [InvalidRequestError]
    assert len(client.call("describe_quotas", []).quotas) == 4


def test_very_many_keys_of_one_entity_let_others_run(client):
    """They are compared with each other, and those that nobody has can be removed."""
    changes = [QuotaChange(f"no_such_rate_{number}", None) for number in range(50_000)]
    began = time.process_time()
    assert alter(client, QuotaChanges(ALICE, changes)) == [None]
    assert time.process_time() - began < 5  # each with each: a minute
    assert alter(client, QuotaChanges(ALICE, [*changes, changes[0]])) == [InvalidRequestError]
