"""Rows of topics that are gone are found and deleted, and no others."""

from __future__ import annotations

import gevent
from broker.clients import Client
from broker.transactions.transactional import Producer, committed, fetch, offset_of
from timing import until

from dafka import Broker
from dafka.broker.embedded.orphaned import forget_orphaned
from dafka.broker.interface.broker import CommittedOffset

TABLES = ("producers", "aborted", "offsets", "transactions.open")


def keys(client: Client) -> dict[str, list[str]]:
    return client.connection.hub.run(lambda: {name: list(client.core.log.table(name)) for name in TABLES})


def use(client: Client) -> Producer:
    """Have a row about topic t in every table: an aborted transaction, offsets, and an open transaction."""
    producer = Producer(client)
    producer.send(b"aborted")
    producer.abort()
    client.call("commit_offsets", "a/b", {("t", 0): CommittedOffset(3)})
    producer.send(b"open")
    producer.send_offset(7)
    assert all(keys(client).values())
    return producer


def test_rows_of_topics_that_exist_stay(client):
    client.create("t")
    producer = use(client)
    before = keys(client)
    core = client.core

    def forget() -> int:
        return forget_orphaned(core.log, core._writer, core._topics, lambda: gevent.sleep(0))

    assert client.connection.hub.run(forget) == 0
    assert keys(client) == before
    producer.commit()
    assert committed(client) == [b"open"]
    assert offset_of(client) == 7


def test_rows_that_came_behind_the_deletion_of_their_topic_go_at_the_next_start(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        use(client)
        rows = client.connection.hub.run(
            lambda: {
                (name, key): value for name in TABLES for key, value in client.core.log.table(name).items()
            }
        )
        client.call("delete_topics", ["t"])
        client.create("t")
        client.call("commit_offsets", "new", {("t", 0): CommittedOffset(5)})
        client.connection.hub.run(client.core._writer.put_and_wait, rows)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        until(
            lambda: [len(found) for found in keys(client).values()] == [0, 0, 1, 2]
        )  # that it is open, in a group
        assert offset_of(client, "new") == 5
        client.connection.hub.run(client.core._offsets.forget_bare)  # as when old offsets are looked for
        assert [group.group for group in client.call("list_groups")] == ["new"]
        Producer(client).send(b"a")
        assert fetch(client).last_stable_offset == 0
