"""The line of fetches that wait for a share partition: what is offered to whom."""

from __future__ import annotations

from broker.clients import Client
from broker.share.member import Member, acquired

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.share.delivery import Delivery
from dafka.hub.hub import get_hub

GROUP = "queue"


class Waiting:
    """A fetch that waits."""

    min_bytes = 1
    offers = 0

    def offered(self, delivery: Delivery) -> None:
        self.offers += 1


def test_records_that_a_fetch_takes_are_not_offered_to_the_next_one_in_the_line() -> None:
    waiting = Waiting()
    with Broker() as broker:
        client = Client(broker)
        resource = Resource(ResourceType.GROUP, GROUP)
        client.call("alter_configs", {resource: [ConfigChange("share.auto.offset.reset", 0, "earliest")]})
        client.create("jobs")
        member = Member(client.call, GROUP, "jobs")
        assert member.heartbeat().error is None
        assert not acquired(member.fetch())
        (delivery,) = client.core._share_calls._deliveries.of_group(GROUP)
        client.produce("jobs", b"a")
        get_hub().run(delivery.stand, waiting)
        assert acquired(member.fetch()) == [(0, 0, 1)]
        assert waiting.offers == 0
        client.produce("jobs", b"b")
        assert waiting.offers == 1
