"""Names of hosts are looked up beside the hub, for a bounded time."""

from __future__ import annotations

import socket
import threading

import gevent
import pytest
from broker.clients import Client
from broker.quotas.test_table import CONNECTIONS, alter, change, described
from kafka.errors import InvalidRequestError

from dafka import Broker
from dafka.broker.quotas import hosts


@pytest.fixture
def client():
    with Broker() as broker:
        yield Client(broker)


def test_the_hub_goes_on_while_a_name_is_looked_up(client, monkeypatch):
    begun, known = threading.Event(), threading.Event()

    def lookup(name, *more):
        begun.set()
        while not known.is_set():
            gevent.sleep(0.001)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 0))]

    monkeypatch.setattr("gevent.socket.getaddrinfo", lookup)
    errors = []
    thread = threading.Thread(
        target=lambda: errors.extend(alter(client, change((("ip", "here"),), **{CONNECTIONS: 3.0})))
    )
    thread.start()
    assert begun.wait(100)
    assert described(client) == {} and not errors
    known.set()
    thread.join(100)
    assert errors == [None]


def test_names_are_looked_up_for_a_bounded_time(client, monkeypatch):
    monkeypatch.setattr(hosts, "LOOKUP_SECONDS", 0.01)
    monkeypatch.setattr("gevent.socket.getaddrinfo", lambda *more: gevent.sleep(100))
    assert alter(client, change((("ip", "here"),), **{CONNECTIONS: 3.0})) == [InvalidRequestError]
    monkeypatch.setattr(hosts, "LOOKUPS_SECONDS", 0.0)
    assert alter(client, change((("ip", "here"),), **{CONNECTIONS: 3.0})) == [InvalidRequestError]
