"""Consumer groups of the newer protocol of another process: every field there and back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import FencedMemberEpochError, GroupIdNotFoundError

from dafka import Broker
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat


@pytest.fixture
def remote(remote_to: Any) -> Iterator[Any]:
    with Broker(listen="127.0.0.1:0") as broker:
        Client(broker).create("t", 3)
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        yield remote_to([(host, int(port))])


def test_a_member_joins_is_described_and_leaves(remote):
    request = ConsumerHeartbeat(
        "m", 0, "i", "r", 9.0, ["t"], "t.*", "range", {}, client_id="c", client_host="/nobody"
    )
    answer = remote.consumer_group_heartbeat("g", request)
    assert (answer.error, answer.member_id, answer.member_epoch) == (None, "m", 2)
    assert answer.interval < 1  # what the expression matches is looked for meanwhile
    (topic_id,) = answer.assignment
    assert answer.assignment[topic_id] == {0, 1, 2}
    epoch = _beat_until_settled(remote, "i")
    found = remote.describe_consumer_groups(["g"])["g"]
    assert (found.error, found.state, found.epoch, found.assignor) == (None, "Stable", epoch, "range")
    assert found.topics == {topic_id: "t"}
    (member,) = found.members
    assert member[:5] == ("m", "i", "r", epoch, "c")
    assert (list(member.topics), member.regex, member.is_classic) == (["t"], "t.*", False)
    assert member.assigned == member.target == answer.assignment
    kept = ConsumerHeartbeat("m", epoch, "i", owned={topic_id: [0, 1, 2]})
    assert remote.consumer_group_heartbeat("g", kept).assignment is None
    assert remote.consumer_group_heartbeat("g", ConsumerHeartbeat("m", -1, "i")).error is None


def _beat_until_settled(remote: Any, instance_id: str) -> int:
    """The epoch of member "m" once it is not asked to come again soon."""
    answer, give_up = None, time.monotonic() + 60
    epoch = 2
    while answer is None or answer.interval < 5.0:
        assert time.monotonic() < give_up
        answer = remote.consumer_group_heartbeat(
            "g", ConsumerHeartbeat("m", epoch, instance_id, client_id="c")
        )
        epoch = answer.member_epoch
    return epoch


def test_errors_come_with_their_words(remote):
    assert remote.describe_consumer_groups(["none"])["none"].error is GroupIdNotFoundError
    request = ConsumerHeartbeat("m", 0, rebalance_timeout=9.0, topics=["t"], owned={})
    remote.consumer_group_heartbeat("g", request)
    answer = remote.consumer_group_heartbeat("g", ConsumerHeartbeat("m", 7))
    assert answer.error is FencedMemberEpochError and "rejoin" in answer.detail
