"""Heartbeats of Streams groups that are refused, whatever the group."""

from __future__ import annotations

import pytest
from kafka.errors import InvalidRequestError

from dafka.broker.groups.streams.requests import check_heartbeat
from dafka.broker.interface.streams_groups import (
    StreamsHeartbeat,
    StreamsInvalidTopologyError,
    Subtopology,
    Topology,
)

JOIN = StreamsHeartbeat(
    "m",
    0,
    rebalance_timeout=5.0,
    topology=Topology(1, [Subtopology("0", ["a"])]),
    active={},
    standby={},
    warmup={},
)


def test_heartbeats_that_are_taken():
    check_heartbeat("g", JOIN)
    check_heartbeat("g", StreamsHeartbeat("m", 3))
    check_heartbeat("g", StreamsHeartbeat("m", -1))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"member_id": ""}, "MemberId can't be empty"),
        ({"rack": " "}, "RackId can't be empty"),
        ({"instance_id": "i"}, "Static membership is not yet supported"),
        ({"offsets": "TaskOffsets"}, "TaskOffsets are not supported yet"),
        ({"warmup": {"0": [1]}}, "WarmupTasks are not supported yet"),
        ({"rebalance_timeout": None}, "RebalanceTimeoutMs must be provided"),
        ({"active": {"0": [0]}}, "ActiveTasks must be empty"),
        ({"topology": None}, "Topology must be non-null"),
        ({"member_epoch": -3}, "greater than or equal to -2"),
        ({"member_epoch": -2}, "InstanceId can't be null"),
        ({"member_epoch": 2}, "Topology can only be provided"),
        ({"member_epoch": 2, "active": None, "topology": None}, "all must be non-null"),
        ({"process_id": "p" * 2000}, "characters at most"),
        ({"active": {"0": range(30_000)}, "member_epoch": 1}, "tasks at most"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_heartbeat_is_refused(changed, words):
    with pytest.raises(InvalidRequestError, match=words):
        check_heartbeat("g", JOIN._replace(**changed))


def test_a_group_has_a_name():
    with pytest.raises(InvalidRequestError, match="GroupId"):
        check_heartbeat(" ", JOIN)


def test_names_that_are_no_topics_are_said_before_everything_else():
    topology = Topology(1, [Subtopology("0", ["__consumer_offsets"])])
    with pytest.raises(StreamsInvalidTopologyError, match="prohibited"):
        check_heartbeat("", JOIN._replace(member_id="", instance_id="i", topology=topology))
