"""The nine commands: their senders, occasions and fields.

Where a rule is about what a node decides, its role is asked, on a clock of the test's own; that it reaches
another node over sockets is shown once for each command.
"""

from __future__ import annotations

import pytest
from mesh.peer import ADDRESS, Peer

from dafka import Consumer, Producer, Store, Tower
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
    Trimmed,
)
from dafka.protocol.framing import zmq_topic
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.outputs import Append, Deliver, Serve
from dafka.roles.producer import ProducerRole
from dafka.roles.store import StoreRole

PARTITION, PARTITION2 = b"A" * 32, b"B" * 32
CONSUMER, STORE = b"C" * 32, b"5" * 32
TOPIC = b"hello"


def store_with(records: int, first: int = 0) -> StoreRole:
    return StoreRole(STORE, {(TOPIC, PARTITION): (first, records)})


def consumer_of(*topics: bytes, offset_reset: str = "earliest") -> ConsumerRole:
    role = ConsumerRole(CONSUMER, offset_reset=offset_reset)
    role.set_room(0.0, 10_000, 10**7)
    for topic in topics:
        role.subscribe(0.0, topic)
    return role


# -- hellos -----------------------------------------------------------------------------------------


def test_a_store_greets_nodes_that_subscribe_to_its_hello(tmp_path):
    """When a store receives, on its publisher socket, a STORE-HELLO subscription it SHALL send, on its
    publisher socket, a STORE-HELLO command to the subscriber. The STORE-HELLO command has one field: the
    address of the store. The topic frame is the command's ID and the address of the consumer.
    """
    assert StoreRole(STORE).peer_subscribed(0.0, b"L" + CONSUMER) == [StoreHello(CONSUMER, STORE)]
    assert zmq_topic(StoreHello(CONSUMER, STORE)) == b"L" + CONSUMER
    with Tower() as tower, Store(tmp_path, tower=tower) as store, Peer(tower.addresses) as peer:
        peer.meet(b"M")
        peer._subscriber.subscribe(b"L" + ADDRESS)
        assert peer.receive(StoreHello) == StoreHello(ADDRESS, store.address.encode())


def test_a_consumer_replies_to_a_store_hello():
    """When a consumer receives, on its consumer socket, a STORE-HELLO command it SHOULD reply with a
    CONSUMER-HELLO command. It has two fields: the address of the consumer and a list of dafka topics it is
    subscribed to. The topic frame is the command's ID and the address of the store.
    """
    reply = ConsumerHello(STORE, CONSUMER, (b"hello", b"other"))
    assert consumer_of(b"hello", b"other").receive(0.0, StoreHello(CONSUMER, STORE)) == [reply]
    assert zmq_topic(reply) == b"W" + STORE
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        peer.meet(b"Mhello")
        peer.receive(GetHeads)  # from now on the peer hears the consumer
        address = consumer.address.encode()
        peer.send(StoreHello(address, ADDRESS))
        assert peer.receive(ConsumerHello) == ConsumerHello(ADDRESS, address, (b"hello",))


def test_a_consumer_without_topics_does_not_reply():
    """If the consumer is not subscribed to any dafka topic it MUST NOT send a CONSUMER-HELLO command."""
    assert consumer_of().receive(0.0, StoreHello(CONSUMER, STORE)) == []
    assert consumer_of().peer_subscribed(0.0, b"W" + STORE) == []
    role = consumer_of(TOPIC)
    role.unsubscribe(1.0, TOPIC)
    assert role.receive(2.0, StoreHello(CONSUMER, STORE)) == []
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Consumer(tower=tower) as without,
        Consumer(["hello"], tower=tower) as with_topics,
    ):
        peer.meet(b"Mhello", b"L" + without.address.encode())
        peer.receive(GetHeads)
        peer.send(StoreHello(without.address.encode(), ADDRESS))
        peer.send(StoreHello(with_topics.address.encode(), ADDRESS))  # heard after the other
        assert peer.receive(ConsumerHello).address == with_topics.address.encode()
        assert not any(isinstance(command, ConsumerHello) for command in peer.heard)


# -- records and acknowledgements -------------------------------------------------------------------


def test_records_are_published_as_record_commands():
    """When a producer wishes to publish a record it SHALL use the RECORD command.

    It contains the dafka topic, the offset of the record in the partition, and the content as one frame.
    """
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Producer("hello", tower=tower, min_stores=0) as producer,
    ):
        peer.meet(b"K" + producer.address.encode())
        sequences: list[int] = []
        peer.until(lambda: sequences.append(producer.send(b"value")) or Record in map(type, peer.heard))
        record = peer.receive(Record)
        address = producer.address.encode()
        assert record == Record(address, b"hello", record.sequence, b"value")
        assert record.sequence in sequences
        assert zmq_topic(record) == b"Mhello"


def test_a_producer_keeps_records_until_they_are_acknowledged():
    """A producer MUST NOT delete send records before receiving at least one ACK command."""
    producer = ProducerRole(TOPIC, PARTITION)
    contents = [b"%d" % number for number in range(5000)]
    producer.publish(0.0, contents)
    for now in range(100):
        producer.tick(now)
    with pytest.raises(ValueError, match="acknowledged"):
        producer.forget(0)

    def fetched(first: int) -> list[bytes]:
        runs = producer.receive(100.0, Fetch(PARTITION, CONSUMER, TOPIC, first, 10_000))
        return [content for run in runs for content in run.contents]

    assert fetched(0) == contents
    producer.receive(101.0, Ack(PARTITION2, TOPIC, 4999, STORE))  # somebody else's
    assert fetched(0) == contents
    producer.receive(102.0, Ack(PARTITION, TOPIC, 2999, STORE))
    assert (producer.first_retained, fetched(0), fetched(3000)) == (3000, [], contents[3000:])


def test_a_store_acknowledges_what_it_has_saved(tmp_path):
    """When a store saved a record from a producer it SHALL ackowledge this by sending the ACK command to the
    same producer. Its topic frame is the command's ID and the address of the producer.
    """
    role = StoreRole(STORE)
    run = Run(None, PARTITION, TOPIC, 0, [b"x"])
    assert role.receive_run(0.0, run) == [Append(TOPIC, PARTITION, 0, [b"x"])]
    assert role.stored(0.1, TOPIC, PARTITION, 1) == [Ack(PARTITION, TOPIC, 0, STORE)]
    with Tower() as tower, Store(tmp_path, tower=tower) as store, Peer(tower.addresses) as peer:
        peer.meet(b"M")
        peer.until(lambda: peer.send(Head(ADDRESS, b"hello", 0)) or Fetch in map(type, peer.heard))
        peer.send(Record(ADDRESS, b"hello", 0, b"value"))
        ack = peer.receive(Ack)
        assert ack == Ack(ADDRESS, b"hello", 0, store.address.encode())
        assert zmq_topic(ack) == b"K" + ADDRESS
        assert store.heads() == {(b"hello", ADDRESS.decode()): 0}


def test_heads_are_sent_at_an_interval_after_the_first_record():
    """After a producer published its first record it SHALL send the HEAD command at regular a interval.

    It contains the dafka topic and the offset of the last published record.
    """
    role = ProducerRole(TOPIC, PARTITION, head_interval=1.0)
    assert [role.tick(now) for now in range(10)] == [[]] * 10
    role.publish(10.0, [b"0", b"1", b"2"])
    heads = [step / 10 for step in range(100, 150) if role.tick(step / 10) == [Head(PARTITION, TOPIC, 2)]]
    assert heads == [11.0, 12.0, 13.0, 14.0]
    assert zmq_topic(Head(PARTITION, TOPIC, 2)) == b"H" + TOPIC
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Producer("hello", tower=tower, min_stores=0, head_interval=0.1) as producer,
    ):
        producer.send(b"value")
        for _ in range(3):
            assert peer.receive(Head) == Head(producer.address.encode(), b"hello", 0)


# -- fetching ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("missed_by", [consumer_of(TOPIC), StoreRole(STORE)], ids=["consumer", "store"])
def test_missed_records_are_fetched(missed_by):
    """A consumer or store SHALL send the FETCH command if it detects it missed a record in a partition.

    It contains the dafka topic, the offset of the first missed record and the count of missed records.
    """
    missed_by.receive_run(0.0, Run(None, PARTITION, TOPIC, 0, [b"0"]))
    outputs = missed_by.receive_run(0.1, Run(None, PARTITION, TOPIC, 5, [b"5"]))
    fetch = Fetch(PARTITION, missed_by.address, TOPIC, 1, 4)
    assert outputs == [fetch]
    assert zmq_topic(fetch) == b"F" + PARTITION
    missed_by.receive(0.2, Head(PARTITION2, TOPIC, 9))
    assert missed_by.tick(30.0)[0] != []


def test_a_fetch_of_what_is_not_there_is_not_answered_with_records():
    """Upon receiving a FETCH command a producer or store SHALL check if it has stored the requested
    record(s).
    """
    producer = ProducerRole(TOPIC, PARTITION)
    producer.publish(0.0, [b"0", b"1"])
    for fetch in (
        Fetch(PARTITION, CONSUMER, TOPIC, 2, 5),
        Fetch(PARTITION, CONSUMER, b"hello2", 0, 5),
        Fetch(PARTITION2, CONSUMER, TOPIC, 0, 5),
    ):
        assert producer.receive(0.0, fetch) == []
        assert store_with(2).receive(0.0, fetch) == []
    gone = Fetch(PARTITION, CONSUMER, TOPIC, 0, 5)
    assert store_with(9, first=3).receive(0.0, gone) == [Trimmed(CONSUMER, PARTITION, TOPIC, 3, STORE)]


def test_a_fetch_is_answered_with_direct_records(tmp_path):
    """In case a requested record is available it SHALL send a DIRECT-RECORD command.

    It contains the dafka topic, the offset of the record in the partition, and the content as one frame.
    """
    fetch = Fetch(PARTITION, CONSUMER, TOPIC, 1, 2)
    producer = ProducerRole(TOPIC, PARTITION)
    producer.publish(0.0, [b"0", b"1", b"2", b"3"])
    assert producer.receive(0.0, fetch) == [Run(CONSUMER, PARTITION, TOPIC, 1, [b"1", b"2"])]
    assert store_with(4).receive(0.0, fetch) == [Serve(CONSUMER, TOPIC, PARTITION, 1, 2)]
    assert zmq_topic(DirectRecord(CONSUMER, PARTITION, TOPIC, 1, b"1")) == b"D" + CONSUMER
    with Tower() as tower, Store(tmp_path, tower=tower), Peer(tower.addresses) as peer:
        peer.meet(b"M")
        peer.until(lambda: peer.send(Record(ADDRESS, b"hello", 0, b"value")) or Ack in map(type, peer.heard))
        peer.send(Fetch(ADDRESS, CONSUMER, b"hello", 0, 1))
        assert peer.receive(DirectRecord) == DirectRecord(CONSUMER, ADDRESS, b"hello", 0, b"value")


def test_fetched_records_come_in_ascending_order(tmp_path):
    """The records requested by the FETCH command SHALL be send according to their offset in ascending order.
    """
    with (
        Tower() as tower,
        Store(tmp_path, tower=tower),
        Peer(tower.addresses) as peer,
        Producer("hello", tower=tower) as producer,
    ):
        for number in range(3000):
            producer.send(b"%d" % number)
        producer.flush(100)
        partition = producer.address.encode()
        asked = Fetch(partition, ADDRESS, b"hello", 7, 2500)
        peer.meet(b"F")
        peer.until(lambda: peer.send(asked._replace(count=1)) or DirectRecord in map(type, peer.heard))
        probe = Fetch(partition, CONSUMER, b"hello", 7, 2500)
        peer.send(probe)

        def fetched() -> list[int]:
            direct = [command for command in peer.heard if isinstance(command, DirectRecord)]
            return [command.sequence for command in direct if command.recipient == CONSUMER]

        peer.until(lambda: len(fetched()) == 2500)
        assert fetched() == list(range(7, 2507))


# -- heads ------------------------------------------------------------------------------------------


def test_subscribing_sends_get_heads():
    """If a consumer subscribes to a dafka topic it SHALL sent a GET-HEADS command in order to get the heads
    for each partition of that topic. Its topic frame is the command's ID and the topic.
    """
    assert consumer_of().subscribe(0.0, TOPIC)[-1] == GetHeads(TOPIC, CONSUMER)
    assert zmq_topic(GetHeads(TOPIC, CONSUMER)) == b"Ghello"
    with Tower() as tower, Peer(tower.addresses) as peer, Consumer(tower=tower) as consumer:
        peer.meet()
        consumer.subscribe("hello")
        assert peer.receive(GetHeads) == GetHeads(b"hello", consumer.address.encode())


def test_a_producer_answers_get_heads():
    """After receiving a GET-HEADS command a producer SHALL send a DIRECT-HEAD command if it publishes records
    to dafka topic requested by the GET-HEADS command.
    """
    role = ProducerRole(TOPIC, PARTITION)
    assert role.receive(0.0, GetHeads(TOPIC, CONSUMER)) == []
    role.publish(0.0, [b"0", b"1"])
    head = DirectHead(CONSUMER, PARTITION, TOPIC, 1)
    assert role.receive(0.0, GetHeads(TOPIC, CONSUMER)) == [head]
    assert role.receive(0.0, GetHeads(b"hello2", CONSUMER)) == []
    assert zmq_topic(head) == b"E" + CONSUMER
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Producer("hello", tower=tower, min_stores=0) as producer,
    ):
        producer.send(b"0")
        peer.meet(b"Ghello")
        peer.until(lambda: peer.send(GetHeads(b"hello", ADDRESS)) or DirectHead in map(type, peer.heard))
        assert peer.receive(DirectHead) == DirectHead(ADDRESS, producer.address.encode(), b"hello", 0)


def test_a_store_answers_get_heads_for_each_partition_of_the_topic():
    """After receiving a GET-HEADS command a store SHALL send one DIRECT-HEAD command for each partition it
    has records stored on the requested dafka topic by the GET-HEADS command.
    """
    partitions = {(TOPIC, PARTITION): (0, 5), (TOPIC, PARTITION2): (3, 4), (b"hello2", PARTITION): (0, 9)}
    role = StoreRole(STORE, partitions)
    of_hello = [DirectHead(CONSUMER, PARTITION, TOPIC, 4), DirectHead(CONSUMER, PARTITION2, TOPIC, 3)]
    assert role.receive(0.0, GetHeads(TOPIC, CONSUMER)) == of_hello
    assert role.receive(0.0, ConsumerHello(STORE, CONSUMER, (TOPIC,))) == of_hello
    assert role.receive(0.0, GetHeads(b"nothing", CONSUMER)) == []
    # The effect of these heads: an earliest consumer gets the records of both.
    consumer = consumer_of(TOPIC)
    fetches = [output for head in of_hello for output in consumer.receive(0.1, head)]
    assert [fetch.partition for fetch in fetches] == [PARTITION, PARTITION2]
    run = Run(CONSUMER, PARTITION, TOPIC, 0, [b"0"])
    assert consumer.receive_run(0.2, run) == [Deliver(TOPIC, PARTITION, 0, [b"0"])]
