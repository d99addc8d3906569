"""Errors and their codes and messages in the protocol."""

from __future__ import annotations

import pytest
from kafka.errors import (
    KafkaStorageError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.codec.errors import BadRequestError, coordinator_code, error_code, error_message, error_of
from dafka.protocol.errors import DafkaError


@pytest.mark.parametrize(
    ("error", "code"), [(None, 0), (UnknownTopicOrPartitionError, 3), (UnknownError, -1)]
)
def test_an_error_has_kafkas_code_and_none_has_0(error: type | None, code: int) -> None:
    assert error_code(error) == code
    assert error_of(code) is error


def test_a_coordinator_whose_disk_fails_has_the_code_of_one_that_has_moved() -> None:
    assert coordinator_code(KafkaStorageError) == NotCoordinatorError.errno
    assert (coordinator_code(None), coordinator_code(UnknownError)) == (0, -1)


def test_an_error_with_a_message_of_its_own_has_the_code_of_its_class() -> None:
    assert error_code(NotLeaderForPartitionError("broker 3 leads")) == 6


def test_a_code_that_kafka_python_does_not_know_is_an_error_with_that_code() -> None:
    assert error_code(error_of(9_999)) == 9_999


def test_the_message_is_the_detail_or_kafka_pythons_description() -> None:
    assert error_message(UnknownTopicOrPartitionError, "no topic 'a'") == "no topic 'a'"
    assert error_message(UnknownTopicOrPartitionError) == UnknownTopicOrPartitionError.description


def test_there_is_no_message_without_an_error() -> None:
    assert error_message(None, "a detail") is None


def test_a_bad_request_has_a_message_and_a_short_cause_for_the_metrics() -> None:
    error = BadRequestError("short", "Metadata ends too early")
    assert isinstance(error, DafkaError)
    assert (error.cause, str(error)) == ("short", "Metadata ends too early")
