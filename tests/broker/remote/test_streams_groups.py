"""Groups of Kafka Streams of another process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from broker.clients import Client
from broker.groups.streams.test_coordinator import COUNT, join
from kafka.errors import GroupIdNotFoundError

from dafka import Broker
from dafka.broker.interface.streams_groups import StreamsHeartbeat


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(listen="127.0.0.1:0") as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Client:
    client = Client(broker)
    client.create("t", 2)
    return client


@pytest.fixture
def remote(broker: Broker, remote_to: Any) -> Any:
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    return remote_to([(host, int(port))])


def test_a_group_is_described_and_a_member_taken_out(client, remote):
    join(client, "x", tags={"a": "b"})
    there = remote.describe_streams_groups(["g"])["g"]
    here = client.call("describe_streams_groups", ["g"])["g"]
    assert (there.state, there.epoch, len(there.members)) == (here.state, here.epoch, 1)
    assert there.members[0].target == here.members[0].target and there.members[0].tags == {"a": "b"}
    assert there.topology.subtopologies[0].changelogs[0].partitions == 2
    assert remote.describe_streams_groups(["none"])["none"].error is GroupIdNotFoundError
    assert remote.streams_group_heartbeat("g", StreamsHeartbeat("x", -1)).error is None
    assert client.call("describe_streams_groups", ["g"])["g"].state == "Empty"


def test_members_are_not_of_this_process(remote):
    with pytest.raises(NotImplementedError):
        remote.streams_group_heartbeat("g", StreamsHeartbeat("x", 0, topology=COUNT))
