"""How often a request is repeated, and which refusals mean that another broker leads."""

from __future__ import annotations

import pytest
from kafka.errors import (
    FencedLeaderEpochError,
    LeaderNotAvailableError,
    NetworkExceptionError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.remote import retrying
from dafka.broker.remote.leaders import leader_moved
from dafka.broker.remote.limits import RETRIES, RETRY_BACKOFF
from dafka.broker.remote.retrying import attempts


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which takes time."""
    made: list[float] = []
    monkeypatch.setattr(retrying.gevent, "sleep", made.append)
    return made


def test_the_last_of_the_attempts_is_known_and_there_is_no_pause_after_it(pauses: list[float]) -> None:
    assert list(attempts()) == [False] * RETRIES + [True]
    assert pauses == [RETRY_BACKOFF] * RETRIES


def test_an_attempt_that_succeeds_is_followed_by_no_pause(pauses: list[float]) -> None:
    for _ in attempts():
        break
    assert not pauses


@pytest.mark.parametrize(
    "error", [NotLeaderForPartitionError, LeaderNotAvailableError, FencedLeaderEpochError]
)
def test_a_broker_that_does_not_lead_says_that_the_leader_has_moved(error: type) -> None:
    assert leader_moved(error)


@pytest.mark.parametrize(
    "error",
    [
        None,
        NetworkExceptionError,  # perhaps carried out
        UnknownTopicOrPartitionError,  # there is no leader to look for
        RequestTimedOutError,
        TopicAuthorizationFailedError,
    ],
)
def test_other_answers_do_not(error: type | None) -> None:
    assert not leader_moved(error)
