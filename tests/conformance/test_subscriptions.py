"""ZeroMQ Subscriptions: which node registers which."""

from __future__ import annotations

from mesh.peer import Peer

from dafka import Consumer, Producer, Store, Tower
from dafka.roles.consumer import ConsumerRole
from dafka.roles.outputs import Subscribe
from dafka.roles.producer import ProducerRole
from dafka.roles.store import StoreRole

ME = b"A" * 32
TOPICS = [b"hello", b"other"]


def of_producer() -> list[bytes]:
    return [output.prefix for output in ProducerRole(b"hello", ME).start()]


def of_consumer() -> list[bytes]:
    role = ConsumerRole(ME)
    outputs = role.start() + [output for topic in TOPICS for output in role.subscribe(0.0, topic)]
    return [output.prefix for output in outputs if isinstance(output, Subscribe)]


def of_store() -> list[bytes]:
    return [output.prefix for output in StoreRole(ME).start()]


def test_nodes_register_their_subscriptions_with_the_others(tmp_path):
    """Because Dafka nodes are connected through PUB and SUB sockets each node MUST register subscriptions
    with the other nodes in order to receive messages.
    """
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Store(tmp_path, tower=tower) as store,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower) as consumer,
    ):
        wanted = {b"M", b"H", b"F", b"G", b"Mhello", b"Hhello"}
        wanted |= {octet + store.address.encode() for octet in (b"D", b"W")}
        wanted |= {octet + producer.address.encode() for octet in (b"K", b"F")}
        wanted |= {octet + consumer.address.encode() for octet in (b"D", b"E", b"L")}
        peer.meet(*wanted)


def test_a_producer_subscribes_to_acks_of_its_partition():
    """A producer SHALL subscribe to ACK commands for its own partition by concatenating the ACK command ID
    and the partition name which equals the producer's address.
    """
    assert b"K" + ME in of_producer()


def test_a_producer_subscribes_to_fetches_of_its_partition():
    """A producer SHALL subscribe to FETCH commands for its own partition by concatenating the FETCH command
    ID and the partition name which equals the producer's address.
    """
    assert b"F" + ME in of_producer()


def test_a_consumer_subscribes_to_its_direct_records():
    """A consumer SHALL subscribe to DIRECT-RECORD commands addressed to it by concatenating the DIRECT-RECORD
    command ID and its consumer address.
    """
    assert b"D" + ME in of_consumer()


def test_a_consumer_subscribes_to_its_direct_heads():
    """A consumer SHALL subscribe to DIRECT-HEAD commands addressed to it by concatenating the DIRECT-HEAD
    command ID and its consumer address.
    """
    assert b"E" + ME in of_consumer()


def test_a_consumer_subscribes_to_store_hellos():
    """A consumer SHALL subscribe to STORE-HELLO commands by concatenating the STORE-HELLO command ID and the
    consumer address.
    """
    assert b"L" + ME in of_consumer()


def test_a_consumer_subscribes_to_records_of_each_topic():
    """For each dafka topic a consumer is subscribed to it SHALL subscribe to RECORD commands by concatenating
    the RECORD command ID and topic name.
    """
    assert [prefix for prefix in of_consumer() if prefix[:1] == b"M"] == [b"Mhello", b"Mother"]


def test_a_consumer_subscribes_to_heads_of_each_topic():
    """For each dafka topic a consumer is subscribed to it SHALL subscribe to HEAD commands by concatenating
    the HEAD command ID and topic name.
    """
    assert [prefix for prefix in of_consumer() if prefix[:1] == b"H"] == [b"Hhello", b"Hother"]


def test_a_consumer_does_without_acks():
    """For each partition of each dafka topic a consumer is subscribed to it MAY subscribe to ACK commands by
    concatenating the ACK command ID and the partition name which equals the producer's address.

    Ours does not: it has no use for them.
    """
    assert not any(prefix[:1] == b"K" for prefix in of_consumer())


def test_a_store_subscribes_to_all_records():
    """A store SHALL subscribe to all RECORD commands by subscribing the RECORD command ID."""
    assert b"M" in of_store()


def test_a_store_subscribes_to_all_heads():
    """A store SHALL subscribe to all HEAD commands by subscribing the HEAD command ID."""
    assert b"H" in of_store()


def test_a_store_subscribes_to_its_direct_records():
    """A store SHALL subscribe to DIRECT-RECORD commands addressed to it by concatenating the DIRECT-RECORD
    command ID and its store address.
    """
    assert b"D" + ME in of_store()


def test_a_store_subscribes_to_all_fetches():
    """A store SHALL subscribe to all FETCH commands by subscribing to the FETCH command ID."""
    assert b"F" in of_store()


def test_a_store_subscribes_to_get_heads():
    """A store SHALL subscribe to GET-HEADS commands by subscribing to the GET-HEADS command ID."""
    assert b"G" in of_store()


def test_a_store_subscribes_to_consumer_hellos():
    """A store SHALL subscribe to CONSUMER-HELLO commands by subscribing to the CONSUMER-HELLO command ID

    Together with its own address, as in the field: nothing else is for it, and a consumer learns from this
    subscription that there is a store to greet.
    """
    assert b"W" + ME in of_store()
