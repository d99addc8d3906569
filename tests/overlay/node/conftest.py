"""Endpoints that are closed after each test."""

from __future__ import annotations

import pytest
from overlay.node.endpoints import WAIT

from dafka.overlay import Endpoint


@pytest.fixture
def make():
    made = []

    def endpoint(*args, **kwargs):
        made.append(Endpoint(*args, **kwargs))
        return made[-1]

    yield endpoint
    for one in made:
        one.close()


@pytest.fixture
def two(make):
    listener = make("127.0.0.1:0")
    connector = make()
    assert connector.peer(listener.address, timeout=WAIT)
    assert listener.await_peer(connector.id, timeout=WAIT)
    return listener, connector
