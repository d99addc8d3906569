"""Fixtures of the tests that attack the whole broker, or play random histories beside a model.

They take a third of the broker's processor time, and a change of one file seldom needs them:
``./scripts/test broker`` leaves them out, ``./scripts/test`` and ``./scripts/test stress`` run them.
"""

from __future__ import annotations

from broker.remote.conftest import remote_to
from broker.server.conftest import broker, client, wire

__all__ = ["broker", "client", "remote_to", "wire"]
