"""A master and its clones over a transport that loses, doubles and reorders, and is cut; all of them restart.

One seed decides everything. Commands pass through their octets.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from itertools import count

from dafka.overlay.limits import SILENT_TICKS, TICK_SECONDS
from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Master
from dafka.overlay.stores.outputs import Answered, Changed, Output, Publish, clone_topic, master_topic
from dafka.overlay.values import Count, Timespan, Value, encode, types
from dafka.overlay.wire.commands import (
    Add,
    Command,
    Erase,
    Put,
    PutUnique,
    Subtract,
    decode_command,
    encode_command,
)
from dafka.overlay.wire.primitives import EntityId

NAME = "st"
FAULTS_END = 40.0
END = FAULTS_END + SILENT_TICKS * TICK_SECONDS + 15.0  # those that are gone are given up
MOST_MESSAGES = 200_000


class Node:
    """A process with a store. ``shadow`` is what somebody knows who only listens to the events."""

    def __init__(self, number: int, network: Network) -> None:
        self.number = number
        self.endpoint = bytes([number]) * 16
        self.network = network
        self.incarnation = 0
        self.alive = False
        self.store: Master | Clone
        self.shadow: dict[bytes, Value] = {}
        self.written = 0

    def new_entity(self) -> EntityId:
        return EntityId(self.endpoint, next(self.network.numbers))

    def start(self) -> None:
        raise NotImplementedError

    def write(self, action) -> None:
        raise NotImplementedError

    def receive(self, command: Command) -> None:
        raise NotImplementedError

    def check_shadow(self) -> None:
        content = {encode(key): value for key, value in self.store.content}
        assert self.shadow.keys() == content.keys(), f"{self}: events tell of other keys"
        assert all(encode(self.shadow[key]) == encode(value) for key, value in content.items()), self

    def __repr__(self) -> str:
        return f"node {self.number}"


class MasterNode(Node):
    topic = master_topic(NAME)

    def start(self) -> None:
        content = self.store.content if self.incarnation else Content(NAME)  # it is on a disk
        self.store = Master(self.new_entity(), content)
        self.incarnation += 1
        self.alive = True

    def write(self, action) -> None:
        self.network.carry(self, self.store.write(self.network.now, action))

    def receive(self, command: Command) -> None:
        self.network.carry(self, self.store.receive(self.network.now, command))

    def tick(self) -> None:
        self.network.carry(self, self.store.tick(self.network.now))


class CloneNode(Node):
    topic = clone_topic(NAME)

    def start(self) -> None:
        self.store = Clone(self.new_entity(), Content(NAME), self.new_entity)
        self.shadow = {}
        self.incarnation += 1
        self.alive = True
        self.written = 0

    def write(self, action) -> None:
        self.network.carry(self, self.store.write(action))

    def receive(self, command: Command) -> None:
        self.network.carry(self, self.store.receive(command))

    def tick(self) -> None:
        self.network.carry(self, self.store.tick())


class Network:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.numbers = count(1)
        self.loss = self.random.choice([0.0, 0.1, 0.3])
        self.delay = self.random.choice([0.005, 0.2, 1.0])
        self.doubling = self.random.choice([0.0, 0.1])
        self.cut_until: Counter[int] = Counter()
        self.master = MasterNode(0, self)
        self.clones = [CloneNode(number + 1, self) for number in range(self.random.randrange(1, 5))]
        self.nodes: list[MasterNode | CloneNode] = [self.master, *self.clones]
        self.winners: Counter[int] = Counter()
        self.answered: set[tuple[int, int]] = set()
        self.attempted = 0  # increments that were written
        self.master_restarts = 0
        self.messages = 0
        self._requests = count(1)
        self._events: list = []
        self._serial = count()
        self._keys: dict[int, int] = {}
        for node in self.nodes:
            self.later(self.random.uniform(0.0, 2.0), node.start)
        self.later(0.0, self.tick)

    def later(self, seconds, call, *arguments) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._serial), call, arguments))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(self._events)
            call(*arguments)
        self.now = until

    def tick(self) -> None:
        for node in self.nodes:
            if node.alive:
                node.tick()
        self.later(TICK_SECONDS, self.tick)

    def carry(self, node: Node, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case Publish(topic, command, receiver):
                    self._publish(node, topic, encode_command(command), receiver)
                case Changed(event):
                    self._apply(node.shadow, event)
                case Answered(request, inserted):
                    assert (node.number, request) not in self.answered, "answered twice"
                    self.answered.add((node.number, request))
                    self.winners[self._keys[request]] += inserted

    def _publish(self, node: Node, topic: bytes, octets: bytes, receiver: bytes | None) -> None:
        self.messages += 1
        assert self.messages < MOST_MESSAGES, "messages without end"
        for other in self.nodes:
            if other is node or other.topic != topic or receiver not in (None, other.endpoint):
                continue
            for _ in range(2 if self.random.random() < self.doubling else 1):
                if self.random.random() >= self.loss:
                    seconds = self.random.uniform(0.001, self.delay)
                    self.later(seconds, self._arrive, node, other, other.incarnation, octets)

    def _arrive(self, sender: Node, node: Node, incarnation: int, octets: bytes) -> None:
        is_cut = max(self.cut_until[sender.number], self.cut_until[node.number]) > self.now
        if node.alive and node.incarnation == incarnation and not is_cut:
            node.receive(decode_command(octets))

    def _apply(self, shadow: dict[bytes, Value], event) -> None:
        word, _, key = event[:3]
        if word == "insert":
            assert encode(key) not in shadow, f"{key} is inserted twice"
            shadow[encode(key)] = event[3]
        elif word == "update":
            assert encode(shadow[encode(key)]) == encode(event[3]), f"{key} had another value before"
            shadow[encode(key)] = event[4]
        else:
            del shadow[encode(key)]

    # -- what happens -------------------------------------------------------------------------------

    def restart(self, node: MasterNode | CloneNode) -> None:
        if node.alive:
            node.alive = False
            self.master_restarts += node is self.master
            self.later(self.random.choice([0.1, 3.0, 8.0]), node.start)

    def cut(self, node: Node, seconds: float) -> None:
        self.cut_until[node.number] = self.now + seconds

    def write(self) -> None:
        chance = self.random
        node = chance.choice(self.nodes)
        if not node.alive:
            return
        by = node.store.entity
        key: Value = chance.choice(["a", "b", Count(1), 1, True])
        expiry = chance.choice([None, None, Timespan(2 * 10**9)])
        operation = chance.randrange(9)
        if operation == 0:
            node.write(Put(key, chance.choice([None, "text", 1.5, (1, 2)]), expiry, by))
        elif operation == 1:
            node.write(Erase(key, by))
        elif operation == 2:
            node.write(Add(("vector",), chance.randrange(9), types.VECTOR, expiry, by))
        elif operation == 3:
            node.write(Add("set", chance.randrange(5), types.SET, None, by))
        elif operation == 4:
            node.write(Add("table", (chance.randrange(5), "x"), types.TABLE, None, by))
        elif operation == 5:
            node.write(Subtract(chance.choice(["set", "table", ("vector",)]), chance.randrange(5), None, by))
        elif operation == 6 and chance.random() < 0.1:
            # The counter and the unique keys are there to be counted: each other key is erased instead.
            for one in ["a", "b", "set", "table"]:
                node.write(Erase(one, by))
        elif operation == 7:
            request, unique = next(self._requests), chance.randrange(8)
            self._keys[request] = unique
            node.write(PutUnique(f"unique {unique}", node.number, None, by, request, by))
            if chance.random() < 0.3:  # the answer does not arrive
                self.later(chance.uniform(0.0, 2 * self.delay), self.cut, node, 12.0)
        else:
            self.attempted += 1
            node.written += 1
            node.write(Add("counter", Count(1), types.COUNT, None, by))


def simulate(seed: int) -> Network:
    network = Network(seed)
    chance = network.random
    for _ in range(chance.choice([10, 60, 200])):
        network.later(chance.uniform(1.0, FAULTS_END), network.write)
    for _ in range(chance.choice([0, 0, 1, 4])):
        network.later(chance.uniform(3.0, FAULTS_END - 10.0), network.restart, chance.choice(network.nodes))
    for _ in range(chance.choice([0, 1, 4])):
        seconds = chance.choice([0.5, 3.0, 12.0])
        network.later(
            chance.uniform(3.0, FAULTS_END - 12.0), network.cut, chance.choice(network.nodes), seconds
        )
    network.run(FAULTS_END)
    network.loss = network.doubling = 0.0
    network.delay = 0.02
    network.run(END)
    check(network)
    return network


def check(network: Network) -> None:
    master = network.master.store
    assert isinstance(master, Master)
    expected = {encode(key): value for key, value in master.content}
    for node in network.nodes:
        assert node.store.is_idle, f"{node} is not idle"
        node.check_shadow()
        content = {encode(key): value for key, value in node.store.content}
        assert content.keys() == expected.keys(), f"{node} has other keys than the master"
        assert all(encode(content[key]) == encode(value) for key, value in expected.items()), node
    counted = master.content.get("counter") if master.content.exists("counter") else 0
    survived = sum(node.written for node in network.nodes)
    assert counted >= survived, f"{survived} increments, {counted} are counted"
    if not network.master_restarts:
        assert counted <= network.attempted, f"{network.attempted} increments, {counted} are counted"
    for unique, winners in network.winners.items():
        assert winners <= 1, f"unique {unique} has {winners} winners"
        if not network.master_restarts and all(node.incarnation == 1 for node in network.nodes):
            assert winners == 1, f"unique {unique} has no winner"
