"""Share groups whose feature is switched off, and on again."""

from __future__ import annotations

from collections.abc import Iterator

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.share.member import ACCEPT, Member, acquired

from dafka import Broker
from dafka.broker.interface.features import FeatureUpdate, UpgradeType


def switch(client: Client, level: int) -> None:
    kind = UpgradeType.UPGRADE if level else UpgradeType.SAFE_DOWNGRADE
    assert client.call("update_features", {"share.version": FeatureUpdate(level, kind)}).error is None


@pytest.fixture
def client() -> Iterator[Client]:
    with Broker() as broker:
        client = Client(broker)
        client.create("jobs", 2)
        yield client


def test_sessions_end_and_locks_are_forgotten(client: Client) -> None:
    member = Member(client.call, "queue", "jobs")
    assert member.heartbeat().error is None
    assert acquired(member.fetch()) == []
    client.produce("jobs", b"a", b"b")
    assert acquired(member.fetch()) == [(0, 1, 1)]
    switch(client, 1)  # nothing new
    assert acquired(member.fetch((0, 0, ACCEPT))) == []
    switch(client, 0)
    assert member.fetch().error is errors.UnsupportedVersionError
    switch(client, 1)
    assert member.fetch().error is errors.ShareSessionNotFoundError
    member.session = 0
    assert member.heartbeat().error is None
    assert acquired(member.fetch()) == [(1, 1, 1)]
