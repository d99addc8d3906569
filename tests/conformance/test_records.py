"""Topics, Partitions and Records."""

from __future__ import annotations

import uuid

import pytest

from dafka import Consumer, Producer, Tower
from dafka.protocol.commands import DirectHead, GetHeads, Record
from dafka.protocol.framing import Framing, decode, encode
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.outputs import Deliver
from dafka.roles.producer import ProducerRole
from dafka.roles.store import StoreRole

ME = b"A" * 32
CONSUMER = b"C" * 32


def test_the_number_of_topics_is_not_restricted():
    """A Dafka cluster SHALL not place any restriction on the total number of topics other than physicals due
    to the amount of available memory or disk space.
    """
    store, consumer = StoreRole(b"5" * 32), ConsumerRole(CONSUMER, offset_reset="earliest")
    consumer.set_room(0.0, 10**6, 10**9)
    for number in range(20_000):
        topic = b"topic%d" % number
        consumer.subscribe(0.0, topic)
        run = Run(None, ME, topic, 0, [b"x"])
        assert consumer.receive_run(0.0, run) == [Deliver(topic, ME, 0, [b"x"])]
        assert store.receive_run(0.0, run)
        store.stored(0.0, topic, ME, 1)
    assert (len(store.positions), len(consumer.positions)) == (20_000, 20_000)
    assert store.refused == consumer.refused == 0


NAMES = [b"hello", b" ", b"\x00", b"a\x00b\x01", bytes(range(1, 256)), b"\xff" * 255]


@pytest.mark.parametrize("topic", NAMES)
@pytest.mark.parametrize("framing", Framing)
def test_topic_names_are_best_ascii_and_may_be_any_octets(topic, framing):
    """The name of a Dafka topic can be any byte sequence of arbitrary length. Though it is RECOMMENDED to use
    only characters from the ASCII character set.
    """
    record = Record(ME, topic, 7, b"content")
    assert decode(encode(record, framing)) == record
    with pytest.raises(ValueError, match="255"):
        encode(record._replace(topic=b"x" * 256), framing)


def test_a_topic_consists_of_the_partitions_of_its_producers():
    """Each Dafka topic SHALL consist of at least one partition."""
    store = StoreRole(b"5" * 32)
    assert store.receive(0.0, GetHeads(b"hello", CONSUMER)) == []  # no partition: no such topic
    for partitions in (1, 2):
        producer = ProducerRole(b"hello", b"%032d" % partitions)
        store.receive_run(0.0, producer.publish(0.0, [b"x"]))
        store.stored(0.0, b"hello", producer.address, 1)
        heads = store.receive(0.0, GetHeads(b"hello", CONSUMER))
        assert len(heads) == partitions
        assert DirectHead(CONSUMER, producer.address, b"hello", 0) in heads


def test_a_producer_publishes_to_one_partition_that_is_its_own():
    """In order to keep the protocol simple each producer MUST publish records to exactly one partition and
    further only one producer SHALL ever publish to the same partition.
    """
    producer = ProducerRole(b"hello", ME)
    assert {producer.publish(0.0, [b"x"])[1:3] for _ in range(100)} == {(ME, b"hello")}
    with Tower() as tower:
        producers = [Producer("hello", tower=tower, min_stores=0) for _ in range(20)]
        assert len({each.address for each in producers}) == 20
        for each in producers:
            each.close()


def test_the_partition_is_named_by_the_producers_uuid():
    """In order to make this connection obvious the name of the partition SHALL be the producer's node UUID.
    """
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        producer.send(b"x")
        (record,) = consumer.poll(100.0)
        assert record.partition == producer.address == uuid.UUID(producer.address).hex.upper()


def test_the_first_record_has_the_offset_0():
    """The first record of each partition SHALL have the offset 0."""
    assert ProducerRole(b"hello", ME).publish(0.0, [b"x"]).first == 0


def test_each_offset_is_the_one_before_plus_1():
    """Each following record's offset SHALL be the previous record's offset incremented by 1."""
    producer = ProducerRole(b"hello", ME)
    runs = [producer.publish(0.0, [b"x"] * count) for count in (3, 1, 1000, 1)]
    assert [(run.first, run.next) for run in runs] == [(0, 3), (3, 4), (4, 1004), (1004, 1005)]
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as real,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        assert [real.send(b"x") for _ in range(50)] == list(range(50))
        assert [next(consumer).sequence for _ in range(50)] == list(range(50))
