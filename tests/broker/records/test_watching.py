"""A watch over many partitions says which of them have changed."""

from __future__ import annotations

import gevent
import pytest
from broker.clients import Client

from dafka.broker.interface.broker import PartitionWatch


@pytest.fixture
def watch(client: Client) -> PartitionWatch:
    client.create("t", 2)
    return client.call("watch")


def taken(client: Client, watch: PartitionWatch) -> list[tuple[str, int]]:
    return sorted(client.connection.hub.run(watch.take))


def add(client: Client, watch: PartitionWatch, *keys: tuple[str, int]) -> list[bool]:
    return [client.connection.hub.run(watch.add, key) for key in keys]


def test_partitions_that_have_grown_are_taken_once(client, watch):
    add(client, watch, ("t", 0), ("t", 1))
    client.produce("t", b"a")
    client.produce("t", b"b")
    assert taken(client, watch) == [("t", 0)]
    assert taken(client, watch) == []
    assert not client.connection.hub.run(watch.wait, 0)


def test_an_unknown_partition_cannot_be_watched(client, watch):
    assert add(client, watch, ("t", 0), ("t", 2), ("unknown", 0)) == [True, False, False]


def test_a_removed_partition_is_not_watched(client, watch):
    add(client, watch, ("t", 0))
    client.connection.hub.run(watch.remove, ("t", 0))
    client.produce("t", b"a")
    assert taken(client, watch) == []


def test_a_wait_ends_with_the_next_change(client, watch):
    add(client, watch, ("t", 0))
    hub = client.connection.hub
    assert not hub.run(watch.wait, 0)

    def wait() -> gevent.Greenlet:
        waiting = gevent.spawn(watch.wait, 100)
        gevent.sleep(0)
        return waiting

    waiting = hub.run(wait)
    client.produce("t", b"a")
    assert hub.run(waiting.get, True, 100)


def test_deleting_records_or_the_topic_is_a_change(client, watch):
    client.produce("t", b"a")
    add(client, watch, ("t", 0))
    client.call("delete_records", {("t", 0): 1})
    assert taken(client, watch) == [("t", 0)]
    client.call("delete_topics", ["t"])
    assert taken(client, watch) == [("t", 0)]


def test_a_topic_that_is_created_again_is_watched_when_it_is_added_again(client, watch):
    add(client, watch, ("t", 0))
    deleted = client.core._topics.partition("t", 0)
    client.call("delete_topics", ["t"])
    client.create("t")
    taken(client, watch)
    client.produce("t", b"a")
    assert taken(client, watch) == []
    assert add(client, watch, ("t", 0)) == [True]
    assert not deleted.watchers
    client.produce("t", b"b")
    assert taken(client, watch) == [("t", 0)]


def test_a_closed_watch_wakes_its_wait_and_leaves_no_partition_watched(client, watch):
    add(client, watch, ("t", 0), ("t", 1))
    hub = client.connection.hub

    def close() -> bool:
        waiting = gevent.spawn(watch.wait, 100)
        gevent.sleep(0)
        watch.close()
        return waiting.get(timeout=100)

    assert hub.run(close)
    assert add(client, watch, ("t", 0)) == [False]
    assert all(not client.core._topics.partition("t", number).watchers for number in (0, 1))
