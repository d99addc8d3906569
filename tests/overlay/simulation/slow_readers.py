"""Slow readers in simulated overlays: publishers wait, what waits is bounded, everything arrives in order.

Links and nodes stay up here, credit is scarce, and there are no nodes of libbroker. In a third of the
overlays one node drops what its peers have no room for, instead of waiting: then messages may be missing that
took a way through it, and no others.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from unittest.mock import patch

from dafka.overlay import flow
from dafka.overlay.values import encode

from .network import Network, Node, require
from .scenario import BEGIN, TOPICS, build

WINDOW = 2000  # octets, some ten messages
CAPACITY = 5
SECONDS = 4.0
BURST = 3


class SlowReaders:
    """``queues``: messages waiting at the subscribers of each node."""

    def __init__(self, seed: int, network: Network) -> None:
        self.network = network
        self.chance = random.Random(seed)
        self.queues: dict[Node, list[tuple[bytes, bytes, bytes]]] = defaultdict(list)
        self.read: dict[Node, list[tuple[bytes, bytes, bytes]]] = defaultdict(list)
        self.stopped: set[Node] = set()
        self.published: list[tuple[Node, bytes, bytes]] = []
        self.waited = 0
        self.numbers: Counter[Node] = Counter()
        self.dropping: Node | None = None
        if self.chance.random() < 1 / 3:
            self.dropping = self.chance.choice(network.nodes)
            self.dropping.core.flow.overflow = self.chance.choice(["drop_newest", "drop_oldest"])
        self.messages = 0  # that were read
        deliver = network.delivered

        def delivered(node: Node, publisher: bytes, topic: bytes, payload: bytes) -> None:
            deliver(node, publisher, topic, payload)
            if topic.startswith(node.prefixes):
                self.queues[node].append((publisher, topic, payload))

        network.delivered = delivered  # type: ignore[method-assign]
        for node in network.nodes:
            node.core.full = lambda topic, node=node: ["reader"] if len(self.queues[node]) >= CAPACITY else []
            self._step(node)

    def _step(self, node: Node) -> None:
        if node not in self.stopped and self.queues[node]:
            is_over = self.network.now >= BEGIN + SECONDS
            count = len(self.queues[node]) if is_over else self.chance.randrange(1, 4)
            self.read[node] += self.queues[node][:count]
            del self.queues[node][:count]
            if 2 * len(self.queues[node]) <= CAPACITY:
                self.network.carry(node, node.core.room("reader"))
        if self.network.now < BEGIN + SECONDS:
            if self.chance.random() < 0.02:
                self.stopped.symmetric_difference_update({node})
            for _ in range(self.chance.choice([0, 0, 0, 1, BURST])):
                self._publish(node)
        else:
            self.stopped.clear()
        self._bounded(node)
        self.network.later(0.05, self._step, node)

    def _publish(self, node: Node) -> None:
        topic = self.chance.choice(TOPICS)
        if node.core.is_blocked(topic):
            self.waited += 1
            return
        self.numbers[node] += 1
        payload = encode(f"{self.numbers[node]} of {node.number}")
        self.network.publishers[payload] = node
        self.published.append((node, topic, payload))
        self.network.carry(node, node.core.publish(topic, payload))

    def _bounded(self, node: Node) -> None:
        heights = len(self.network.nodes)
        links = len(node.connections)
        waiting = node.core.flow.waiting
        # A message arrives whole: each neighbour's last one may overfill a queue with what credit lets come.
        require(waiting <= links * heights * 3 * WINDOW * (1 + links), f"{waiting} octets wait at {node}")
        require(len(self.queues[node]) <= CAPACITY + links * heights * 2 * WINDOW // 128, "a reader's queue")

    def check(self) -> None:
        for node in self.network.nodes:
            require(not self.queues[node], f"{node} does not read")
            require(node.core.flow.waiting == node.core.flow.held == 0, f"something waits at {node} for ever")
            for publisher in self.network.nodes:
                if publisher.id in node.core.peer.peers:
                    for topic in TOPICS:
                        self._check_stream(publisher, topic, node)
            self.messages += len(self.read[node])

    def _check_stream(self, publisher: Node, topic: bytes, node: Node) -> None:
        """Everything on a topic, or what was not dropped, in the order in which it was published."""
        got = [payload for *whose, payload in self.read[node] if whose == [publisher.id, topic]]
        sent = [payload for one, on, payload in self.published if (one, on) == (publisher, topic)]
        wanted = sent if topic.startswith(node.prefixes) else []
        if self._may_drop(publisher, node):
            left = iter(wanted)
            require(all(one in left for one in got), f"{node} gets what {publisher} sent twice or too late")
        else:
            require(got == wanted, f"{node} misses something of {publisher}, or gets it in another order")

    def _may_drop(self, publisher: Node, node: Node) -> bool:
        if self.dropping is None:
            return False
        best = publisher.core.peer.flooding.table.peers[node.id].best()
        assert best is not None
        return self.dropping is publisher or self.dropping.id in best.hops[:-1]


def simulate(seed: int) -> SlowReaders:
    """Run a seed to its end. Raises :class:`~.network.Violation` when a promise does not hold."""
    with patch.object(flow, "WINDOW_OCTETS", WINDOW), patch.object(flow, "QUEUE_OCTETS", WINDOW):
        network = build(seed, with_libbroker=False)
        network.faults = network.faults._replace(loss=0.0, unnoticed=0.0)
        network.run(BEGIN)
        readers = SlowReaders(seed, network)
        network.run(BEGIN + SECONDS + 30.0)
        readers.check()
    return readers
