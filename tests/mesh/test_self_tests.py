"""The self tests printed in Dafka's README, step by step: consumer, producer and store sections."""

from __future__ import annotations

from mesh.peer import ADDRESS, Peer
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.protocol import commands


def test_consumer_earliest_triggered_by_head_message():
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Consumer(tower=tower, offset_reset="earliest") as consumer,
    ):
        meet(peer, consumer)
        # WHEN consumer subscribes to topic 'hello'
        consumer.subscribe("hello")
        # THEN the consumer will send a GET_HEADS msg for the topic 'hello'
        assert peer.receive(commands.GetHeads).topic == b"hello"
        peer.meet(b"Mhello", b"Hhello")
        # WHEN a HEAD msg with sequence larger 0 is sent on topic 'hello'
        peer.send(commands.Head(ADDRESS, b"hello", 1))
        # THEN the consumer will send a FETCH msg for the topic 'hello'
        fetch = peer.receive(commands.Fetch)
        assert (fetch.topic, fetch.sequence, fetch.partition) == (b"hello", 0, ADDRESS)
        # WHEN a RECORD msg with sequence 0 and content 'CONTENT' is send on topic 'hello'
        peer.send(commands.Record(ADDRESS, b"hello", 0, b"CONTENT"))
        # THEN a consumer msg is sent to the user with topic 'hello' and content 'CONTENT'
        (record,) = consumer.poll(100.0)
        assert (record.topic, record.value) == ("hello", b"CONTENT")


def test_consumer_earliest_triggered_by_record_message():
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Consumer(tower=tower, offset_reset="earliest") as consumer,
    ):
        meet(peer, consumer)
        consumer.subscribe("hello")
        assert peer.receive(commands.GetHeads).topic == b"hello"
        peer.meet(b"Mhello", b"Hhello")
        # WHEN a RECORD msg with sequence larger 0 is sent on topic 'hello'
        peer.send(commands.Record(ADDRESS, b"hello", 1, b"CONTENT"))
        # THEN the consumer will send a FETCH msg for the topic 'hello'
        fetch = peer.receive(commands.Fetch)
        assert (fetch.topic, fetch.sequence) == (b"hello", 0)
        # WHEN a RECORD msg with sequence 0 and content 'CONTENT' is send on topic 'hello'
        peer.send(commands.Record(ADDRESS, b"hello", 0, b"CONTENT"))
        # THEN a consumer msg is sent to the user
        assert consumer.poll(100.0)[0].value == b"CONTENT"


def test_producer_and_store_with_a_consumer_that_starts_at_the_earliest_record(tmp_path):
    with (
        Tower() as tower,
        Store(tmp_path / "storedb", tower=tower),
        Producer("hello", tower=tower) as producer,
        Consumer(tower=tower, offset_reset="earliest") as consumer,
    ):
        producer.send(b"HELLO MATE")
        producer.flush(100)  # the message is published before the consumer subscribes
        consumer.subscribe("hello")
        producer.send(b"HELLO ATEM")
        producer.send(b"HELLO TEMA")
        records = [next(consumer) for _ in range(3)]
        assert [record.value for record in records] == [b"HELLO MATE", b"HELLO ATEM", b"HELLO TEMA"]
        assert [record.sequence for record in records] == [0, 1, 2]


def test_producer_and_store_with_a_consumer_that_starts_at_the_latest_record(tmp_path):
    with Tower() as tower, Producer("hello", tower=tower) as producer:
        with Consumer(tower=tower, offset_reset="latest") as consumer:
            producer.send(b"HELLO MATE")  # missed, and ignored because the offset reset is latest
            wait_until_published(producer)
            consumer.subscribe("hello")
            producer.send(b"HELLO ATEM")
            assert consumer.poll(100.0)[0].value == b"HELLO ATEM"
        # A store acknowledges everything and allows the producer to end
        with Store(tmp_path / "storedb", tower=tower):
            producer.flush(100)
            assert producer.unacknowledged == 0


def test_producer_is_created_and_destroyed():
    with Tower() as tower, Producer("dummy", tower=tower):
        pass


def test_store_fetches_from_the_producer_and_serves_when_the_producer_is_gone(tmp_path):
    with Tower() as tower:
        producer = Producer("TEST", tower=tower)
        # Producing before the store is alive, in order to test fetching between producer and store
        producer.send(b"1")
        producer.send(b"2")
        wait_until_published(producer)
        with Store(tmp_path / "storedb", tower=tower):
            producer.send(b"3")
            producer.flush(100)
            # Killing the producer, to make sure the HEADs are coming from the store
            producer.close()
            # Starting a consumer and check that consumer recv all 3 messages
            with Consumer(["TEST"], tower=tower, offset_reset="earliest") as consumer:
                assert [next(consumer).value for _ in range(3)] == [b"1", b"2", b"3"]


def meet(peer: Peer, consumer: Consumer) -> None:
    """Both peers are connected to each other: the peer's subscription to everything has arrived too."""
    peer.meet()
    peer.be_heard(consumer._node.endpoint)


def wait_until_published(producer: Producer) -> None:
    """What was sent has left the producer's queue for the mesh; nobody has acknowledged it."""
    until(lambda: not producer._node.pending)
    assert producer.unacknowledged > 0
