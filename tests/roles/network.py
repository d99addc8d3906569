"""A mesh in memory: real roles on a network that loses, doubles and delays, under a virtual clock.

One seed decides everything, so a failing one replays exactly. Records of a run are lost one by one; messages
between two nodes keep their order, as on ZeroMQ's connections, unless ``reorders`` is set. Subscriptions and
connections are ZeroMQ's own business and are not lost. What a consumer is given and what a producer
counts as acknowledged is checked at once, whenever it happens.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from dafka.protocol.framing import zmq_topic
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.limits import Limits
from dafka.roles.outputs import Append, Begin, Deliver, Gap, Serve, Subscribe, Unsubscribe
from dafka.roles.producer import ProducerRole
from dafka.roles.store import StoreRole

TICK = 0.1


def content_of(address: bytes, sequence: int) -> bytes:
    return b"%s/%d" % (address, sequence)


class Node:
    """A role with its subscriptions; sub-classes carry out what is not for the network."""

    role: Any

    def __init__(self, network: Network) -> None:
        self.network = network
        self.subscriptions: list[bytes] = []
        self.alive = True

    def carry(self, outputs: Iterable[Any]) -> None:
        for output in outputs:
            if isinstance(output, Subscribe):
                self.subscriptions.append(output.prefix)
                self.network.subscribed(self, output.prefix)
            elif isinstance(output, Unsubscribe):
                self.subscriptions.remove(output.prefix)
            elif not self.carry_out(output):
                self.network.publish(self, output)

    def carry_out(self, output: Any) -> bool:
        return False

    def hear(self, now: float, item: Any) -> None:
        if isinstance(item, Run):
            if hasattr(self.role, "receive_run"):
                self.carry(self.role.receive_run(now, item))
        else:
            self.carry(self.role.receive(now, item))

    def hear_subscription(self, now: float, prefix: bytes) -> None:
        if hasattr(self.role, "peer_subscribed"):
            self.carry(self.role.peer_subscribed(now, prefix))

    def tick(self, now: float) -> None:
        self.carry(self.role.tick(now))


class ProducerNode(Node):
    def __init__(self, network: Network, topic: bytes, address: bytes, min_stores: int) -> None:
        super().__init__(network)
        self.role = ProducerRole(topic, address, min_stores=min_stores, head_interval=1.0)

    def send(self, records: int) -> None:
        if not self.alive:
            return
        first = self.role.next_sequence
        contents = [content_of(self.role.address, first + index) for index in range(records)]
        self.carry([self.role.publish(self.network.now, contents)])

    def hear(self, now: float, item: Any) -> None:
        super().hear(now, item)
        role = self.role
        if role.min_stores and role.first_unacknowledged:
            key = (role.topic, role.address)
            committed = sorted(len(store.log.get(key, ())) for store in self.network.stores)
            assert committed[-role.min_stores] >= role.first_unacknowledged, "acknowledged but not committed"


class StoreNode(Node):
    """A store whose log is a dict that outlives it; commits take a while."""

    def __init__(self, network: Network, address: bytes, limits: Limits) -> None:
        super().__init__(network)
        self.address, self.limits = address, limits
        self.log: dict[tuple[bytes, bytes], list[bytes]] = {}
        self.role = StoreRole(address, limits=limits)
        self.committing = 0.0  # when the last commit under way will be done

    def restart(self) -> None:
        """Come back with nothing but the log."""
        self.subscriptions.clear()
        known = {key: (0, len(contents)) for key, contents in self.log.items()}
        self.role = StoreRole(self.address, known, limits=self.limits)
        self.network.join(self)

    def carry_out(self, output: Any) -> bool:
        network = self.network
        if isinstance(output, Append):
            self.committing = max(self.committing, network.now + network.random.uniform(0.0, 0.05))
            network.later(self.committing - network.now, self._commit, self.role, output)
        elif isinstance(output, Serve):
            contents = self.log[output.topic, output.address][output.first : output.first + output.count]
            assert len(contents) == output.count, "served before it was committed"
            network.publish(self, Run(output.recipient, output.address, output.topic, output.first, contents))
        else:
            assert not isinstance(output, Begin)
            return False
        return True

    def _commit(self, role: StoreRole, append: Append) -> None:
        if role is not self.role or not self.alive:
            return  # it died before the commit
        contents = self.log.setdefault((append.topic, append.address), [])
        now = self.network.now
        if append.first != len(contents) or self.network.random.random() < self.network.failing_writes:
            self.carry(role.not_stored(now, append.topic, append.address))
            return
        contents += append.contents
        self.carry(role.stored(now, append.topic, append.address, append.first + len(append.contents)))


class ConsumerNode(Node):
    """A consumer and its user, who takes records a few at a time."""

    def __init__(
        self, network: Network, address: bytes, offset_reset: str, room: int, limits: Limits
    ) -> None:
        super().__init__(network)
        self.role = ConsumerRole(address, offset_reset=offset_reset, limits=limits)
        self.room = room
        self.held = 0
        self.earliest = offset_reset == "earliest"
        self.positions: dict[tuple[bytes, bytes], int] = {}

    def carry_out(self, output: Any) -> bool:
        assert not isinstance(output, Gap), "nothing was trimmed"
        if not isinstance(output, Deliver):
            return False
        key = (output.topic, output.address)
        expected = self.positions.get(key, 0 if self.earliest else output.first)
        assert output.first == expected, "a record was skipped or came twice"
        for sequence, content in enumerate(output.contents, output.first):
            assert content == content_of(output.address, sequence)
        self.positions[key] = output.first + len(output.contents)
        self.held += len(output.contents)
        assert self.held <= self.room, "more than there was room for"
        return True

    def take(self) -> None:
        self.held -= self.network.random.randint(0, self.held)
        self.carry(self.role.set_room(self.network.now, self.room - self.held, 10**9))


class Network:
    """Messages under way and everything else that will happen, by time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.nodes: list[Node] = []
        self.loss = 0.0
        self.doubling = 0.0
        self.delay = 0.01
        self.reorders = False
        self.failing_writes = 0.0
        self.messages = 0
        self._events: list[tuple[float, int, Any, tuple[Any, ...]]] = []
        self._serial = count()
        self._last_arrival: dict[tuple[Node, Node], float] = {}

    @property
    def stores(self) -> list[StoreNode]:
        return [node for node in self.nodes if isinstance(node, StoreNode)]

    @property
    def producers(self) -> list[ProducerNode]:
        return [node for node in self.nodes if isinstance(node, ProducerNode)]

    @property
    def consumers(self) -> list[ConsumerNode]:
        return [node for node in self.nodes if isinstance(node, ConsumerNode)]

    def later(self, seconds: float, call: Any, *arguments: Any) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._serial), call, arguments))

    def join(self, node: Node) -> None:
        """Connect a node with everybody."""
        if node not in self.nodes:
            self.nodes.append(node)
            self.later(self.random.uniform(0, TICK), self._tick, node)
        node.carry(node.role.start())
        for other in self.nodes:
            for prefix in other.subscriptions if other is not node else ():
                self.later(self.delay, node.hear_subscription, self.now + self.delay, prefix)

    def subscribed(self, node: Node, prefix: bytes) -> None:
        for other in self.nodes:
            if other is not node:
                self.later(self.delay, other.hear_subscription, self.now + self.delay, prefix)

    def publish(self, sender: Node, item: Any) -> None:
        topic = _topic(item)
        for node in self.nodes:
            if node is not sender and any(topic.startswith(prefix) for prefix in node.subscriptions):
                for message in self._survivors(item):
                    self.messages += 1
                    self.later(self._delay(sender, node), self._arrive, node, message)

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(self._events)
            call(*arguments)
        self.now = until

    def _delay(self, sender: Node, receiver: Node) -> float:
        arrival = self.now + self.random.uniform(0.0005, self.delay)
        if not self.reorders:
            arrival = max(arrival, self._last_arrival.get((sender, receiver), 0.0))
            self._last_arrival[sender, receiver] = arrival
        return arrival - self.now

    def _arrive(self, node: Node, item: Any) -> None:
        if node.alive:
            node.hear(self.now, item)

    def _tick(self, node: Node) -> None:
        if node.alive:
            node.tick(self.now)
        self.later(TICK, self._tick, node)

    def _survivors(self, item: Any) -> Iterator[Any]:
        """What arrives of a message: nothing, or it once or twice; of a run any pieces."""
        pieces = [item]
        if isinstance(item, Run) and self.loss:
            pieces = []
            start = 0
            for position in range(len(item.contents) + 1):
                if position == len(item.contents) or self.random.random() < self.loss:
                    if position > start:
                        pieces.append(
                            item._replace(first=item.first + start, contents=item.contents[start:position])
                        )
                    start = position + 1
        elif self.random.random() < self.loss:
            return
        for piece in pieces:
            yield piece
            if self.random.random() < self.doubling:
                yield piece


def _topic(item: Any) -> bytes:
    if isinstance(item, Run):
        return b"M" + item.topic if item.recipient is None else b"D" + item.recipient
    return zmq_topic(item)
