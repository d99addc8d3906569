"""Each test of share consumers runs in the broker's process, and over TCP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dafka import Broker
from tests.compat.share.scene import Scene


@pytest.fixture(params=["in the process", "over TCP"])
def remote(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    is_remote: bool = request.param == "over TCP"
    if is_remote:  # as a client of another process would find it
        monkeypatch.setattr("dafka.broker.connecting.running.at", lambda addresses: None)
        monkeypatch.setattr("dafka.broker.connecting.running.brokers", lambda: [])
    return is_remote


@pytest.fixture
def scene(remote: bool) -> Iterator[Scene]:
    with Broker(listen="127.0.0.1:0") as broker:
        made = Scene(broker, remote)
        yield made
        for consumer in made.made:
            consumer.close()
