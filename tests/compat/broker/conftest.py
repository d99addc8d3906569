"""Endpoints of these tests: plain TCP unless a test says something else, and shut down at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from compat.broker import BrokerOptions, Configuration, Endpoint

PLAIN = BrokerOptions()
PLAIN.disable_ssl = True

NewEndpoint = Callable[..., Endpoint]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited for may take longer on a machine that is busy."""
    monkeypatch.setattr("compat.broker._endpoint.AWAIT_PEER_SECONDS", 100.0)
    monkeypatch.setattr("compat.broker._store.AWAIT_IDLE_SECONDS", 100.0)


@pytest.fixture
def new_endpoint() -> Iterator[NewEndpoint]:
    """Makes endpoints."""
    with contextlib.ExitStack() as all_of_them:

        def make(configuration: Configuration | None = None) -> Endpoint:
            return all_of_them.enter_context(Endpoint(configuration or Configuration(PLAIN)))

        yield make


@pytest.fixture
def pair(new_endpoint: NewEndpoint) -> tuple[Endpoint, Endpoint]:
    """Two peers, the second of which has connected to the first."""
    return connect(new_endpoint(), new_endpoint())


def connect(listener: Endpoint, connector: Endpoint) -> tuple[Endpoint, Endpoint]:
    port = listener.listen("127.0.0.1", 0)
    assert connector.peer("127.0.0.1", port)
    assert listener.await_peer(connector.node_id())
    assert connector.await_peer(listener.node_id())
    return listener, connector
