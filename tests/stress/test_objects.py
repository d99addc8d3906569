"""How many objects a broker gives the garbage collector: everything in the process stops for a collection."""

from __future__ import annotations

import gc
import weakref

from broker.clients import batch
from broker.server.attack_scene import topic_of
from broker.server.client import WireClient
from broker.server.samples import fetch

from dafka import Broker

PARTITIONS = 3000
IN_SESSION = 2000  # a session has some hundred objects of its own


def collected_objects() -> int:
    for _ in range(3):  # each finds out of some more tuples that they hold no objects of this kind
        gc.collect()
    # sqlite3 has a weak reference for each cursor, and forgets those of gone cursors 200 at a time.
    return sum(type(each) is not weakref.ref for each in gc.get_objects())


def test_a_partition_that_is_written_is_few_objects_for_the_garbage_collector(client):
    client.create("warm")  # what is imported, and made once, comes with the first call
    client.produce("warm", b"x")
    before = collected_objects()
    client.create("wide", partitions=PARTITIONS)
    created = collected_objects()
    assert created - before < 1.2 * PARTITIONS
    for _ in range(3):
        answers = client.call("produce", {("wide", number): [batch(b"x")] for number in range(PARTITIONS)})
        assert all(one.error is None for one in answers.values())
        del answers
    # LogPartition, its index, the index's array, and the chunks, which the log's tail has. One more for each
    # partition or chunk would be above the limit, what else the process makes meanwhile (statements) is not.
    chunks = sum(len(partition.index) for partition in client.core.log.partitions())
    assert collected_objects() - created < 3.5 * PARTITIONS + chunks


def test_a_partition_in_a_fetch_session_is_not_an_object():
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as wire:
        wire.ask(topic_of("wide", IN_SESSION), 5)
        created = collected_objects()
        session = wire.ask(fetch("wide", *[0] * IN_SESSION, session_epoch=0), 11).session_id
        wire.ask(fetch("wide", session_id=session, session_epoch=1, topics=[]), 11)
        assert collected_objects() - created < 0.5 * IN_SESSION
