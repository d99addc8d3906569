"""Errors that nobody expects: they are logged, waiting callers are told, and the green threads go on."""

from __future__ import annotations

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.groups.test_coordinator import stable
from timing import until

from dafka import Broker, Producer, Store
from dafka.broker.embedded.cleaner import LogCleaner
from dafka.broker.embedded.expiry import Expiry
from dafka.broker.groups.group import Group
from dafka.hub import limits
from dafka.log.reader import Reader
from dafka.mesh.endpoint import Endpoint
from dafka.roles.peers import PeersRole


def fails_once(monkeypatch, owner, name):
    """Have a method raise what nobody expects at its next call; the list that notes it."""
    original, failures = getattr(owner, name), []

    def wrapped(self, *args, **options):
        if not failures:
            failures.append(name)
            raise ZeroDivisionError(f"unexpected in {name}")
        return original(self, *args, **options)

    monkeypatch.setattr(owner, name, wrapped)
    return failures


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(limits, "SHORTEST_RESTART", 0.01)


def test_records_are_refused_while_the_writer_fails_and_taken_afterwards(client, monkeypatch, caplog):
    client.create("t")
    fails_once(monkeypatch, type(client.core.log), "begin")
    assert client.produce("t", b"a").error is errors.KafkaStorageError
    assert client.produce("t", b"b").error is None
    assert "unexpected in begin" in caplog.text


def test_a_listener_to_commits_that_fails_does_not_end_the_writer(client, caplog):
    client.create("t")
    client.connection.hub.run(client.core._writer.on_commit, lambda grown: 1 // 0)
    client.produce("t", b"a")
    client.produce("t", b"b")
    assert "ZeroDivisionError" in caplog.text


def test_a_broker_whose_log_may_not_show_what_is_on_the_disk_refuses_records_until_it_is_started_again(
    tmp_path, monkeypatch, caplog
):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        with monkeypatch.context() as patch:
            failures = fails_once(patch, Reader, "remember")
            assert client.produce("t", b"a").error is errors.KafkaStorageError
        assert failures
        assert client.produce("t", b"b").error is errors.KafkaStorageError
        assert "opened again" in caplog.text
    with Broker(tmp_path) as broker:
        assert Client(broker).produce("t", b"c").error is None


@pytest.mark.parametrize("failing", [(PeersRole, "tick"), (Endpoint, "received")])
def test_nodes_go_on_beaconing_and_listening(failing, broker, tmp_path, monkeypatch):
    with Store(tmp_path / "store", tower=broker.tower, beacon_interval=0.1) as store:
        failures = fails_once(monkeypatch, *failing)
        until(lambda: failures)
        with Producer("t", tower=broker.tower, beacon_interval=0.1, min_stores=2) as producer:
            producer.send(b"a")
            producer.flush(100)
        assert store.heads()


def test_a_group_whose_clock_fails_once_still_loses_its_silent_members(client, monkeypatch):
    failures = fails_once(monkeypatch, Group, "tick")
    stable(client, 1, session_timeout=1.0)
    until(lambda: failures and client.call("describe_groups", ["g"])["g"].state == "Empty")


def test_deleted_topics_lose_their_records_also_after_an_unexpected_error(client, monkeypatch):
    client.create("t")
    client.produce("t", b"a")
    failures = fails_once(monkeypatch, LogCleaner, "_delete_some")
    assert client.change("delete_topics", ["t"]) == {"t": None}
    until(lambda: failures and not list(client.core.log.partitions()))


def test_expiry_goes_on_after_an_unexpected_error(tmp_path, monkeypatch):
    looks = []

    def look(self):
        looks.append(1)
        if len(looks) == 1:
            raise ZeroDivisionError

    monkeypatch.setattr(Expiry, "look", look)
    with Broker(tmp_path):
        until(lambda: len(looks) > 1)
