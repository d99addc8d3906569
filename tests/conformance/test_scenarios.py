"""The scenarios that come with the specification's implementation, for a consumer and for a producer.

Real nodes on real sockets against a peer that says what the scenario has it say.
"""

from __future__ import annotations

import time

import pytest
from mesh.peer import ADDRESS, Peer

from dafka import Consumer, Producer, Tower
from dafka.protocol.commands import (
    Ack,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    Fetch,
    GetHeads,
    Head,
    Record,
    StoreHello,
)

OTHER = b"0123456789ABCDEF0123456789ABCDEF"


@pytest.fixture
def tower():
    with Tower() as tower:
        yield tower


@pytest.fixture
def peer(tower):
    with Peer(tower.addresses) as peer:
        yield peer


# -- consumer ---------------------------------------------------------------------------------------


def test_a_store_hello_is_replied_to_with_the_topics(tower, peer):
    # Given a dafka consumer with a subscription to topic hello
    with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
        _meet(peer)
        # When a STORE-HELLO command is sent by a store
        peer.send(StoreHello(consumer.address.encode(), ADDRESS))
        # Then the consumer responds with a CONSUMER-HELLO containing topic hello
        assert peer.receive(ConsumerHello) == ConsumerHello(ADDRESS, consumer.address.encode(), (b"hello",))


def test_a_store_hello_is_not_replied_to_without_topics(tower, peer):
    # Given a dafka consumer with no subscriptions
    with Consumer(tower=tower, offset_reset="earliest") as consumer:
        address = consumer.address.encode()
        peer.meet(b"L" + address)
        # When a STORE-HELLO command is sent by a store
        peer.send(StoreHello(address, ADDRESS))
        # Then the consumer does not reply; once it has a topic it does
        consumer.subscribe("hello")
        peer.receive(GetHeads)
        peer.send(StoreHello(address, OTHER))
        peer.until(lambda: ConsumerHello(OTHER, address, (b"hello",)) in peer.heard)
        assert all(command.topics for command in peer.heard if isinstance(command, ConsumerHello))


def test_subscribing_asks_for_the_heads(tower, peer):
    # Given a dafka consumer with no subscriptions
    with Consumer(tower=tower, offset_reset="earliest") as consumer:
        peer.meet(b"L" + consumer.address.encode())
        # When the consumer subscribes to topic hello
        consumer.subscribe("hello")
        # Then the consumer will send a GET-HEADS for topic hello
        assert peer.receive(GetHeads) == GetHeads(b"hello", consumer.address.encode())


@pytest.mark.parametrize("told_by", [Head, DirectHead])
def test_first_record_with_earliest_after_a_head(tower, peer, told_by):
    # Given a dafka consumer subscribed to topic hello, with offset reset earliest
    with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
        _meet(peer)
        address = consumer.address.encode()
        # When a HEAD with sequence 1 is sent on topic hello
        head = Head(OTHER, b"hello", 1)
        peer.send(head if told_by is Head else DirectHead(address, *head))
        # Then the consumer will send a FETCH from sequence 0
        assert peer.receive(Fetch) == Fetch(OTHER, address, b"hello", 0, 2)
        # When the records come
        peer.send(DirectRecord(address, OTHER, b"hello", 0, b"first"))
        peer.send(DirectRecord(address, OTHER, b"hello", 1, b"second"))
        # Then the user is given both in order
        assert _values(consumer, 2) == [b"first", b"second"]


def test_first_record_with_earliest_after_a_record(tower, peer):
    # Given a dafka consumer subscribed to topic hello, with offset reset earliest
    with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
        _meet(peer)
        # When a RECORD with sequence 2 is sent on topic hello
        peer.send(Record(OTHER, b"hello", 2, b"third"))
        # Then the consumer will send a FETCH for what is before it
        assert peer.receive(Fetch) == Fetch(OTHER, consumer.address.encode(), b"hello", 0, 2)
        # When the records come
        for sequence, content in enumerate([b"first", b"second"]):
            peer.send(DirectRecord(consumer.address.encode(), OTHER, b"hello", sequence, content))
        # Then the user is given all three in order
        assert _values(consumer, 3) == [b"first", b"second", b"third"]


def test_first_record_with_latest_is_the_one_that_comes(tower, peer):
    # Given a dafka consumer subscribed to topic hello, with offset reset latest
    with Consumer(["hello"], tower=tower, offset_reset="latest") as consumer:
        _meet(peer)
        # When a RECORD with sequence 7 is sent on topic hello
        peer.send(Record(OTHER, b"hello", 7, b"seen"))
        # Then the user is given it, and nothing is fetched
        assert _values(consumer, 1) == [b"seen"]
        assert not any(isinstance(command, Fetch) for command in peer.heard)


def test_first_record_with_latest_is_behind_the_head(tower, peer):
    # Given a dafka consumer subscribed to topic hello, with offset reset latest
    with Consumer(["hello"], tower=tower, offset_reset="latest") as consumer:
        _meet(peer)
        # When a HEAD with sequence 7 is sent on topic hello, and heard
        peer.send(Head(OTHER, b"hello", 7))
        peer.until(lambda: consumer.metrics()["partitions"] == 1)
        # And then RECORDs 6, 7 and 9
        for sequence in (6, 7, 9):
            peer.send(Record(OTHER, b"hello", sequence, b"%d" % sequence))
        # Then the consumer will send a FETCH for 8 alone
        assert peer.receive(Fetch) == Fetch(OTHER, consumer.address.encode(), b"hello", 8, 1)
        # And the user is given what comes after the head
        peer.send(DirectRecord(consumer.address.encode(), OTHER, b"hello", 8, b"8"))
        assert _values(consumer, 2) == [b"8", b"9"]


# -- producer ---------------------------------------------------------------------------------------


def test_an_unacknowledged_record_can_be_fetched(tower, peer):
    # Given a dafka producer for topic hello, and a record that no store has acknowledged
    producer = Producer("hello", tower=tower, head_interval=0.1)
    partition = producer.address.encode()
    producer.send(b"kept")
    peer.receive(Head)  # from now on the peer hears the producer
    peer.meet(b"F" + partition, b"K" + partition)
    # When a store sends a FETCH for it, and does so again
    for _ in range(2):
        peer.send(Fetch(partition, ADDRESS, b"hello", 0, 1))
        # Then the producer responds with a DIRECT-RECORD
        assert peer.receive(DirectRecord) == DirectRecord(ADDRESS, partition, b"hello", 0, b"kept")
    # When a store acknowledges the record
    peer.send(Ack(partition, b"hello", 0))
    # Then the producer may end
    peer.until(lambda: producer.unacknowledged == 0)
    producer.close(timeout=0.0)


def test_heads_come_at_intervals(tower, peer):
    # Given a dafka producer for topic hello
    with Producer("hello", tower=tower, head_interval=0.25, min_stores=0) as producer:
        partition = producer.address.encode()
        # When it has sent two records
        producer.send(b"one")
        producer.send(b"two")
        # Then a HEAD with the sequence of the last one comes at regular intervals
        times = []
        for _ in range(4):
            assert peer.receive(Head) == Head(partition, b"hello", 1)
            times.append(time.monotonic())
        assert times[-1] - times[0] > 0.5


def _meet(peer: Peer) -> None:
    """The peer is subscribed to the consumer, which repeats GET-HEADS, and the consumer to the peer."""
    peer.meet(b"Mhello", b"Hhello")
    peer.receive(GetHeads)


def _values(consumer: Consumer, count: int) -> list[bytes]:
    return [next(consumer).value for _ in range(count)]


def test_a_producer_that_leaves_sends_a_last_head():
    """Ours; the specification has nothing about it. A node that has joined late asks the stores for what it
    tells."""
    with Tower() as tower, Peer(tower.addresses) as peer:
        with Producer("hello", tower=tower, min_stores=0, head_interval=3600.0) as producer:
            sequences: list[int] = []
            peer.until(lambda: sequences.append(producer.send(b"value")) or Record in map(type, peer.heard))
            assert Head not in map(type, peer.heard)
        assert peer.receive(Head) == Head(producer.address.encode(), b"hello", sequences[-1])
