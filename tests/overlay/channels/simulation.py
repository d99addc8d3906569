"""Channels over a transport that loses, doubles and reorders: nothing is lost, nothing comes twice.

One seed decides everything. Consumers come and go, some without a word; each has to consume everything
produced since it was attached, in order; and in the end the producer keeps nothing.
"""

from __future__ import annotations

import heapq
import random
from itertools import count

from dafka.overlay.channels.consumer import Closed, Consume, Consumer, Lost, Reply
from dafka.overlay.channels.messages import Event
from dafka.overlay.channels.producer import Attached, Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import SILENT_TICKS, TICK_SECONDS
from dafka.overlay.wire.codes import ErrorCode

FAULTS_END = 30.0
END = FAULTS_END + 20.0
GONE = SILENT_TICKS * TICK_SECONDS


class Node:
    """A consumer and what it has consumed. Its events begin behind ``offset``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.consumer = Consumer()
        self.consumed: list[int] = []
        self.is_here = True
        self.is_attached = False


class Channel:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.loss = self.random.choice([0.0, 0.1, 0.4])
        self.delay = self.random.choice([0.01, 0.3, 2.0])
        self.doubling = self.random.choice([0.0, 0.1])
        self.producer: Producer[str] = Producer()
        self.nodes: dict[str, Node] = {}
        self.produced: list[int] = []
        self.dropped: dict[str, ErrorCode] = {}
        self.messages = 0
        self._events: list = []
        self._serial = count()
        self._names = count()
        self.later(0.0, self.tick)

    def later(self, seconds, call, *arguments) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._serial), call, arguments))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(self._events)
            call(*arguments)

    def send(self, call, *arguments) -> None:
        self.messages += 1
        assert self.messages < 300_000, "messages without end"
        for _ in range(2 if self.random.random() < self.doubling else 1):
            if self.random.random() >= self.loss:
                self.later(self.random.uniform(0.001, self.delay), call, *arguments)

    def tick(self) -> None:
        self.carry_producer(self.producer.tick())
        for node in self.nodes.values():
            if node.is_here:
                self.carry_consumer(node, node.consumer.tick())
        self.later(TICK_SECONDS, self.tick)

    def join(self) -> None:
        node = Node(f"node {next(self._names)}")
        self.nodes[node.name] = node

    def leave(self, with_a_word: bool) -> None:
        here = [node for node in self.nodes.values() if node.is_here]
        if here:
            node = self.random.choice(here)
            node.is_here = False
            if with_a_word:
                self.producer.remove(node.name)

    def produce(self) -> None:
        if self.producer.consumers and not self.producer.is_full:
            outputs = self.producer.produce(self.producer.sequence + 1)
            self.produced.append(self.producer.sequence)
            self.carry_producer(outputs)

    def carry_producer(self, outputs) -> None:
        for output in outputs:
            match output:
                case Broadcast(message):
                    for node in self.nodes.values():
                        if node.is_here:
                            self.send(self.hear_consumer, node, message)
                case Unicast(name, message):
                    if self.nodes[name].is_here:
                        self.send(self.hear_consumer, self.nodes[name], message)
                case Attached(name):
                    assert not self.nodes[name].is_attached, "attached twice"
                    self.nodes[name].is_attached = True
                case Dropped(name, reason, _):
                    assert not self.nodes[name].is_here, f"{name} is here, and dropped"
                    self.dropped[name] = reason

    def carry_consumer(self, node: Node, outputs) -> None:
        for output in outputs:
            match output:
                case Reply(message):
                    self.send(self.hear_producer, node, message)
                case Consume(content):
                    expected = node.consumer.next if not node.consumed else node.consumed[-1] + 1
                    assert not node.consumed or content == expected, f"{content} behind {node.consumed[-1]}"
                    node.consumed.append(content)
                case Lost(sequence):
                    raise AssertionError(f"{node.name} has lost {sequence}")
                case Closed(reason):
                    raise AssertionError(f"{node.name} is closed: {reason!r}")

    def hear_producer(self, node: Node, message) -> None:
        if node.is_here:
            self.carry_producer(self.producer.receive(node.name, message))

    def hear_consumer(self, node: Node, message) -> None:
        if node.is_here:
            assert not isinstance(message, Event) or message.content == message.sequence
            self.carry_consumer(node, node.consumer.receive(message))


def simulate(seed: int) -> Channel:
    channel = Channel(seed)
    chance = channel.random
    for _ in range(chance.randrange(1, 5)):
        channel.later(chance.uniform(0, 5.0), channel.join)
    for _ in range(chance.randrange(0, 4)):
        channel.later(chance.uniform(0, FAULTS_END), channel.join)
        channel.later(chance.uniform(0, FAULTS_END), channel.leave, chance.random() < 0.5)
    for _ in range(chance.choice([5, 50, 300])):
        channel.later(chance.uniform(0, FAULTS_END), channel.produce)
    channel.run(FAULTS_END)
    channel.loss = channel.doubling = 0.0
    channel.run(END)
    for node in channel.nodes.values():
        if node.is_here:
            assert node.is_attached and node.consumer.is_attached, f"{node.name} is not attached"
            last = channel.producer.sequence
            assert node.consumer.next == last + 1, f"{node.name} waits for {node.consumer.next} of {last}"
            assert not node.consumed or node.consumed[-1] == last
            assert node.consumed == channel.produced[len(channel.produced) - len(node.consumed) :]
    channel.run(END + GONE + 10.0)
    assert channel.producer.kept == 0 and channel.producer.is_idle
    assert set(channel.producer.consumers) == {node.name for node in channel.nodes.values() if node.is_here}
    assert all(reason is ErrorCode.CONNECTION_TIMEOUT for reason in channel.dropped.values())
    return channel
