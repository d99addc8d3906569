"""One ShareFetch of many share partitions."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from broker.share.member import Member, acquired

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.share.delivery import Delivery
from dafka.broker.share.fetching import ShareFetch

GROUP = "queue"


def test_fetches_of_many_partitions_take_from_those_with_records_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A session has hundreds, and every record wakes its fetch."""
    looks: list[int] = []
    take = ShareFetch._take_from

    def counted(fetch: ShareFetch, delivery: Delivery, *args: Any) -> Any:
        looks.append(delivery.partition.number)
        return take(fetch, delivery, *args)

    with Broker() as broker:
        client = Client(broker)
        resource = Resource(ResourceType.GROUP, GROUP)
        client.call("alter_configs", {resource: [ConfigChange("share.auto.offset.reset", 0, "earliest")]})
        client.create("jobs", 50)
        member = Member(client.call, GROUP, "jobs")
        assert member.heartbeat().error is None
        assert len(member.fetch().partitions) == 50
        client.produce("jobs", b"a", partition=7)
        monkeypatch.setattr(ShareFetch, "_take_from", counted)
        assert acquired(member.fetch()) == [(0, 0, 1)]
    assert looks == [7]
