"""How often a request is repeated."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dafka.broker.remote import retrying
from dafka.broker.remote.limits import RETRIES, RETRY_BACKOFF
from dafka.broker.remote.retrying import attempts


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, without taking time."""
    made: list[float] = []
    monkeypatch.setattr(retrying, "gevent", SimpleNamespace(sleep=made.append))  # others sleep meanwhile
    return made


def test_the_last_of_the_attempts_is_known_and_there_is_no_pause_after_it(pauses: list[float]) -> None:
    assert list(attempts()) == [False] * RETRIES + [True]
    assert pauses == [RETRY_BACKOFF] * RETRIES


def test_an_attempt_that_succeeds_is_followed_by_no_pause(pauses: list[float]) -> None:
    for _ in attempts():
        break
    assert not pauses
