"""What the tests of the remote broker share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from broker.remote.fake_broker import FakeCluster

from dafka import Broker
from dafka.broker.remote.remote import Remote
from dafka.hub.hub import get_hub


class Caller:
    """A remote broker whose methods are called from this thread."""

    def __init__(self, addresses: list[tuple[str, int]], **options: Any) -> None:
        self.hub = get_hub()
        self.remote: Remote = self.hub.run(Remote, self.hub, addresses, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.remote, name)
        return lambda *args, **kwargs: self.hub.run(method, *args, **kwargs)


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
    with Broker(listen="127.0.0.1:0") as broker:
        yield broker


@pytest.fixture
def remote(listening: Broker, remote_to: Callable[..., Caller]) -> Caller:
    """The same broker over TCP."""
    host, _, port = listening.bootstrap_servers.rpartition(":")
    return remote_to([(host, int(port))])
