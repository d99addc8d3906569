"""Leaders that move: which errors say so, and how often another one is looked for."""

from __future__ import annotations

import pytest
from broker.clients import batch
from broker.remote.fake_broker import produced
from kafka.errors import (
    FencedLeaderEpochError,
    LeaderNotAvailableError,
    NetworkExceptionError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.remote import limits
from dafka.broker.remote.leaders import leader_moved

PRODUCE = 0
NOT_LEADER = 6
BATCH = batch(b"v")


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
def test_other_errors_say_nothing_about_the_leader(error: type | None) -> None:
    assert not leader_moved(error)


def test_a_batch_that_was_refused_because_the_leader_has_changed_goes_to_the_new_one(trio, remote_to):
    def not_here(request):
        trio.leaders["t"][0] = 1
        return produced(request, NOT_LEADER)

    trio.brokers[0].answers[PRODUCE] = not_here
    trio.brokers[1].answers[PRODUCE] = lambda request: produced(request, base_offset=7)
    assert remote_to(trio.addresses).produce({("t", 0): [BATCH]})["t", 0].base_offset == 7


def test_a_refusal_that_lasts_is_returned(trio, remote_to):
    trio.brokers[0].answers[PRODUCE] = lambda request: produced(request, NOT_LEADER)
    outcome = remote_to(trio.addresses).produce({("t", 0): [BATCH]})["t", 0]
    assert outcome.error is NotLeaderForPartitionError
    assert trio.brokers[0].counts[PRODUCE] == 1 + limits.RETRIES


def test_a_partition_without_a_leader_and_one_that_does_not_exist_have_different_errors(trio, remote_to):
    trio.leaders["t"][1] = -1
    outcome = remote_to(trio.addresses).produce({("t", 1): [BATCH], ("t", 9): [BATCH], ("no", 0): [BATCH]})
    assert outcome["t", 1].error is LeaderNotAvailableError
    assert outcome["t", 9].error is UnknownTopicOrPartitionError
    assert outcome["no", 0].error is UnknownTopicOrPartitionError
