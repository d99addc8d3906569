"""Remains of deleted topics are remembered for as long as they can come back, and not for ever."""

from __future__ import annotations

import time

import gevent
import kafka.errors as errors
from broker.clients import Client
from broker.pausing import counted_pauses
from timing import until

from dafka import Broker, Producer, Store
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.limits import DELETED_RETENTION
from dafka.broker.topics import deleted as deleted_module
from dafka.broker.topics.deleted import DELETED, FOR_GOOD
from dafka.hub.limits import PACE_ITEMS


def rows(client: Client) -> dict[str, list[int]]:
    return client.connection.hub.run(lambda: dict(client.core.log.table(DELETED).items()))


def forget(client: Client, ahead: float = 0.0) -> int:
    """Look for rows that have expired, so many seconds from now."""
    deleted = client.core._topics.deleted
    deleted._clock = lambda: time.time() + ahead
    return client.connection.hub.run(deleted.forget_old, lambda: gevent.sleep(0))


def use_and_delete(client: Client, topic: str = "t") -> bytes:
    """A topic that had a record, and its leader's address."""
    client.create(topic)
    client.produce(topic, b"a")
    address = client.partitions(topic)[0][0].encode()
    assert client.change("delete_topics", [topic]) == {topic: None}
    until(lambda: client.core.log.find(topic.encode(), address) is None)
    return address


def test_a_deleted_leader_that_no_node_mentions_is_forgotten_after_a_while(client):
    address = use_and_delete(client)
    deleted = client.core._topics.deleted
    assert forget(client, DELETED_RETENTION - 60) == 0
    assert deleted.was_led(b"t", address)
    assert forget(client, DELETED_RETENTION + 60) == 1
    assert not deleted.was_led(b"t", address)
    assert rows(client) == {}


def test_very_many_leaders_are_forgotten_in_pieces_and_the_oldest_first(client, monkeypatch):
    deleted, hub = client.core._topics.deleted, client.connection.hub
    names = [f"{number * 7919 % 1000:032}" for number in range(1000)]
    rows = {(DELETED, f"{name}/t"): [FOR_GOOD, 1, int(name) + 1] for name in names}
    hub.run(client.core._writer.put_and_wait, rows)
    for name in names:
        deleted.add(b"t", name.encode(), 1)
    deleted._clock = lambda: 1000
    monkeypatch.setattr(deleted_module, "DELETED_KEPT", 900)
    monkeypatch.setattr(deleted_module, "_SORTED_AT_ONCE", 100)
    pauses = counted_pauses(monkeypatch)
    assert hub.run(deleted.forget_old, lambda: None) == 100
    assert pauses() > 1000 // PACE_ITEMS
    left = {int(key[:32]) for key in hub.run(lambda: list(client.core.log.table(DELETED)))}
    assert left == set(range(100, 1000))


def test_a_leader_that_is_mentioned_on_the_mesh_is_remembered_also_after_a_restart(tmp_path):
    ahead = DELETED_RETENTION + 60
    with Broker(tmp_path / "broker") as broker:
        client = Client(broker)
        with Store(tmp_path / "store", tower=broker.tower) as store:
            client.create("t")
            client.produce("t", b"a")
            address = client.partitions("t")[0][0].encode()
            until(lambda: store.heads())
            client.call("delete_topics", ["t"])
            until(lambda: not client.core.log.partitions())
            deleted = client.core._topics.deleted
            until(lambda: (b"t", address) in deleted._mentioned)  # the store has it
            assert forget(client, ahead) == 0
    with Broker(tmp_path / "broker") as broker:
        client = Client(broker)
        assert client.core._topics.deleted.was_led(b"t", address)
        assert forget(client, 2 * DELETED_RETENTION - 60) == 0
        assert forget(client, ahead + DELETED_RETENTION + 60) == 1


def test_beyond_the_limit_the_deleted_leaders_mentioned_longest_ago_are_forgotten(client, monkeypatch):
    addresses = []
    for number in range(6):
        deleted = client.core._topics.deleted
        deleted._clock = lambda number=number: time.time() + number
        addresses.append(use_and_delete(client, f"t{number}"))
    assert deleted.is_mentioned(b"t0", addresses[0])
    assert not deleted.crowded
    monkeypatch.setattr("dafka.broker.topics.deleted.DELETED_KEPT", 2)
    assert deleted.crowded
    assert forget(client) == 4
    assert {name for name in range(6) if deleted.was_led(b"t%d" % name, addresses[name])} == {0, 5}
    assert not deleted.crowded


def test_rows_without_a_time_get_one_when_they_are_looked_at(client):
    use_and_delete(client)
    ((key, row),) = rows(client).items()
    client.connection.hub.run(client.core._writer.put_and_wait, {(DELETED, key): row[:2]})
    assert forget(client) == 0
    assert rows(client)[key][:2] == [FOR_GOOD, 1]
    assert forget(client, DELETED_RETENTION - 60) == 0
    assert forget(client, DELETED_RETENTION + 60) == 1


def test_a_native_partition_s_row_goes_with_its_records(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        with Producer("n", tower=broker.tower) as producer:
            producer.send(b"a")
            producer.flush(100)
            until(lambda: len(client.partitions("n")) == 2)
            client.call("delete_topics", ["n"])
            until(lambda: rows(client) == {})
            assert client.call("metadata", None).topics == {}
            producer.send(b"b")
            producer.flush(100)
            until(lambda: len(client.partitions("n")) == 2)
            assert client.values("n", 1, partition=1) == [b"b"]
        client.call("delete_topics", ["n"])
        until(lambda: rows(client) == {})
    with Broker(tmp_path) as broker:
        assert Client(broker).call("metadata", None).topics == {}


def test_the_partitions_of_all_topics_together_are_limited(client, monkeypatch):
    monkeypatch.setattr("dafka.broker.topics.table.PARTITIONS_KEPT", 3)
    client.create("t", 2)
    refused = client.call("create_topics", {"u": TopicSpec(2)})["u"]
    assert refused.error is errors.PolicyViolationError
    assert "partitions at most" in refused.detail
    assert client.change("create_partitions", {"t": 4}) == {"t": errors.PolicyViolationError}
    assert client.change("create_partitions", {"t": 3}) == {"t": None}
    client.call("delete_topics", ["t"])
    client.create("u", 3)
