"""What the tests of the remote broker share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from broker.clients import MEGABYTE, errors_of
from broker.remote.fake_broker import FakeCluster
from ports import free_port

from dafka import Broker
from dafka.broker.interface.broker import FetchFrom, TopicSpec
from dafka.broker.remote.remote import Remote
from dafka.hub.hub import get_hub
from dafka.protocol.batch_reader import decode_batch


class Caller:
    """A remote broker whose methods are called from this thread."""

    def __init__(self, addresses: list[tuple[str, int]], **options: Any) -> None:
        self.hub = get_hub()
        self.remote: Remote = self.hub.run(Remote, self.hub, addresses, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.remote, name)
        return lambda *args, **kwargs: self.hub.run(method, *args, **kwargs)

    def values(self, topic: str, number: int = 0, offset: int = 0) -> list[bytes | None]:
        """The values of the records of a partition."""
        wanted = {(topic, number): FetchFrom(offset, MEGABYTE)}
        found = self.fetch(wanted, max_wait=5.0, min_bytes=1, max_bytes=MEGABYTE)[topic, number]
        assert found.error is None
        return [value for one in found.batches for value in decode_batch(one).values]


@pytest.fixture
def remote_to() -> Iterator[Callable[..., Caller]]:
    """Makes remotes to addresses, closed with the test."""
    made: list[Caller] = []

    def make(addresses: list[tuple[str, int]], **options: Any) -> Caller:
        made.append(Caller(addresses, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.leaders = {"t": {0: 0}}
        yield cluster


@pytest.fixture
def trio() -> Iterator[FakeCluster]:
    """Three brokers, each leading one partition of the topic "t"."""
    with FakeCluster(3) as cluster:
        cluster.leaders = {"t": {0: 0, 1: 1, 2: 2}}
        yield cluster


@pytest.fixture
def listening() -> Iterator[Broker]:
    """A broker that other processes could reach."""
    with Broker(listen=f"127.0.0.1:{free_port()}") as broker:  # it is nobody else's while one starts again
        yield broker


@pytest.fixture
def remote(listening: Broker, remote_to: Callable[..., Caller]) -> Caller:
    """The same broker over TCP."""
    host, _, port = listening.bootstrap_servers.rpartition(":")
    return remote_to([(host, int(port))])


@pytest.fixture
def topic(remote: Caller) -> str:
    """A topic of two partitions."""
    assert errors_of(remote.create_topics({"topic": TopicSpec(2)})) == {"topic": None}
    return "topic"
