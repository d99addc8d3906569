"""A master, its clones and proxies over a transport that loses, doubles and reorders, and is cut.

All of them are killed and start again. The master has a backend that takes its time, fails now and then, and
has what was committed when it starts again. One seed decides everything. Commands pass through their octets.
"""

from __future__ import annotations

import contextlib
import heapq
import random
from abc import ABC, abstractmethod
from collections import Counter
from itertools import count
from unittest import mock

from dafka.overlay.limits import MOST_KEPT, SILENT_TICKS, TICK_SECONDS
from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content, Entry, Row
from dafka.overlay.stores.errors import BackendFailure
from dafka.overlay.stores.journal import Journal
from dafka.overlay.stores.master import Master
from dafka.overlay.stores.outputs import (
    Answered,
    Changed,
    Cleared,
    Commit,
    Output,
    Publish,
    clone_topic,
    master_topic,
    query_topic,
)
from dafka.overlay.stores.proxy import Proxy
from dafka.overlay.stores.queries import Operation
from dafka.overlay.values import Count, Timespan, Value, decode, encode, types
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import (
    Add,
    Clear,
    Command,
    Erase,
    Load,
    Put,
    Query,
    Subtract,
    decode_command,
    encode_command,
)
from dafka.overlay.wire.primitives import EntityId

from .convergence import check

NAME = "st"
FAULTS_END = 40.0
END = FAULTS_END + SILENT_TICKS * TICK_SECONDS + 15.0  # those that are gone are given up
MOST_MESSAGES = 200_000
LATE = 0.15
LATEST = 3.0
ANSWER_TICKS = 100


class Node(ABC):
    """A process with a store. ``shadow`` is what somebody knows who only listens to the events."""

    topics: tuple[bytes, ...]
    store: Master | Clone | Proxy

    def __init__(self, number: int, network: Network) -> None:
        self.number = number
        self.endpoint = bytes([number]) * 16
        self.network = network
        self.incarnation = 0
        self.alive = False
        self.shadow: dict[bytes, Value] = {}
        self.written = 0

    def new_entity(self) -> EntityId:
        return EntityId(self.endpoint, next(self.network.numbers))

    def start(self) -> None:
        self.store = self.attach()
        self.incarnation += 1
        self.alive = True
        self.written = 0

    @abstractmethod
    def attach(self) -> Master | Clone | Proxy:
        """The store of a new life."""

    @abstractmethod
    def write(self, action) -> None: ...

    @abstractmethod
    def ask(self, query: Query) -> None: ...

    @abstractmethod
    def receive(self, command: Command) -> None: ...

    @abstractmethod
    def tick(self) -> None: ...

    def check_shadow(self) -> None:
        content = {encode(key): value for key, value in self.store.content}
        assert self.shadow.keys() == content.keys(), f"{self}: events tell of other keys"
        assert all(encode(self.shadow[key]) == encode(value) for key, value in content.items()), self

    def __repr__(self) -> str:
        return f"node {self.number}"


class MasterNode(Node):
    topics = (master_topic(NAME), query_topic(NAME))

    def __init__(self, number: int, network: Network) -> None:
        super().__init__(number, network)
        self.disk: dict[bytes, Row] = {}
        self.writers: dict[EntityId, int] = {}
        for number in range(network.random.choice([0, 40])):
            self.disk[encode(("old", number))] = Row(encode(number), None, None)

    def attach(self) -> Master:
        content = Content(NAME)
        for key, row in self.disk.items():
            value = decode(row.value)
            content.restore(key, Entry(decode(key), value, len(key), row.deadline, row.origin))
        self.shadow = {key: decode(row.value) for key, row in self.disk.items()}
        return Master(self.new_entity(), content, Journal(self.writers))

    def write(self, action) -> None:
        try:
            self.network.carry(self, self.store.write(self.network.now, action))
            self.written += is_increment(action)
        except BackendFailure:
            self.network.attempted -= is_increment(action)

    def ask(self, query: Query) -> None:
        with contextlib.suppress(BackendFailure):
            self.network.carry(self, self.store.ask(self.network.now, query))

    def receive(self, command: Command) -> None:
        self.network.carry(self, self.store.receive(self.network.now, command))

    def tick(self) -> None:
        self.network.carry(self, self.store.tick(self.network.now))

    def commit(self, commit: Commit) -> None:
        """The backend takes its time, and is not done with what the process is killed in."""
        self.network.later(self.network.slowness(), self.write_to_disk, self.incarnation, commit)

    def write_to_disk(self, incarnation: int, commit: Commit) -> None:
        if not self.alive or incarnation != self.incarnation:
            return
        assert isinstance(self.store, Master)
        if self.network.disk_fails():
            self.store.commit_failed("the disk is full")
            self.network.later(0.5, self.retry, incarnation)
            return
        if commit.changes.cleared:
            self.disk.clear()
        for key, row in commit.changes.rows.items():
            if row is None:
                self.disk.pop(key, None)
            else:
                self.disk[key] = row
        for writer, sequence in commit.writers.items():
            if sequence is None:
                self.writers.pop(writer, None)
            else:
                self.writers[writer] = sequence
        if self.network.random.random() < self.network.dying:
            self.network.restart(self)  # it has what it will never say that it has
        else:
            self.network.carry(self, self.store.committed())

    def retry(self, incarnation: int) -> None:
        if self.alive and incarnation == self.incarnation:
            self.network.carry(self, self.store.retry_commit())


class FollowingNode(Node):
    """A clone or a proxy."""

    store: Clone | Proxy

    def write(self, action) -> None:
        self.written += is_increment(action)
        self.network.carry(self, self.store.write(action))

    def ask(self, query: Query) -> None:
        self.network.carry(self, self.store.ask(query, ANSWER_TICKS))

    def receive(self, command: Command) -> None:
        self.network.carry(self, self.store.receive(command))

    def tick(self) -> None:
        self.network.carry(self, self.store.tick())


class CloneNode(FollowingNode):
    topics = (clone_topic(NAME),)

    def attach(self) -> Clone:
        self.shadow = {}
        return Clone(self.new_entity(), Content(NAME), self.new_entity)


class ProxyNode(FollowingNode):
    """It subscribes to nothing: messages to it are for it alone."""

    topics = ()

    def attach(self) -> Proxy:
        return Proxy(self.new_entity(), NAME, self.new_entity)


def is_increment(action) -> bool:
    return isinstance(action, Add) and action.key == "counter"


class Network:
    only_grows = True
    """Whether what is counted is never erased."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.numbers = count(1)
        self.loss = self.random.choice([0.0, 0.1, 0.3])
        self.delay = self.random.choice([0.005, 0.2, 1.0])
        # Some messages are far later than others: they come when their sender and receiver are further.
        self.lateness = random.Random(-seed) if seed % 2 else None
        self.doubling = self.random.choice([0.0, 0.1])
        self.disk_delay = self.random.choice([0.0, 0.05, 2.0])
        self.disk_failure = self.random.choice([0.0, 0.0, 0.2])
        self.dying = self.random.choice([0.0, 0.0, 0.1])
        self.has_pieces = seed % 5 not in (1, 3)
        """Whether contents are given in pieces. libbroker's masters and clones know nothing of that."""
        self.cut_until: Counter[int] = Counter()
        self.master = MasterNode(0, self)
        self.clones = [CloneNode(number + 1, self) for number in range(self.random.randrange(1, 5))]
        self.proxies = [ProxyNode(number + 10, self) for number in range(self.random.randrange(3))]
        self.nodes: list[Node] = [self.master, *self.clones, *self.proxies]
        self.winners: Counter[int] = Counter()
        self.answered: set[tuple[int, int]] = set()
        self.attempted = 0  # increments that were written
        self.asked: Counter[int] = Counter()  # put_unique, by the key
        self.told: Counter[int] = Counter()
        self.messages = 0
        self._requests = count(1)
        self._events: list = []
        self._serial = count()
        self._unique: dict[int, int] = {}
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

    def slowness(self) -> float:
        return self.random.uniform(0.0, self.disk_delay)

    def disk_fails(self) -> bool:
        return self.random.random() < self.disk_failure

    def carry(self, node: Node, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case Publish(topic, command, receiver):
                    self._publish(node, topic, command, receiver)
                case Changed(event):
                    self._apply(node.shadow, event)
                case Cleared(events):
                    for event in events:
                        self._apply(node.shadow, event)
                case Commit():
                    assert isinstance(node, MasterNode)
                    node.commit(output)
                case Answered(request, value, code):
                    self._answer(node, request, value, code)

    def _answer(self, node: Node, request: int, value: Value, code: ErrorCode) -> None:
        assert (node.number, request) not in self.answered, "answered twice"
        self.answered.add((node.number, request))
        if request in self._unique:
            self.told[self._unique[request]] += code == ErrorCode.NONE
            self.winners[self._unique[request]] += value is True

    def _publish(self, node: Node, topic: bytes, command: Command, receiver: bytes | None) -> None:
        self.messages += 1
        octets = encode_command(command)
        assert self.messages < MOST_MESSAGES, "messages without end"
        if isinstance(command.content, Load) and not self.has_pieces:
            return
        for other in self.nodes:
            wanted = topic in other.topics if receiver is None else other.endpoint == receiver
            if other is node or not wanted:
                continue
            for _ in range(2 if self.random.random() < self.doubling else 1):
                if self.random.random() >= self.loss:
                    seconds = self.random.uniform(0.001, self.delay)
                    if self.lateness is not None and self.lateness.random() < LATE:
                        seconds += self.lateness.uniform(0.0, LATEST)
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
            if key == "counter" and self.only_grows:
                assert event[4] >= event[3], "what was seen is taken back"
            shadow[encode(key)] = event[4]
        else:
            del shadow[encode(key)]

    # -- what happens -------------------------------------------------------------------------------

    def restart(self, node: Node) -> None:
        if node.alive:
            node.alive = False
            node.written = 0  # its writes may be lost with it, or not
            self.later(self.random.choice([0.1, 3.0, 8.0]), node.start)

    def cut(self, node: Node, seconds: float) -> None:
        self.cut_until[node.number] = self.now + seconds

    def write(self) -> None:
        chance = self.random
        node = chance.choice(self.nodes)
        if not node.alive:
            return
        by = node.store.entity
        key: Value = chance.choice(["a", "b", Count(1), 1, True, ("old", chance.randrange(45))])
        expiry = chance.choice([None, None, Timespan(2 * 10**9)])
        operation = chance.choice([*range(11), 10, 10, 10])
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
            for one in ["a", "b", "set", "table", *[("old", number) for number in range(0, 40, 3)]]:
                node.write(Erase(one, by))
        elif operation == 7:
            request, unique = next(self._requests), chance.randrange(8)
            self._unique[request] = unique
            self.asked[unique] += 1
            arguments = (f"unique {unique}", node.number, None)
            node.ask(Query(request, Operation.PUT_UNIQUE, arguments))
            if chance.random() < 0.3:  # the answer does not arrive
                self.later(chance.uniform(0.0, 2 * self.delay), self.cut, node, 12.0)
        elif operation == 8:
            node.ask(Query(next(self._requests), Operation.GET, (key,)))
        elif operation == 9:
            node.ask(Query(next(self._requests), Operation.KEYS, (Count(0),)))
        else:
            self.attempted += 1
            node.write(Add("counter", Count(1), types.COUNT, None, by))


class Clearing(Network):
    """Everything is erased now and then."""

    only_grows = False

    def write(self) -> None:
        super().write()
        node = self.random.choice(self.nodes)
        if node.alive and self.random.random() < 0.1:
            node.write(Clear(node.store.entity))


def simulate(seed: int) -> Network:
    with (
        mock.patch("dafka.overlay.stores.pieces.PIECE_ENTRIES", 4),
        mock.patch("dafka.overlay.channels.producer.MOST_KEPT", 5 if seed % 3 == 0 else MOST_KEPT),
    ):
        network = Clearing(seed) if seed % 7 == 0 else Network(seed)
        run(network)
    check(network)
    return network


def run(network: Network) -> None:
    chance = network.random
    for _ in range(chance.choice([10, 60, 200])):
        network.later(chance.uniform(1.0, FAULTS_END), network.write)
    for _ in range(chance.choice([0, 0, 1, 4])):
        node = chance.choice([network.master, *network.nodes])
        network.later(chance.uniform(3.0, FAULTS_END - 10.0), network.restart, node)
    for _ in range(chance.choice([0, 1, 4])):
        seconds = chance.choice([0.5, 3.0, 12.0])
        network.later(
            chance.uniform(3.0, FAULTS_END - 12.0), network.cut, chance.choice(network.nodes), seconds
        )
    network.run(FAULTS_END)
    network.loss = network.doubling = network.disk_failure = network.dying = 0.0
    network.delay = network.disk_delay = 0.02
    network.lateness = None
    network.run(END)
