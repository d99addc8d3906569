"""Fixtures of the tests that have different clients on one broker of the test's own."""

from __future__ import annotations

from broker.server.conftest import broker, client

__all__ = ["broker", "client"]
