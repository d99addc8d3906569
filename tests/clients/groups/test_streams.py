"""Kafka Streams with its own group protocol: words are counted while an instance is killed.

The same tests run beside Apache Kafka. They fetch Kafka Streams, so they are for the long form alone.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from clients.adapters import Confluent
from clients.adapters.client import SECONDS
from clients.adapters.java import tool
from clients.conftest import LONG, MakeTopic
from clients.groups.settings import set_group
from clients.groups.word_count import Instance, class_path
from clients.records import Record
from confluent_kafka import Consumer, TopicPartition
from timing import until

from scripts.apache.jars import UnavailableError

pytestmark = [
    pytest.mark.skipif(not os.environ.get(LONG), reason=f"fetches Kafka Streams; set {LONG}=1"),
    pytest.mark.timeout(600),
]

PARTITIONS = 4
WORDS = [f"word{number}" for number in range(40)]


class Application:
    """An application of its own topics; ``written`` is how often each word was."""

    def __init__(self, servers: str, guarantee: str, topics: tuple[str, str], folder: Path) -> None:
        self.name = f"words-{uuid4().hex[:8]}"
        self.written: Counter[str] = Counter()
        self._servers, self._guarantee, self._topics, self._folder = servers, guarantee, topics, folder
        self._random = random.Random(1)
        self._stack = ExitStack()
        self._started = 0
        settings = {
            "streams.session.timeout.ms": "6000",
            "streams.heartbeat.interval.ms": "500",
            "streams.initial.rebalance.delay.ms": "0",
        }
        set_group(servers, self.name, settings)
        self._results = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{self.name}-results",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._results.assign([TopicPartition(topics[1], number, 0) for number in range(PARTITIONS)])
        self._stack.callback(self._results.close)
        self.counts: dict[str, list[int]] = defaultdict(list)

    def start(self) -> Instance:
        """One more instance."""
        self._started += 1
        instance = Instance(
            self._topics,
            self._folder / str(self._started),
            bootstrap_servers=self._servers,
            application_id=self.name,
            group_protocol="streams",
            processing_guarantee=self._guarantee,
            commit_interval_ms="200",
            statestore_cache_max_bytes="0",
        )
        self._stack.callback(instance.close)
        return instance

    def write(self, lines: int) -> None:
        """More lines, spread over all partitions."""
        records = []
        for number in range(lines):
            words = self._random.choices(WORDS, k=5)
            self.written.update(words)
            records.append(Record(" ".join(words).encode(), partition=number % PARTITIONS))
        Confluent().produce(self._servers, self._topics[0], records)

    def read(self) -> dict[str, list[int]]:
        """The counts of each word that came out so far, in their order."""
        for message in self._results.consume(5000, 0.2):
            assert message.error() is None
            self.counts[message.key().decode()].append(int(message.value()))
        return self.counts

    def last(self) -> dict[str, int]:
        """The last count of each word."""
        return {word: counts[-1] for word, counts in self.read().items()}

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(params=["at_least_once", "exactly_once_v2"])
def application(
    request: pytest.FixtureRequest, servers: str, new_topic: MakeTopic, tmp_path: Path
) -> Iterator[Application]:
    try:
        class_path()
    except UnavailableError as error:
        pytest.skip(str(error))
    topics = new_topic(PARTITIONS), new_topic(PARTITIONS)
    application = Application(servers, request.param, topics, tmp_path)
    try:
        yield application
    finally:
        application.close()


def members(servers: str, application: Application) -> list[list[str]]:
    """What ``kafka-streams-groups --members`` says of each member."""
    arguments: Any = ("--bootstrap-server", servers, "--describe", "--group", application.name, "--members")
    lines = tool("streams.StreamsGroupCommand", *arguments).splitlines()
    return [line.split() for line in lines if line.startswith(application.name)]


def test_words_are_counted_while_an_instance_is_killed(
    application: Application, servers: str, request: pytest.FixtureRequest
) -> None:
    first, second = application.start(), application.start()
    first.wait_until_running()
    second.wait_until_running()
    application.write(400)
    until(lambda: application.last() == application.written, "the first lines are counted", SECONDS)
    until(lambda: len(members(servers, application)) == 2, "both are members", SECONDS)
    application.write(2000)
    until(lambda: sum(application.last().values()) > 2500, "it is under way", SECONDS)
    second.kill()
    application.write(400)
    exactly = "exactly" in request.node.name

    def all_are_counted() -> bool:
        last = application.last()
        return last.keys() == application.written.keys() and all(
            last[word] == count if exactly else last[word] >= count
            for word, count in application.written.items()
        )

    until(all_are_counted, "the other one goes on", 2 * SECONDS)
    until(lambda: len(members(servers, application)) == 1, "the killed one is gone", SECONDS)
    if exactly:
        for word, counts in application.counts.items():
            assert counts == list(range(1, application.written[word] + 1)), word
    first.close()
    assert "closed" in first.said
