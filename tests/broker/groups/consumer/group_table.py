"""A consumer group that a test sends heartbeats, one after the other."""

from __future__ import annotations

import re
from typing import Any

from broker.groups.modern.known_topics import FakeTopics

from dafka.broker.groups.consumer.group import Answer, ConsumerGroup
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat

SESSION, REBALANCE = 10.0, 8.0


class Table:
    """A group with a clock, in which topic "t" has six partitions and "u" two."""

    def __init__(self) -> None:
        self.now = 0.0
        self.topics = FakeTopics(t=6, u=2)
        self.group = ConsumerGroup(0.0, self.topics)

    def send(self, name: str, epoch: int, *, most: int = 100, **fields: Any) -> Answer:
        request = ConsumerHeartbeat(name, epoch, **fields)
        return self.group.heartbeat(self.now, request, SESSION, most)

    def resolve(self) -> None:
        """Look for the topics of all expressions."""
        expressions = self.group.expressions.begin(self.now, self.topics, 600.0).expressions
        names = self.topics.names()
        self.group.resolve({one: frozenset(filter(re.compile(one).fullmatch, names)) for one in expressions})

    def join(self, name: str, *topics: str, **fields: Any) -> Answer:
        fields = {"rebalance_timeout": REBALANCE, "owned": {}, "topics": list(topics or ("t",)), **fields}
        return self.send(name, 0, **fields)

    def owned(self, *numbers: int, topic: str = "t") -> Any:
        return {self.topics.known[topic].topic_id: frozenset(numbers)}

    def numbers(self, answer: Answer, topic: str = "t") -> list[int] | None:
        if answer.assignment is None:
            return None
        return sorted(answer.assignment.get(self.topics.known[topic].topic_id, ()))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.group.wake_at:
            self.group.tick(self.now)

    def two(self) -> tuple[Answer, Answer]:
        """Two stable members, "x" and "y", with three partitions of "t" each."""
        x = self.join("x")
        self.join("y")
        x = self.send("x", x.epoch)
        x = self.send("x", x.epoch, owned=self.owned(*self.numbers(x)))
        y = self.send("y", self.group.epoch)
        assert self.group.state_name == "Stable"
        return x, y
