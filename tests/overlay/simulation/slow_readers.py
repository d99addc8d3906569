"""Slow readers in simulated overlays: publishers wait, what waits is bounded, everything arrives in order.

Credit is scarce here. In a third of the overlays one node drops what its peers have no room for, or leaves
them, instead of waiting: then messages may be missing that took a way through it, and no others. In some are
nodes of libbroker, which know no credit: their connections are full at times. In some links fail.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from unittest.mock import patch

from dafka.overlay import flow
from dafka.overlay.values import decode, encode
from dafka.overlay.wire.credit import CREDIT
from dafka.overlay.wire.routed import DATA, ROUTED, Routed, decode_routed

from .network import Connection, Network, Node, require
from .scenario import BEGIN, TOPICS, build

WINDOW = 2000  # octets, some ten messages
CAPACITY = 5
SECONDS = 4.0
BURST = 3
CALM = BEGIN + SECONDS + 30.0
QUIET = 2.0  # nothing is longer under way, nor does a process stand still for longer
LONGEST = 120.0  # until all have what was published at once: a few messages each way over each slow link

Message = tuple[bytes, bytes, bytes]
"""Its publisher, topic and payload."""


class SlowReaders:
    """``queues``: what waits at the subscribers of each node."""

    def __init__(self, seed: int, network: Network) -> None:
        self.network = network
        self.chance = random.Random(seed)
        self.queues: dict[Node, list[Message]] = defaultdict(list)
        self.read: dict[Node, list[Message]] = defaultdict(list)
        self.stopped: set[Node] = set()
        self.published: list[tuple[Node, bytes, bytes]] = []
        self.waited = 0
        self.paused = 0
        self.congested = 0
        self.left = 0  # peers that were too slow
        self.numbers: Counter[Node] = Counter()
        self.ours = [node for node in network.nodes if not node.is_libbroker]
        self.dropping: Node | None = None
        if self.chance.random() < 1 / 3:
            self.dropping = self.chance.choice(self.ours)
            overflow = self.chance.choice(["drop_newest", "drop_oldest", "disconnect"])
            self.dropping.core.flow.overflow = overflow
        self.cuts = 5 if seed % 4 == 1 else 0
        self.messages = 0  # that were read
        self.moved = 0  # messages and credit that came one hop further
        self._under_way: Counter[Connection] = Counter()  # octets for nodes of libbroker
        self._is_held_back: set[Connection] = set()
        self._wrap()
        for node in network.nodes:
            if not node.is_libbroker:
                node.core.full = lambda topic, node=node: (
                    ["reader"] if len(self.queues[node]) >= CAPACITY else []
                )
            self._step(node)
        for _ in range(self.cuts):
            network.later(self.chance.uniform(0.5, SECONDS), self._cut)

    @property
    def is_disturbed(self) -> bool:
        """Whether links come and go, so that anything may be lost that is under way."""
        leaves = self.dropping is not None and self.dropping.core.flow.overflow == "disconnect"
        return leaves or self.cuts > 0

    def _wrap(self) -> None:
        network = self.network
        deliver, send, hear = network.delivered, network._send, network._hear

        def delivered(node: Node, publisher: bytes, topic: bytes, payload: bytes) -> None:
            deliver(node, publisher, topic, payload)
            self.moved += 1
            payload = encode(decode(payload))  # without a mark
            if topic.startswith(node.prefixes):
                message = network.publishers[payload].id, topic, payload
                (self.read if node.is_libbroker else self.queues)[node].append(message)

        def sent(node: Node, number: int, octets: bytes) -> None:
            send(node, number, octets)
            connection = node.connections.get(number)
            if connection is None or not connection.is_plain:
                return
            peer = connection.other(node)
            if peer.is_libbroker:
                self._under_way[connection] += len(octets)
                self.congested += self._under_way[connection] > WINDOW
                require(
                    self._under_way[connection] <= 4 * WINDOW,
                    f"{self._under_way[connection]} octets for {peer}",
                )
                if self._under_way[connection] > WINDOW and peer.id in node.core.peerings.peers:
                    self._is_held_back.add(connection)
                    node.core.congested(peer.id)

        def heard(node: Node, connection: Connection, message: bytes) -> None:
            self.paused += connection.number in node.unread
            self.moved += not connection.is_plain and _is_data_or_credit(message)
            hear(node, connection, message)
            if node.is_libbroker and connection.number in node.connections:
                self._under_way[connection] -= 4 + len(message)
                self._drain(connection.other(node), node, connection)

        network.delivered = delivered  # type: ignore[method-assign]
        for node in self.ours:
            self._count_left(node)
        network._send = sent  # type: ignore[method-assign]
        network._hear = heard  # type: ignore[method-assign]

    def _count_left(self, node: Node) -> None:
        drop = node.core.peerings.drop

        def dropped(peer: bytes, error: Exception) -> list:
            self.left += 1
            return drop(peer, error)  # type: ignore[arg-type]

        node.core.peerings.drop = dropped  # type: ignore[method-assign, assignment]

    def _drain(self, node: Node, peer: Node, connection: Connection) -> None:
        """Like a connection whose queue has room again."""
        if connection not in self._is_held_back or 2 * self._under_way[connection] > WINDOW:
            return
        self._is_held_back.discard(connection)
        self.network.carry(node, node.core.drained(peer.id))
        while connection not in self._is_held_back and node.core.has_more(peer.id):
            self.network.carry(node, node.core.drained(peer.id))

    def _cut(self) -> None:
        node = self.chance.choice(self.ours)
        ours = [one for one in node.connections.values() if not one.is_plain]
        if ours:
            self.network.cut(self.chance.choice(ours))

    def _step(self, node: Node) -> None:
        is_over = self.network.now >= BEGIN + SECONDS
        if node.is_libbroker:
            if not is_over and self.chance.random() < 0.05:
                self.network.stop(node, self.chance.choice([0.2, 1.0]))
        elif node not in self.stopped and self.queues[node]:
            count = len(self.queues[node]) if is_over else self.chance.randrange(1, 4)
            self.read[node] += self.queues[node][:count]
            del self.queues[node][:count]
            if 2 * len(self.queues[node]) <= CAPACITY:
                self.network.carry(node, node.core.room("reader"))
        if not is_over:
            if self.chance.random() < 0.02:
                self.stopped.symmetric_difference_update({node})
            for _ in range(self.chance.choice([0, 0, 0, 1, BURST])):
                self._publish(node, self.chance.choice(TOPICS))
        else:
            self.stopped.clear()
        if not node.is_libbroker:
            self._bounded(node)
        self.network.later(0.05, self._step, node)

    def _is_blocked(self, node: Node, topic: bytes) -> bool:
        if not node.is_libbroker:
            return node.core.is_blocked(topic)
        # TCP holds it up while it is not read.
        unread = [one.other(node).unread.get(one.number, []) for one in node.connections.values()]
        return node.stopped_until > self.network.now or any(map(len, unread))

    def _publish(self, node: Node, topic: bytes) -> None:
        if self._is_blocked(node, topic):
            self.waited += 1
            return
        self.numbers[node] += 1
        payload = encode(f"{self.numbers[node]} of {node.number}")
        self.network.publishers[payload] = node
        self.published.append((node, topic, payload))
        self.network.carry(node, (node.endpoint if node.is_libbroker else node.core).publish(topic, payload))

    def _bounded(self, node: Node) -> None:
        heights = len(self.network.nodes)
        links = len(node.connections)
        waiting = node.core.flow.waiting
        # A message arrives whole: each neighbour's last one may overfill a queue with what credit lets come.
        require(waiting <= links * heights * 3 * WINDOW * (1 + links), f"{waiting} octets wait at {node}")
        if not self.is_disturbed:  # each new link has credit anew
            room = CAPACITY + links * heights * 2 * WINDOW // 128
            require(len(self.queues[node]) <= room, "a reader's queue")

    def run_until_quiet(self) -> None:
        """Until everything has arrived that will: no message or credit is under way for long on one link."""
        latest, moved = self.network.now + LONGEST, -1
        while self.moved != moved:
            require(self.network.now < latest, "messages or credit without end")
            moved = self.moved
            self.network.run(self.network.now + QUIET)

    def check(self) -> None:
        """What was published while readers were slow has arrived, as far as it must."""
        for node in self.network.nodes:
            require(not self.queues[node], f"{node} does not read")
            if not node.is_libbroker:
                require(
                    node.core.flow.waiting == node.core.flow.held == 0, f"something waits at {node} for ever"
                )
                require(
                    not any(node.core.is_blocked(topic) for topic in TOPICS), f"{node} is blocked for ever"
                )
                require(not node.unread, f"{node} never reads a connection again")
                self._check_credit(node)
            for publisher in self.network.nodes:
                if self._reaches(publisher, node):
                    for topic in TOPICS:
                        self._check_stream(publisher, topic, node)
            self.messages += len(self.read[node])

    def _check_credit(self, node: Node) -> None:
        """No credit is lost: a neighbour has given it all back, or will, when it is worth a message."""
        nodes = {one.id: one for one in self.ours}
        for (neighbour, height), outlet in node.core.flow._outlets.items():
            if neighbour not in nodes:
                continue
            inlet = nodes[neighbour].core.flow._inlets.get((node.id, height))
            left, owed = (WINDOW, 0) if inlet is None else (inlet.left, inlet.owed)
            words = f"{node} has credit for {outlet.balance} octets, {nodes[neighbour]} gave it {left}"
            require(outlet.balance == left == WINDOW - owed and 4 * owed < WINDOW, f"{words} and owes {owed}")

    def again(self) -> None:
        """Everybody publishes on every topic, now that nothing is disturbed or dropped any more."""
        if self.dropping is not None:
            self.dropping.core.flow.overflow = "wait"
        self.read.clear()
        self.published.clear()
        self.cuts, self.dropping = 0, None
        for node in self.network.nodes:
            for topic in TOPICS:
                self._publish(node, topic)

    def _reaches(self, publisher: Node, node: Node) -> bool:
        if publisher is node:
            return False
        if publisher.is_libbroker and node.is_libbroker:
            gateways = [one for one in self.ours if publisher.id in one.peerings.peers]
            return any(node.id in one.core.peer.peers for one in gateways)
        if node.is_libbroker:
            return node.id in publisher.core.peer.peers
        return publisher.id in node.core.peer.peers

    def _check_stream(self, publisher: Node, topic: bytes, node: Node) -> None:
        """Everything on a topic, or what was not dropped, in the order in which it was published."""
        got = [payload for *whose, payload in self.read[node] if whose == [publisher.id, topic]]
        sent = [payload for one, on, payload in self.published if (one, on) == (publisher, topic)]
        wanted = sent if topic.startswith(node.prefixes) else []
        if self.is_disturbed:  # on a new way a message may overtake another
            require(set(got) <= set(wanted), f"{node} gets what it does not want of {publisher}")
            require(len(set(got)) == len(got), f"{node} gets something of {publisher} twice")
        elif self._may_drop(publisher, node):
            left = iter(wanted)
            require(all(one in left for one in got), f"{node} gets what {publisher} sent twice or too late")
        else:
            require(got == wanted, f"{node} misses something of {publisher}, or gets it in another order")

    def _may_drop(self, publisher: Node, node: Node) -> bool:
        if self.dropping is None:
            return False
        if publisher.is_libbroker or node.is_libbroker:
            return True
        best = publisher.core.peer.flooding.table.peers[node.id].best()
        assert best is not None
        return self.dropping is publisher or self.dropping.id in best.hops[:-1]


def _is_data_or_credit(message: bytes) -> bool:
    if message[0] != ROUTED:
        return message[0] == CREDIT
    routed = decode_routed(message)
    return isinstance(routed, Routed) and routed.kind == DATA


def add_leaves(network: Network) -> None:
    """Nodes of libbroker, each connected with one node of ours."""
    chance = network.random
    ours = list(network.nodes)
    for _ in range(chance.choice([1, 2, 3])):
        leaf = Node(len(network.nodes), is_libbroker=True)
        network.nodes.append(leaf)
        network.start(leaf, tuple(chance.sample(TOPICS, chance.choice([1, 3]))))
        network.want(leaf.number, chance.choice(ours).number)


def simulate(seed: int) -> SlowReaders:
    """Run a seed to its end. Raises :class:`~.network.Violation` when a promise does not hold."""
    with patch.object(flow, "WINDOW_OCTETS", WINDOW), patch.object(flow, "QUEUE_OCTETS", WINDOW):
        network = build(seed, with_libbroker=False)
        if seed % 4 in (2, 3):
            add_leaves(network)
        network.faults = network.faults._replace(loss=0.0, unnoticed=0.0)
        network.run(BEGIN)
        readers = SlowReaders(seed, network)
        network.run(CALM)
        readers.run_until_quiet()
        readers.check()
        readers.again()
        readers.run_until_quiet()
        readers.check()
    return readers
