"""Which hosts are this machine alone."""

from __future__ import annotations

import pytest

from dafka.sockets.hosts import is_loopback


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1"])
def test_these_are(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "*", "0.0.0.0", "::", "10.0.0.1", "kafka.example", "localhost.example", "127.1"]
)
def test_these_may_not_be(host: str) -> None:
    assert not is_loopback(host)
