"""The broker that the commands speak to: one of a process of its own, and on request Apache Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from cli.kafka.terminal import Terminal
from clients.servers import APACHE, DAFKA, running

_ON_REQUEST = pytest.mark.skipif(
    not os.environ.get("DAFKA_TEST_APACHE_KAFKA"),
    reason="starts Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1",
)


@pytest.fixture(scope="session", params=[DAFKA, pytest.param(APACHE, marks=_ON_REQUEST)])
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    with running(request.param) as server:
        yield Terminal(server.bootstrap_servers)


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"t-{uuid4().hex[:12]}"
