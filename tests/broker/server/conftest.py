"""Fixtures of the listener's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker.clients import Client
from broker.server.client import WireClient

from dafka import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker that listens on a free port."""
    with Broker(listen="127.0.0.1:0") as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Client:
    """The interface of the test's broker, in process."""
    return Client(broker)


@pytest.fixture
def wire(broker: Broker) -> Iterator[WireClient]:
    """A connection to the test's broker."""
    with WireClient(broker) as connected:
        yield connected
