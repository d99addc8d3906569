"""What happens to an overlay: made from the seed, run until the faults have stopped and all is well."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from unittest.mock import patch

from dafka.overlay.routing import flooding, multipath
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Action
from dafka.overlay.values import Count, encode
from dafka.overlay.wire.commands import Erase, Put
from dafka.overlay.wire.primitives import NO_ENTITY

from .libbroker import add_libbroker, check_leaves, is_joined, reached
from .network import CALM, STORE, Faults, Network, Node, require
from .rules import Promise, check_stores, check_tables, have_room, true_links

BEGIN = 8.0  # seconds; everybody is connected
FAULTS_END = 30.0
QUIET = FAULTS_END + 60.0  # stopped nodes go on, silent connections are noticed, tables agree
END = QUIET + 3.0
TOPICS = [b"/a", b"/a/b", b"/a/c", b"/d", b"/d/e", b"/f"]


def build(seed: int, with_libbroker: bool = True) -> Network:
    network = Network(seed)
    chance = network.random
    size = chance.choice([2, 3, 4, 5, 6, 8, 10, 14, 20, 30])
    shape = chance.choice(["chain", "ring", "chords", "star", "tree", "mesh", "random"])
    if shape == "mesh":
        size = min(size, 12)
    network.nodes = [Node(number) for number in range(size)]
    for one, other in sorted(set(_links(network, shape, size))):
        both = chance.random() < 0.2
        network.want(*((one, other) if chance.random() < 0.5 else (other, one)))
        if both:  # both connect, at times at the same moment
            for way in ((one, other), (other, one)):
                if way not in network.wanted:
                    network.want(*way)
    if chance.random() < 0.3:
        master, *clones = chance.sample(network.nodes, min(size, chance.choice([2, 3, 5])))
        master.content = Content(STORE)
        for node in clones:
            node.has_clone = True
    for node in network.nodes:
        network.start(node, _prefixes(network))
    if with_libbroker and seed % 5 in (1, 3):
        add_libbroker(network)
    network.faults = Faults(
        delay=chance.choice([0.01, 0.05, 0.3]),
        loss=chance.choice([0.0, 0.0, 0.1]),
        unnoticed=chance.choice([0.0, 0.0, 0.3]),
    )
    for _ in range(size // 2):  # also while the first links come up
        network.later(chance.uniform(0.0, 3.0), _subscribe, network)
    network.note(f"{shape} of {size}, {network.faults}")
    if seed % 10 in (2, 4, 7):
        chance = random.Random(seed)
        network.most_peers = max(1, chance.choice([size // 2, size - 1, size + 1]))
        network.most_octets = chance.choice([network.most_octets, 4 * size, 12 * size])
        network.note(f"at most {network.most_peers} peers, and {network.most_octets} octets of filters")
    return network


def _links(network: Network, shape: str, size: int) -> Iterator[tuple[int, int]]:
    chance = network.random
    if shape in ("chain", "ring", "chords"):
        yield from ((number, number + 1) for number in range(size - 1))
    if shape in ("ring", "chords") and size > 2:
        yield 0, size - 1
    if shape == "chords" and size > 3:
        for _ in range(size // 3):
            one, other = sorted(chance.sample(range(size), 2))
            yield one, other
    if shape == "star":
        yield from ((0, number) for number in range(1, size))
    if shape == "tree":
        yield from ((chance.randrange(number), number) for number in range(1, size))
    if shape == "mesh":
        yield from ((one, other) for one in range(size) for other in range(one + 1, size))
    if shape == "random":
        for one in range(size):
            for other in range(one + 1, size):
                if chance.random() < 2.5 / size:
                    yield one, other


def _prefixes(network: Network) -> tuple[bytes, ...]:
    chance = network.random
    return tuple(chance.sample([b"", *TOPICS], chance.choice([0, 1, 1, 2, 3])))


def _subscribe(network: Network) -> None:
    node = network.random.choice(network.nodes)
    if node.alive and not node.keeps_prefixes:
        network.subscribe(node, _prefixes(network))


def simulate(seed: int, network: Network | None = None) -> Network:
    """Run a seed to its end. Raises :class:`~.network.Violation` when a promise does not hold.

    In some, nodes tell of peers that have lost paths one after the other, and other things happen meanwhile.
    In some, nodes have no room for all that they are told, at least while they still know of the dead.
    """
    network = build(seed) if network is None else network
    with ExitStack() as stack:
        limits = {"MOST_PEERS": network.most_peers, "ALL_FILTER_OCTETS": network.most_octets}
        if seed % 3 == 2:
            limits |= {"SETTLED_AT_ONCE": 1, "TIDIED_AT_ONCE": 1}
        for name, limit in limits.items():
            stack.enter_context(patch.object(flooding, name, limit))
        return _simulate(network)


def _simulate(network: Network) -> Network:
    scenario = _Scenario(network)
    network.run(BEGIN)
    scenario.faults(FAULTS_END - BEGIN)
    network.run(FAULTS_END)
    scenario.calm()
    network.run(QUIET)
    check_tables(network)
    if not have_room(network, true_links(network)):
        return network
    check_stores(network)
    if any(node.is_libbroker for node in network.nodes):
        scenario.find_ways_round()
        check_leaves(network)
        network.is_quiet = is_joined(network)
    told = network.told
    scenario.publish_from_everybody()
    network.run(network.now + END - QUIET)
    scenario.check_everything_arrived()
    require(network.told == told, f"{network.told - told} words about nothing")
    return network


class _Scenario:
    def __init__(self, network: Network) -> None:
        self.network = network
        self._published = 0
        self._last: list[tuple[Node, bytes, bytes]] = []

    def faults(self, seconds: float) -> None:
        network = self.network
        chance = network.random
        loss = network.faults.loss
        for _ in range(chance.choice([0, 2, 10, 40])):
            network.later(chance.uniform(0, seconds), self._fault)
        for _ in range(chance.choice([5, 20, 60])):
            network.later(chance.uniform(0, seconds), self._publish, loss == 0.0)
        for _ in range(chance.choice([0, 3, 10])):
            network.later(chance.uniform(0, seconds), _subscribe, network)
        for _ in range(chance.choice([0, 10, 40])):
            network.later(chance.uniform(0, seconds), self._write)

    def calm(self) -> None:
        network = self.network
        network.faults = CALM
        for (one, other), is_cut in list(network.wanted.items()):
            if is_cut and network.random.random() < 0.8:
                network.mend(one, other)
        for node in network.nodes:
            if not node.alive and network.random.random() < 0.8:
                network.start(node, node.prefixes if node.keeps_prefixes else _prefixes(network))

    def find_ways_round(self) -> None:
        """Messages on all topics, so that nodes of libbroker which are beside each other are known."""
        for topic in TOPICS:
            for node in self.network.nodes:
                if node.alive:
                    self._send(node, topic)
            self.network.run(self.network.now + 2.5)

    def publish_from_everybody(self) -> None:
        for node in self.network.nodes:
            if node.alive:
                topic = self.network.random.choice(TOPICS)
                self._last.append((node, topic, self._send(node, topic)))

    def check_everything_arrived(self) -> None:
        for node, topic, payload in self._last:
            for other in reached(self.network, node, topic, payload):
                require(payload in other.received, f"{other} never gets {payload!r} of {node}")

    def _write(self) -> None:
        chance = self.network.random
        stores = [node for node in self.network.nodes if node.alive and node.topics]
        if stores:
            node = chance.choice(stores)
            action: Action = Put(chance.choice("abc"), chance.randrange(100), None, NO_ENTITY)
            if chance.random() < 0.3:
                action = Erase(chance.choice("abc"), NO_ENTITY)
            self.network.carry(node, node.endpoint.write(self.network.now, STORE, action))

    def _fault(self) -> None:
        network = self.network
        chance = network.random
        node = chance.choice(network.nodes)
        kind = chance.choice(["cut", "sever", "mend", "kill", "start", "stop", "flap", "unpeer"])
        if kind in ("cut", "flap"):
            if node.connections:
                network.cut(chance.choice(list(node.connections.values())))
        elif kind == "unpeer" and node.alive and node.stopped_until <= network.now:
            peers = list(node.peerings.peers)
            if peers:
                network.unpeer(node, chance.choice(peers))
        elif kind in ("sever", "mend") and network.wanted:
            link = chance.choice(list(network.wanted))
            (network.sever if kind == "sever" else network.mend)(*link)
            if link[::-1] in network.wanted:
                (network.sever if kind == "sever" else network.mend)(*link[::-1])
        elif kind == "kill":
            network.kill(node)
        elif kind == "start" and not node.alive:
            prefixes = node.prefixes if node.keeps_prefixes else _prefixes(network)
            network.start(node, prefixes, keeps_id=chance.random() < 0.5)
        elif kind == "stop":
            network.stop(node, chance.choice([0.2, 3.0, 20.0]))

    def _publish(self, is_checked: bool) -> None:
        network = self.network
        node = network.random.choice(network.nodes)
        if not node.alive or node.stopped_until > network.now:
            return
        is_checked = is_checked and not node.is_libbroker
        topic = network.random.choice(TOPICS)
        stands = [other for other in network.nodes if other.alive and other.stopped_until <= network.now]
        by_id = {other.id: other for other in stands}
        promises = []
        payload = self._send(node, topic)
        if is_checked:
            for hops in _ways(node, topic):
                if not set(hops) <= set(by_id):
                    continue
                way = [node, *[by_id[hop] for hop in hops]]
                if topic.startswith(way[-1].prefixes) and self._is_up(way):
                    promises.append(Promise(network, way[-1], payload, way))
        for promise in promises:
            network.later(1.0 + network.faults.delay * promise.hops, promise.check)

    def _is_up(self, way: list[Node]) -> bool:
        links = true_links(self.network)
        return all(there in links[here] for here, there in pairwise(way))

    def _send(self, node: Node, topic: bytes) -> bytes:
        self._published += 1
        value = f"{self._published} of {node.number}" if self._published % 5 else Count(self._published)
        payload = encode(value)
        self.network.publishers[payload] = node
        publisher = node.endpoint if node.is_libbroker else node.core
        self.network.carry(node, publisher.publish(topic, payload))
        return payload


def _ways(node: Node, topic: bytes) -> Iterator[tuple[bytes, ...]]:
    """How a message goes to each of its receivers, by what its publisher knows."""
    peers = node.core.peer.flooding.table.peers.values()
    paths = [known.best() for known in peers if topic.startswith(known.filter)]
    trees = multipath.join([path.hops for path in paths if path is not None])
    left = [((), tree) for tree in trees]
    while left:
        way, tree = left.pop()
        if tree.deliver:
            yield way
        left += [((*way, hop), branch) for hop, branch in tree.branches.items()]
