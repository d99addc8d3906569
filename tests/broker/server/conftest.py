"""Fixtures of the listener's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker.clients import Client
from broker.server.client import WireClient
from ports import LOOPBACK

from dafka import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker that listens on a free port, at which nobody looks for another one."""
    with Broker(listen=f"{LOOPBACK}:0") as running:
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
