"""Clusters in a simulation: messages are lost and late, nodes die and come back, topics grow and are deleted.

After a calm time every node must know what the others are: which are up, which are lost, and all topics of
the controllers that its configuration names.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from dafka.zper.cluster import limits
from dafka.zper.cluster.cluster import Cluster

SEEDS = range(40)
CALM = 3 * limits.LOST_AFTER


class Network:
    """Nodes that all name each other, and the messages between them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.disturbed = True
        self.names = [f"node{number}" for number in range(self.random.randint(2, 5))]
        self.topics: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in self.names}
        self.up: dict[str, Cluster] = {}
        self.links: set[tuple[str, str]] = set()
        self.on_the_way: list[tuple[float, int, Callable[[], None]]] = []
        self.sent = 0
        for name in self.names:
            self.start(name)

    def address(self, name: str) -> str:
        return f"tcp://{name}:5559"

    def start(self, name: str) -> None:
        quorum = [self.address(other) for other in self.names]  # one list for all: a node names itself, too
        self.up[name] = Cluster(name, int(1000 * self.now), {"writer": f"tcp://{name}:5555"}, quorum)

    def kill(self, name: str) -> None:
        del self.up[name]
        for link in [link for link in self.links if name in link]:
            self.cut(*link)

    def cut(self, one: str, other: str) -> None:
        self.links.discard((one, other))
        if one in self.up:
            self.up[one].disconnected(self.address(other))

    def later(self, action: Callable[[], None]) -> None:
        delay = self.random.choice([0.001, 0.1, 2.0]) if self.disturbed else 0.001
        self.sent += 1
        self.on_the_way.append((self.now + delay, self.sent, action))

    def ask(self, one: str, other: str, frames: list[bytes]) -> None:
        """Over a connection: if that ends, the message is lost."""
        here = self.up[one]

        def arrive() -> None:
            if (one, other) in self.links and self.up.get(one) is here:
                answer = self.up[other].asked(frames, one, self.now)
                self.later(lambda: self.answer(here, one, other, answer))

        self.later(arrive)

    def answer(self, here: Cluster, one: str, other: str, answer: list[bytes]) -> None:
        if (one, other) in self.links and self.up.get(one) is here:
            here.answered(self.address(other), answer, self.now)

    def step(self) -> None:
        self.now += 0.1
        for name, cluster in self.up.items():
            for other in self.up:
                if (name, other) not in self.links and (not self.disturbed or self.random.random() < 0.3):
                    self.links.add((name, other))
                    cluster.connected(self.address(other))
            if round(self.now * 10) % 10 == 0:
                cluster.update(self.topics[name], {"topics": len(self.topics[name])})
                for address, frames in cluster.questions(self.now).items():
                    self.ask(name, address[len("tcp://") : -len(":5559")], frames)
        due = sorted(one for one in self.on_the_way if one[0] <= self.now)
        self.on_the_way = [one for one in self.on_the_way if one[0] > self.now]
        for _, _, action in due:
            action()

    def disturb(self) -> None:
        name = self.random.choice(self.names)
        what = self.random.random()
        topics = self.topics[name]
        if what < 0.05:
            if name in self.up:
                self.kill(name)
            else:
                self.start(name)
        elif what < 0.15 and self.links:
            self.cut(*self.random.choice(sorted(self.links)))
        elif what < 0.2 and topics:
            del topics[self.random.choice(sorted(topics))]
        else:
            topic = f"t{self.random.randrange(12)}"
            first, end = topics.get(topic, (0, 0))
            topics[topic] = (first, end + self.random.randrange(100))


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_calm_time_all_nodes_know_the_same(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "CHANGES", 3)
    network = Network(seed)
    for _ in range(600):
        network.disturb()
        network.step()
    network.disturbed = False
    for _ in range(int(CALM * 10)):
        network.step()
    for name, cluster in network.up.items():
        nodes = json.loads(cluster.asked([b"NODES"], "", network.now)[1])["nodes"]
        states = {one["id"]: one["state"] for one in nodes}
        assert all(states[other] == "up" for other in network.up)
        assert all(states.get(other, "lost") == "lost" for other in set(network.names) - set(network.up))
        listed = json.loads(cluster.asked([b"TOPICS"], "", network.now)[1])["topics"]
        for other in network.up:
            seen = {one["topic"]: (one["first"], one["end"]) for one in listed if one["node"] == other}
            assert seen == network.topics[other], (name, other)
