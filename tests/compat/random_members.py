"""What random histories of members of groups share."""

from __future__ import annotations

import os
from typing import Any

import pytest

SEEDS = int(os.environ.get("DAFKA_TEST_MEMBER_SEEDS", "2"))  # long form: 300


def over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clients of this process connect as those of others do."""
    monkeypatch.setattr("dafka.broker.connecting.running.at", lambda addresses: None)
    monkeypatch.setattr("dafka.broker.connecting.running.brokers", lambda: [])


def silence(consumer: Any) -> None:
    """Have a consumer be as one whose process has died: it sends nothing any more."""
    consumer._client.call(_end, getattr(consumer._member, "session", consumer._member))
    consumer._client.close()
    consumer._closed = True


def _end(session: Any) -> None:
    for task in (session._heart, getattr(session, "_fetching", None)):
        if task is not None:
            task.kill()
