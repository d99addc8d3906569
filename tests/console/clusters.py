"""The clusters that a console shows in tests: a broker of this process, and Apache Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from clients.servers import APACHE, running
from console.asking import SECONDS
from timing import until

import dafka.broker
from dafka.console import Console
from dafka.hub.clock import REAL
from dafka.testing import TestBroker

ON_REQUEST = pytest.mark.skipif(
    not os.environ.get("DAFKA_TEST_APACHE_KAFKA"), reason="starts Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1"
)


class ApacheKafka:
    """Is filled and looked at as a TestBroker is, over TCP."""

    preload = TestBroker.preload
    topics = TestBroker.topics
    partitions = TestBroker.partitions
    records = TestBroker.records
    committed = TestBroker.committed
    _records = TestBroker._records
    _offsets = TestBroker._offsets

    def __init__(self, servers: str, console: str, connection: Any) -> None:
        self.bootstrap_servers = servers
        self.console = console
        self.clock = REAL
        self._call = connection.call

    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic, and wait until it can be written to."""
        TestBroker.create_topic(self, topic, partitions, configs)

        def is_there() -> bool:
            found = self._call("metadata", [topic]).topics[topic]
            return found.error is None and sum(one.writable for one in found.partitions) == partitions

        until(is_there, topic)


@contextmanager
def apache_kafka() -> Iterator[ApacheKafka]:
    """It, with a console. Skips the test where it cannot be had."""
    with running(APACHE) as server:
        connection = dafka.broker.connect(server.bootstrap_servers, SECONDS)
        with Console(connection) as console:
            yield ApacheKafka(server.bootstrap_servers, console.url, connection)
