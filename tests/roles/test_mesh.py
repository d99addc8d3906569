"""Whole meshes of real roles on a bad network: what they promise holds throughout, and they converge."""

from __future__ import annotations

import pytest
from roles.network import ConsumerNode, Network, ProducerNode, StoreNode

from dafka.roles.limits import Limits

SEEDS = range(300)
FAULTS_END = 15.0  # seconds
CONVERGED = FAULTS_END + 60.0
TIGHT = Limits(
    first_window=4,
    smallest_window=1,
    largest_window=64,
    fetches=3,
    ahead_distance=100,
    ahead_records=30,
    all_ahead_records=40,
    uncommitted_records=50,
)


def address_of(kind: bytes, number: int) -> bytes:
    return kind * 30 + b"%02d" % number


def build(seed: int) -> Network:
    network = Network(seed)
    chance = network.random
    network.loss = chance.choice([0.0, 0.05, 0.3])
    network.doubling = chance.choice([0.0, 0.2])
    network.delay = chance.choice([0.005, 0.05, 0.3])
    network.reorders = chance.random() < 0.5
    network.failing_writes = chance.choice([0.0, 0.0, 0.1])
    limits = chance.choice([Limits(), TIGHT])
    topics = [b"hello", b"hello2"]
    stores = [StoreNode(network, address_of(b"5", number), limits) for number in range(chance.randint(1, 2))]
    min_stores = chance.randint(0, len(stores))
    producers = [
        ProducerNode(network, chance.choice(topics), address_of(b"A", number), min_stores)
        for number in range(chance.randint(1, 3))
    ]
    consumers = [
        ConsumerNode(
            network,
            address_of(b"C", number),
            chance.choice(["earliest", "latest"]),
            chance.choice([20, 200, 10_000]),
            limits,
        )
        for number in range(chance.randint(1, 2))
    ]
    for node in [*stores, *producers, *consumers]:
        network.later(chance.uniform(0.0, 5.0), network.join, node)
    for producer in producers:
        for _ in range(chance.randint(1, 30)):
            network.later(chance.uniform(5.0, FAULTS_END), producer.send, chance.choice([1, 3, 50]))
    for consumer in consumers:
        for topic in topics[: chance.randint(1, 2)]:
            network.later(chance.uniform(5.0, FAULTS_END), _subscribe, network, consumer, topic)
        for step in range(int(CONVERGED / 0.05)):
            network.later(5.0 + step * 0.05, consumer.take)
    if chance.random() < 0.5:
        network.later(chance.uniform(6.0, FAULTS_END), chance.choice(stores).restart)
    for producer in producers:
        if chance.random() < 0.5:
            network.later(chance.uniform(10.0, FAULTS_END + 5), _leave, producer)
    return network


def _subscribe(network: Network, consumer: ConsumerNode, topic: bytes) -> None:
    consumer.carry(consumer.role.subscribe(network.now, topic))


def _leave(producer: ProducerNode) -> None:
    """A producer goes when its records are acknowledged, and then for good."""
    if producer.role.min_stores and not producer.role.unacknowledged:
        producer.alive = False
        producer.subscriptions.clear()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_node_reaches_every_head_in_order_when_the_faults_stop(seed):
    network = build(seed)
    network.run(FAULTS_END)
    network.loss = network.doubling = network.failing_writes = 0.0
    network.delay, network.reorders = 0.005, False
    network.run(CONVERGED)

    heads = {(node.role.topic, node.role.address): node.role.next_sequence for node in network.producers}
    for producer in network.producers:
        assert producer.role.unacknowledged == 0
    for store in network.stores:
        assert {key: len(log) for key, log in store.log.items()} == {key: n for key, n in heads.items() if n}
    for consumer in network.consumers:
        known = consumer.role.positions
        for key, (position, end) in known.items():
            assert position == end == heads[key]
        if consumer.earliest:
            wanted = {key for key, head in heads.items() if head and key[0] in consumer.role.topics}
            assert set(known) == wanted
    assert network.messages < 200_000


def test_a_consumer_ends_catching_up_while_the_producer_never_pauses():
    network = Network(1)
    store = StoreNode(network, address_of(b"5", 0), Limits())
    producer = ProducerNode(network, b"hello", address_of(b"A", 0), 1)
    consumer = ConsumerNode(network, address_of(b"C", 0), "earliest", 10_000_000, Limits())
    network.join(store)
    network.join(producer)
    for step in range(1000):
        network.later(1.0 + step / 100, producer.send, 100)
    network.later(5.0, network.join, consumer)
    network.later(5.0, consumer.take)
    network.later(5.1, _subscribe, network, consumer, b"hello")
    network.run(9.0)
    fetches = consumer.role.fetches
    network.run(10.9)
    key = (b"hello", producer.role.address)
    assert consumer.role.positions[key][0] >= producer.role.next_sequence - 200
    assert consumer.role.fetches == fetches, "it still fetches what it could take live"
