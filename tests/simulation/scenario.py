"""What happens in a simulated mesh: made from the seed, run until the faults have stopped and all is well."""

from __future__ import annotations

import random
from itertools import pairwise

from dafka.roles.limits import Limits

from .consumer_node import ConsumerNode
from .named_producer import NamedProducer
from .network import CALM, Faults, Network
from .nodes import FloodNode, IntruderNode, Node, ProducerNode, TowerNode
from .rules import Violation, require
from .store_node import StoreNode

FAULTS_END = 15.0  # seconds
EVERYBODY_HERE = FAULTS_END + 10.0  # the last one has joined, the last record is published
CONVERGED = EVERYBODY_HERE + 60.0  # by then every consumer and store has reached every head
STORE_TIMEOUT = 40.0  # seconds; of producers that give a store up
QUIET = 5.0  # seconds without a FETCH after that
MOST_MESSAGES = 100_000
FAIR = 0.25  # of the seeds have no faults of the network at all, from the beginning

TIGHT = Limits(
    first_window=4,
    smallest_window=1,
    largest_window=64,
    fetches=2,
    ahead_distance=100,
    ahead_records=30,
    all_ahead_records=40,
    uncommitted_records=50,
    answer_records=20,
    told_at_once=1,
)
# Stores that have no place for a partition say nothing of it, so the others wait out their patience.
CROWDED = Limits(partitions=8, peers=64, commit_patience=5.0, store_patience=6.0)
# So that the fetches of partitions that do not exist can use up what there is of everything.
INTRUDED = Limits(fetches=20, uncommitted_records=2000)
TOPICS = [b"hello", b"hello2"]  # ZeroMQ, which compares prefixes, delivers both to subscribers of the first


def simulate(seed: int, network: Network | None = None) -> Network:
    """Run a seed to its end. Raises :class:`Violation`, or AssertionError for what is inside a role."""
    network = network or build(seed)
    network.run(FAULTS_END)
    network.faults, network.calm_since = CALM, min(network.calm_since, network.now)
    network.run(EVERYBODY_HERE)
    quiet = False
    while not quiet:
        while wrong := not_converged(network):
            if network.now >= CONVERGED:
                raise Violation(f"after {network.now - FAULTS_END:.0f} s without faults: {wrong[0]}")
            network.run(network.now + 1.0)
        behind, fetches = _anybody_behind(network), _fetches(network)
        network.run(network.now + QUIET)
        quiet = behind or _fetches(network) == fetches
        require(quiet or network.now < CONVERGED, "a mesh in which nobody is behind goes on fetching")
    named = [node for node in network.producers if isinstance(node, NamedProducer)]
    for one, other in pairwise(named):
        one.check_twin(other, network.now - 10.0)
    require(network.messages < MOST_MESSAGES, f"{network.messages} messages")
    return network


def build(seed: int) -> Network:
    """The nodes of a seed, and all that will happen to them."""
    network = Network(seed)
    chance = network.random
    network.faults = Faults(
        loss=chance.choice([0.0, 0.05, 0.3]),
        doubling=chance.choice([0.0, 0.2]),
        delay=chance.choice([0.005, 0.05, 0.3]),
        reorders=chance.random() < 0.5,
        failing_writes=chance.choice([0.0, 0.0, 0.1, 0.4]),
    )
    if chance.random() < FAIR:
        network.faults, network.calm_since = CALM, 0.0
    way = chance.random()
    network.through_frames = way < 0.1
    network.through_octets = 0.1 <= way < 0.25
    network.same_ports = random.Random(f"ports {seed}").random() < 0.5
    crowded = chance.random() < 0.1
    limits = CROWDED if crowded else chance.choice([Limits(), TIGHT])
    more = random.Random(f"more {seed}")
    intruded = not crowded and more.random() < 0.15
    if intruded:
        limits = INTRUDED
    for number in range(chance.choice([1, 1, 2])):
        TowerNode(network, number)
    _add_stores(network, limits)
    _add_producers(network, limits)
    if chance.random() < 0.4:
        _add_named_producer(network, limits)
    _add_consumers(network, limits)
    for node in network.nodes:
        late = chance.random() < 0.3
        network.later(chance.uniform(0.0, EVERYBODY_HERE - 5 if late else 5.0), _join, network, node)
    if crowded:
        flood = FloodNode(network, TOPICS)
        network.later(1.0, _join, network, flood)
        for _ in range(20):
            network.later(chance.uniform(2.0, FAULTS_END), flood.flood, 10)
    if network.calm_since:
        _add_faults(network)
    if intruded:
        _add_intruder(network, more)
    if network.faults.failing_writes and more.random() < 0.6:
        for store in network.stores:  # more is under way when the first write fails
            store.commit_time = 2.0
            network.later(FAULTS_END, setattr, store, "commit_time", 0.05)
    named = [node for node in network.producers if isinstance(node, NamedProducer)]
    keeping = [node for node in network.consumers if node.keeps_what_it_has_no_room_for]
    if named and keeping and more.random() < 0.6:
        _end_while_a_consumer_has_no_room(network, named[0], more.choice(keeping), more)
    return network


def _add_intruder(network: Network, chance: random.Random) -> None:
    """Partitions that do not exist, while there are faults and when there are none any more.

    Not so many that a store gets to others only when those that look for the same have lost patience.
    """
    intruder = IntruderNode(network, TOPICS)
    network.later(1.0, _join, network, intruder)
    for _ in range(chance.randint(1, 3)):
        network.later(chance.uniform(2.0, EVERYBODY_HERE - 6), intruder.tell, chance.choice([20, 50]))


def _add_stores(network: Network, limits: Limits) -> None:
    chance = network.random
    for number in range(chance.choice([0, 1, 1, 2, 2, 3])):
        plain = number == 0 and chance.random() < 0.15
        store = StoreNode(network, address_of(b"5", number), limits, plain=plain)
        store.commit_time = chance.choice([0.01, 0.05, 0.4])
        if chance.random() < 0.5:
            at = chance.uniform(6.0, FAULTS_END - 1)
            network.later(at, network.kill, store)
            network.later(chance.uniform(at, FAULTS_END), _revive, network, store)
        if chance.random() < 0.4:
            for _ in range(chance.randint(1, 5)):
                network.later(chance.uniform(6.0, EVERYBODY_HERE), store.trim)
    if len(network.stores) > 1 and chance.random() < 0.15:
        network.later(chance.uniform(8.0, FAULTS_END), chance.choice(network.stores).destroy)
    if len(network.stores) > 1 and limits not in (CROWDED, INTRUDED) and chance.random() < 0.3:
        _trim_before_one_that_catches_up(network)


def _trim_before_one_that_catches_up(network: Network) -> None:
    """A store with a slow disk comes back late, and the others let go of what it is fetching."""
    chance = network.random
    late, *others = chance.sample(network.stores, len(network.stores))
    late.limits, late.commit_time = TIGHT, 0.8  # it asks for little at a time
    back = chance.uniform(9.0, EVERYBODY_HERE - 5)
    network.later(5.0, network.kill, late)
    network.later(back, _revive, network, late)
    for _ in range(chance.randint(5, 15)):
        network.later(back + chance.uniform(0.0, 3.0), chance.choice(others).trim)
    network.later(back + 5.0, setattr, late, "commit_time", 0.05)


def _add_producers(network: Network, limits: Limits) -> None:
    chance = network.random
    min_stores = chance.randint(0, min(2, len(network.stores)))
    for number in range(chance.randint(1, 3)):
        topic = chance.choice(TOPICS)
        patience = STORE_TIMEOUT if min_stores and chance.random() < 0.5 else None
        producer = ProducerNode(network, topic, address_of(b"A", number), min_stores, limits, patience)
        last = chance.choice([8.0, FAULTS_END, FAULTS_END + 5])
        for _ in range(chance.randint(1, 30)):
            network.later(chance.uniform(5.0, last), producer.send, chance.choice([1, 3, 50]))
        if not min_stores and chance.random() < 0.3:
            for _ in range(chance.randint(1, 3)):
                network.later(chance.uniform(6.0, EVERYBODY_HERE), producer.forget)
        if not min_stores and chance.random() < 0.5:
            producer.memory = chance.choice([100, 1000])
        if chance.random() < 0.4:
            network.later(chance.uniform(8.0, EVERYBODY_HERE), network.kill, producer)


def _add_named_producer(network: Network, limits: Limits) -> None:
    """One that ends and comes back, or is running twice."""
    chance = network.random
    min_stores = chance.randint(0, min(2, len(network.stores)))
    where = chance.choice(TOPICS), address_of(b"B", 0), min_stores, limits
    first = NamedProducer(network, *where)
    several = [first]
    if chance.random() < 0.4:
        several.append(NamedProducer(network, *where, runs=first.runs))
    for producer in several:
        for _ in range(chance.randint(1, 30)):
            network.later(chance.uniform(5.0, EVERYBODY_HERE), producer.send, chance.choice([1, 3, 50]))
        for _ in range(chance.randint(0, 3)):
            at = chance.uniform(6.0, EVERYBODY_HERE - 3)
            network.later(at, network.kill, producer)
            network.later(at + chance.choice([0.0, 0.1, 3.0]), _revive, network, producer)
    if len(network.stores) > 1 and chance.random() < 0.5:
        _hide_the_store_that_has_most(network, first)
    keeping = [store for store in network.stores if store.keeps_what_it_has_no_room_for]
    quiet = limits not in (CROWDED, INTRUDED) and not network.faults.failing_writes
    if keeping and quiet and chance.random() < 0.5:
        _end_while_a_store_has_no_room(network, first, chance.choice(keeping))


def _end_while_a_consumer_has_no_room(
    network: Network, producer: NamedProducer, consumer: ConsumerNode, chance: random.Random
) -> None:
    """Its last records reach no store, and wait for the user of a consumer while it comes back."""
    consumer.room_records = 20
    network.later(5.0, consumer.subscribe, producer.key[0])
    at = chance.uniform(6.0, 10.0)
    for store in network.stores:
        network.later(at, network.cut, producer, store, 2.0)
    network.later(at, setattr, consumer, "longest_break", 6.0)
    for step in range(12):
        network.later(at + 0.01 * step, producer.send, 3)
    network.later(at + 0.5, network.kill, producer)
    network.later(at + chance.uniform(0.5, 2.0), _revive, network, producer)
    for _ in range(5):
        network.later(at + chance.uniform(3.0, 6.0), producer.send, 3)
    network.later(at + 6.0, setattr, consumer, "longest_break", 0.05)
    if chance.random() < 0.4:  # its user leaves the topic while they wait, and comes back
        network.later(at + chance.uniform(0.2, 2.0), consumer.unsubscribe, producer.key[0])
        network.later(at + chance.uniform(2.0, 5.0), consumer.subscribe, producer.key[0])


def _hide_the_store_that_has_most(network: Network, producer: NamedProducer) -> None:
    """The one store that has heard it is away when the producer comes back, and returns later."""
    chance = network.random
    best, *others = chance.sample(network.stores, len(network.stores))
    for other in others:
        network.later(5.0, network.cut, producer, other, 3.0)
        network.later(5.0, network.cut, best, other, 3.0)
    for _ in range(chance.randint(1, 4)):
        network.later(chance.uniform(5.5, 7.0), producer.send, chance.choice([3, 50]))
    network.later(7.5, network.kill, producer)
    network.later(7.5, network.kill, best)
    network.later(8.5, _revive, network, producer)
    for _ in range(5):
        network.later(chance.uniform(10.5, 13.0), producer.send, 50)
    network.later(chance.uniform(11.0, FAULTS_END), _revive, network, best)


def _end_while_a_store_has_no_room(network: Network, producer: NamedProducer, store: StoreNode) -> None:
    """Its last records wait behind those of others for the disk of the only store while it comes back."""
    chance = network.random
    store.limits = TIGHT
    others = [one for one in network.producers if not isinstance(one, NamedProducer)]
    at = chance.uniform(6.0, 10.0)
    for other in network.stores:
        if other is not store:
            network.later(at - 0.5, network.kill, other)
            network.later(at + 8.0, _revive, network, other)
    network.later(at, setattr, store, "commit_time", 4.0)
    for step in range(6):
        network.later(at + 0.01 * step, chance.choice(others).send, 50)
        network.later(at + 0.1 + 0.01 * step, producer.send, 3)
    network.later(at + 0.5, network.kill, producer)
    network.later(at + chance.uniform(0.5, 1.0), _revive, network, producer)
    for _ in range(5):
        network.later(at + chance.uniform(1.5, 4.0), producer.send, 3)
    network.later(at + 4.0, setattr, store, "commit_time", 0.05)


def _add_consumers(network: Network, limits: Limits) -> None:
    chance = network.random
    # Where most partitions are made up, their fetches would use up the little room for a second each.
    rooms = [200, 10_000] if limits in (CROWDED, INTRUDED) else [1, 20, 200, 10_000]
    sizes = [10**9] if limits is INTRUDED else [300, 10**9, 10**9]
    for number in range(chance.randint(1, 3)):
        offsets = {}
        if chance.random() < 0.2:
            offsets[address_of(b"A", 0)] = chance.randint(0, 60)
        consumer = ConsumerNode(
            network,
            address_of(b"C", number),
            chance.choice(["earliest", "latest"]),
            (chance.choice(rooms), chance.choice(sizes)),
            limits,
            offsets,
        )
        consumer.longest_break = 0.05 if consumer.room_records < 20 else chance.choice([0.05, 0.1, 0.5])
        for topic in TOPICS[: chance.randint(1, 2)]:
            network.later(chance.uniform(0.0, FAULTS_END), consumer.subscribe, topic)
            if chance.random() < 0.15:
                at = chance.uniform(5.0, FAULTS_END)
                network.later(at, consumer.unsubscribe, topic)
                network.later(chance.uniform(at, EVERYBODY_HERE), consumer.subscribe, topic)
        if chance.random() < 0.3:
            at = chance.uniform(6.0, FAULTS_END)
            network.later(at, network.kill, consumer)
            network.later(chance.uniform(at, EVERYBODY_HERE - 5), _revive, network, consumer)


def _add_faults(network: Network) -> None:
    """Cut links, stopped processes, processes that hear nothing, towers that go down."""
    chance = network.random
    for _ in range(chance.randint(0, 4)):
        one, other = chance.sample([*network.nodes, *network.towers], 2)
        at = chance.uniform(2.0, FAULTS_END - 1)
        network.later(at, network.cut, one, other, min(chance.uniform(0.5, 8.0), FAULTS_END - at))
    for _ in range(chance.choice([0, 0, 1, 2])):
        at = chance.uniform(2.0, FAULTS_END - 1)
        seconds = min(chance.uniform(0.5, 8.0), FAULTS_END - at)
        network.later(at, network.stop, chance.choice(network.nodes), seconds)
    for _ in range(chance.choice([0, 0, 1, 2])):
        at = chance.uniform(5.0, FAULTS_END - 1)
        seconds = min(chance.uniform(0.5, 8.0), FAULTS_END - at)
        network.later(at, network.deafen, chance.choice(network.nodes), seconds)
    for tower in network.towers:
        if chance.random() < 0.3:
            at = chance.uniform(0.0, FAULTS_END - 1)
            network.later(at, tower.go_down, min(chance.uniform(1.0, 10.0), FAULTS_END - at))


def address_of(kind: bytes, number: int) -> bytes:
    return kind * 30 + b"%02d" % number


def _join(network: Network, node: Node) -> None:
    if not node.incarnation and not getattr(node, "destroyed", False):
        network.start(node)


def _revive(network: Network, node: Node) -> None:
    if not node.alive and not getattr(node, "destroyed", False):
        network.note(f"{node} starts")
        network.start(node)


# -- the end ------------------------------------------------------------------------------------------


def not_converged(network: Network) -> list[str]:
    """What is still to come, in words; nothing when every node has reached every head."""
    wrong = []
    heads: dict[tuple[bytes, bytes], int] = {}
    for producer in network.producers:
        if producer.alive and not getattr(producer, "failed", False):
            heads[producer.key] = max(heads.get(producer.key, 0), producer.role.next_sequence)
    for store in network.stores:
        for key in store.log if store.alive else ():
            heads[key] = max(heads.get(key, 0), store.end(key))
    heads = {key: head for key, head in heads.items() if head}

    full_stores = [store for store in network.stores if store.alive]
    for key, head in heads.items():
        for store in full_stores:
            at = store.reach(key)
            if at < head and not is_lost(network, key, at) and not _refused(store, key):
                wrong.append(f"{store} has {key} up to {at} of {head}")
            elif max(at, network.gone.get(key, 0)) < store.acknowledged.get(key, 0):
                wrong.append(f"{store} acknowledged {key} up to {store.acknowledged[key]} and has it to {at}")
            else:
                missing = _missing(network, store, key, at)
                if missing is not None:
                    wrong.append(f"{store} lacks record {missing} of {key}")
        for consumer in network.consumers:
            if consumer.alive and key[0] in consumer.role.topics and not _refused(consumer, key):
                wrong += _consumer_behind(network, consumer, key, head)
    for node in network.nodes:
        dead = [endpoint for endpoint in node.connected if endpoint not in network.endpoints]
        if node.alive and dead:
            wrong.append(f"{node} is still connected to {dead[0]!r}, where nobody is")
    if not any(store.destroyed for store in network.stores):
        for producer in network.producers:
            if (
                producer.alive
                and not getattr(producer, "failed", False)
                and not producer.role.disputed
                and producer.role.unacknowledged
                and not any(_refused(store, producer.key) for store in full_stores)
            ):
                wrong.append(f"{producer} waits for {producer.role.unacknowledged} acknowledgements")
    return wrong


def _consumer_behind(
    network: Network, consumer: ConsumerNode, key: tuple[bytes, bytes], head: int
) -> list[str]:
    known = consumer.role.positions.get(key)
    if known is None:
        # A node that wants the latest may never have heard of a partition whose producer is gone.
        speaks = (
            consumer.earliest
            or key[1] in consumer.offsets
            or any(node.alive and node.key == key for node in network.producers)
        )
        return [f"{consumer} does not know {key}"] if speaks else []
    at = known[0]
    if at < head and not is_lost(network, key, at):
        return [f"{consumer} has {key} up to {at} of {head}"]
    if at != consumer.positions.get(key, at):
        return [f"{consumer} was given {key} up to {consumer.positions[key]}, not {at}"]
    return []


def is_lost(network: Network, key: tuple[bytes, bytes], sequence: int) -> bool:
    """Whether the record died with the nodes that had it, and nobody alive can tell that it is no more.

    A producer does not, if it never gives up a store whose acknowledgement it has: that may come back; nor
    while another store waits for such a record, and could go on to this one.
    """
    for store in network.stores:
        if store.alive and store.reach(key) > sequence:
            return False  # has it, or says where the records go on
    for producer in network.producers:
        if producer.key == key and producer.alive and producer.role.next_sequence > sequence:
            had = any(sequence < store.acknowledged.get(key, 0) for store in network.stores)
            waiting = (store.reach(key) for store in network.stores if store.alive)
            had = had or any(at < sequence and is_lost(network, key, at) for at in waiting)
            gives_up = producer.role.store_timeout is not None
            return sequence < producer.role.first_retained and had and not gives_up
    return True


def _missing(network: Network, store: StoreNode, key: tuple[bytes, bytes], end: int) -> int | None:
    """A record that nobody let go of and that is not in the log."""
    records = store.log[key].records if key in store.log else {}
    wanted = range(network.gone.get(key, 0), end)
    return next((sequence for sequence in wanted if sequence not in records), None)


def _refused(node: StoreNode | ConsumerNode, key: tuple[bytes, bytes]) -> bool:
    """Whether the node had no place for the partition."""
    return bool(node.role.refused) and key not in node.role.positions


def _fetches(network: Network) -> int:
    return sum(node.role.fetches for node in [*network.stores, *network.consumers])


def _anybody_behind(network: Network) -> bool:
    """Whether a node knows of records that it does not have; it may ask for ever if nobody has them."""
    return any(node.role.lag for node in network.consumers if node.alive) or any(
        committed < end
        for store in network.stores
        if store.alive
        for _, committed, end in store.role.positions.values()
    )
