"""Fixtures of the broker's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker.clients import Client

from dafka import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker in a temporary folder."""
    with Broker() as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Client:
    """The interface of the test's broker."""
    return Client(broker)
