"""Fixtures of the broker's tests."""

from __future__ import annotations

import pytest
from broker.clients import Client

from dafka.testing import TestBroker


@pytest.fixture
def broker(dafka_broker: TestBroker) -> TestBroker:
    """A broker in a temporary folder."""
    return dafka_broker


@pytest.fixture
def client(broker: TestBroker) -> Client:
    """The interface of the test's broker."""
    return Client(broker)
