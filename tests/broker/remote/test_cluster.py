"""Finding the brokers of a cluster: bootstrap addresses, and brokers that are down."""

from __future__ import annotations

import time

import pytest
from broker.remote.fake_broker import CLOSE
from kafka.errors import (
    KafkaConnectionError,
)

from dafka.broker.remote import limits


def test_another_bootstrap_address_is_asked_when_one_is_down(trio, remote_to):
    trio.brokers[0].stop()
    trio.brokers[1].answers[18] = lambda request: CLOSE
    remote = remote_to(trio.addresses)
    assert set(remote.metadata(["t"]).topics) == {"t"}


def test_a_cluster_that_cannot_be_reached_says_why_for_each_address(trio, remote_to):
    for broker in trio.brokers:
        broker.stop()
    remote = remote_to(trio.addresses)
    with pytest.raises(KafkaConnectionError, match=r"refused.*;.*refused.*;.*refused"):
        remote.metadata(None)


def test_the_pause_between_attempts_to_reach_a_broker_grows_until_it_is_back(fake, remote_to):
    remote = remote_to(fake.addresses)
    remote.metadata(None)
    broker = fake.brokers[0]
    broker.stop()
    started = time.monotonic()
    for _ in range(4):
        with pytest.raises(KafkaConnectionError, match=r"refused|closed"):
            remote.metadata(None)
    pauses = [limits.RECONNECT_BACKOFF * 2**count * (1 - limits.RECONNECT_JITTER) for count in range(2)]
    assert time.monotonic() - started > sum(pauses)
    broker.restart()
    assert remote.metadata(["t"]).topics["t"].error is None
