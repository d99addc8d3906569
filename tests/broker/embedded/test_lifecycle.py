"""Whether a broker runs, and the errors of its calls when it does not or when its log fails."""

from __future__ import annotations

import logging

import pytest
from kafka.errors import KafkaStorageError
from logs import logged

from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.hub.hub import get_hub
from dafka.log import LogWriteError

LOGGER = "dafka.broker.embedded.lifecycle"

FAILURE = LogWriteError("/data", "disk full")


@pytest.fixture
def lifecycle() -> Lifecycle:
    return Lifecycle(get_hub(), "127.0.0.1:9 on /data")


def test_a_broker_runs_until_it_is_stopped(lifecycle: Lifecycle) -> None:
    assert lifecycle.running
    lifecycle.check()
    lifecycle.stop()
    assert not lifecycle.running
    with pytest.raises(BrokerStoppedError, match=r"the broker 127\.0\.0\.1:9 on /data is stopped"):
        lifecycle.check()


def test_a_failure_of_the_log_is_logged_and_is_a_storage_error_for_the_client(
    lifecycle: Lifecycle, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, LOGGER):
        assert lifecycle.storage_error("creating", "t", FAILURE) is KafkaStorageError
    assert logged(caplog, LOGGER) == ["creating 't' failed: disk full"]


def test_a_failure_because_the_broker_has_stopped_is_not_the_logs(
    lifecycle: Lifecycle, caplog: pytest.LogCaptureFixture
) -> None:
    lifecycle.stop()
    with pytest.raises(BrokerStoppedError):
        lifecycle.storage_error("creating", "t", FAILURE)
    assert logged(caplog, LOGGER) == []
