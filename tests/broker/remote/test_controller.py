"""Changes that the controller makes, or a broker with a name."""

from __future__ import annotations

from typing import Any

import pytest
from broker.remote.fake_broker import CLOSE, once
from kafka.errors import (
    BrokerNotAvailableError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    NetworkExceptionError,
    NotControllerError,
    PolicyViolationError,
)
from kafka.protocol.admin import DeleteTopicsResponse

from dafka.broker.interface.outcome import Outcome
from dafka.broker.remote.controller import broker_named, failed

DELETE_TOPICS = 20


def deleted(**codes: int) -> Any:
    """An answer to DeleteTopics with an error code for each topic."""
    result = DeleteTopicsResponse.DeletableTopicResult
    results = [
        result(name=name, topic_id=None, error_code=code, error_message="a reason" if code else None)
        for name, code in codes.items()
    ]
    return lambda request: DeleteTopicsResponse(throttle_time_ms=0, responses=results)


def test_each_topic_has_the_error_and_the_words_of_the_controller(fake, remote_to):
    fake.brokers[0].answers[DELETE_TOPICS] = deleted(a=0, b=PolicyViolationError.errno)
    assert remote_to(fake.addresses).delete_topics(["a", "b"]) == {
        "a": Outcome(None),
        "b": Outcome(PolicyViolationError, "a reason"),
    }


def test_a_topic_that_the_controller_says_nothing_of_may_have_been_changed(fake, remote_to):
    fake.brokers[0].answers[DELETE_TOPICS] = deleted(a=0)
    outcomes = remote_to(fake.addresses).delete_topics(["a", "b"])
    assert (outcomes["a"].error, outcomes["b"].error) == (None, NetworkExceptionError)


def test_a_controller_that_has_moved_is_looked_for_again(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[DELETE_TOPICS] = once(deleted(a=NotControllerError.errno), deleted(a=0))
    assert remote_to(fake.addresses).delete_topics(["a"]) == {"a": Outcome(None)}
    assert broker.counts[DELETE_TOPICS] == 2


def test_a_change_whose_connection_is_lost_is_not_repeated(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[DELETE_TOPICS] = lambda request: CLOSE
    outcomes = remote_to(fake.addresses).delete_topics(["a", "b"])
    assert {outcome.error for outcome in outcomes.values()} == {NetworkExceptionError}
    assert broker.counts[DELETE_TOPICS] == 1


def test_a_controller_that_does_not_know_the_request_is_not_asked_and_nothing_is_retried(fake, remote_to):
    broker = fake.brokers[0]
    broker.versions[DELETE_TOPICS] = (90, 99)
    (outcome,) = remote_to(fake.addresses).delete_topics(["a"]).values()
    assert outcome.error is IncompatibleBrokerVersion
    assert "knows 90 to 99" in outcome.detail
    assert broker.counts[DELETE_TOPICS] == 0


def test_a_broker_has_a_number_for_a_name_and_any_other_name_is_the_controller(trio, remote_to):
    remote = remote_to(trio.addresses)

    def node_id(name: str) -> int:
        return remote.hub.run(broker_named, remote.remote.cluster, name).node_id

    assert (node_id("2"), node_id(""), node_id("topic")) == (2, 0, 0)
    with pytest.raises(BrokerNotAvailableError):
        node_id("7")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (PolicyViolationError("no"), PolicyViolationError),
        (KafkaConnectionError("refused"), NetworkExceptionError),
        (NetworkExceptionError("closed"), NetworkExceptionError),
        (IncompatibleBrokerVersion("too old"), IncompatibleBrokerVersion),
    ],
)
def test_a_request_without_an_answer_has_an_error_of_the_network_or_of_its_version(error: Any, outcome: type):
    assert failed(error) is outcome
