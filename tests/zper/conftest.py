"""Fixtures of ZPER's tests: brokers with its servers, and clients that are plain pyzmq sockets."""

from __future__ import annotations

import pytest
from zper.clients import Clients


@pytest.fixture
def clients():
    """Makes pyzmq sockets that are closed at the end of the test."""
    with Clients() as clients:
        yield clients


@pytest.fixture(autouse=True)
def _nothing_unexpected(caplog):
    """No green thread has failed on something unexpected: it would go on, and only the log would tell."""
    yield
    unexpected = [record.getMessage() for record in caplog.get_records("call") if record.exc_info]
    assert not unexpected, unexpected
