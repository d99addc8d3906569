"""What is answered while a feature of groups is off (level 0), and after it is on again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from broker.server.client import WireClient
from broker.server.samples import STREAMS, streams_heartbeat
from broker.server.share_samples import share_samples
from clients.servers import Server
from kafka.errors import UnsupportedVersionError
from kafka.protocol.admin import UpdateFeaturesRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest
from timing import until

from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from dafka.broker.codec.messages.streams_group import StreamsGroupDescribeRequest

UP, DOWN = 1, 2
FEATURES = ("group.version", "share.version", "streams.version")
NEWEST = {"ConsumerGroup": 1, "ShareGroup": 1, "ShareFetch": 1, "ShareAcknowledge": 1}


@pytest.fixture
def wire(server: Server) -> Iterator[WireClient]:
    with WireClient(server) as wire:
        yield wire


def requests(topic: str) -> list[Any]:
    """One of each API of the newer groups."""
    return [
        consumer_heartbeat("consumers", topic),
        ConsumerGroupDescribeRequest(group_ids=["consumers"], include_authorized_operations=False),
        streams_heartbeat(topic),
        StreamsGroupDescribeRequest(group_ids=[STREAMS], include_authorized_operations=False),
        *share_samples(topic, uuid4()),
    ]


def consumer_heartbeat(group: str, topic: str, epoch: int = 0) -> Any:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=epoch,
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[topic],
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=[],
    )


def error_code(answer: Any) -> int:
    """That of the answer, or of the first thing in it that has one: a group, a topic's partition."""
    while not hasattr(answer, "error_code"):
        answer = next(
            getattr(answer, part)[0] for part in ("groups", "results", "partitions") if hasattr(answer, part)
        )
    return int(answer.error_code)


def version_of(request: Any) -> int:
    name = type(request).__name__
    return next((version for prefix, version in NEWEST.items() if name.startswith(prefix)), 0)


def set_levels(wire: WireClient, level: int) -> None:
    key = UpdateFeaturesRequest.FeatureUpdateKey
    type_ = UP if level else DOWN
    updates = [
        key(feature=name, max_version_level=level, allow_downgrade=False, upgrade_type=type_)
        for name in FEATURES
    ]
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=updates, validate_only=False)
    assert wire.ask(request, 1).error_code == 0


def announced(wire: WireClient) -> tuple[set[int], set[str]]:
    answer = wire.ask(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 3)
    return {one.api_key for one in answer.api_keys}, {one.name for one in answer.finalized_features}


def test_groups_whose_feature_is_off_are_refused_while_their_apis_stay_announced(
    wire: WireClient, topic: str
) -> None:
    apis, _ = announced(wire)
    set_levels(wire, 0)
    try:
        until(lambda: not announced(wire)[1].intersection(FEATURES), "the features are off")
        for request in requests(topic):
            found = error_code(wire.ask(request, version_of(request)))
            assert found == UnsupportedVersionError.errno, request
        assert announced(wire)[0] == apis
    finally:
        set_levels(wire, 1)
    until(lambda: announced(wire)[1].issuperset(FEATURES), "the features are on again")
    group = f"group-{uuid4().hex[:8]}"
    wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4)  # Apache Kafka starts it then
    until(lambda: error_code(wire.ask(consumer_heartbeat(group, topic), 1)) == 0, "a member joins")
    assert error_code(wire.ask(consumer_heartbeat(group, topic, -1), 1)) == 0
