"""In which states the records of a share group are."""

from __future__ import annotations

import kafka.errors as errors_
import pytest
from broker.clients import Client, batch
from broker.share.member import ACCEPT, REJECT, RELEASE, Member

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.share import ShareStanding
from dafka.broker.remote.remote import Remote
from dafka.hub.hub import get_hub

GROUP = "queue"


@pytest.fixture
def broker(tmp_path):
    with Broker(str(tmp_path / "data"), listen="127.0.0.1:0") as broker:
        call = Client(broker).call
        resource = Resource(ResourceType.GROUP, GROUP)
        change = ConfigChange("share.auto.offset.reset", 0, "earliest")
        assert call("alter_configs", {resource: [change]})[resource].error is None
        call("create_topics", {"jobs": TopicSpec(2)})
        yield broker


def standings(call):
    found = call("share_standings", GROUP)
    assert found.error is None
    return found.partitions


def test_records_are_counted_by_state_delivery_and_member(broker):
    call = Client(broker).call
    member = Member(call, GROUP, "jobs")
    member.heartbeat()
    assert call("produce", {("jobs", 0): [batch(*[b"x"] * 10)]})["jobs", 0].error is None
    member.fetch()
    held = {member.member_id: 10}
    assert standings(call)["jobs", 0] == ShareStanding(None, 0, 10, 0, 0, 10, 0, 0, {1: 10}, held)
    member.acknowledge((0, 0, RELEASE), (1, 3, ACCEPT), (4, 5, REJECT), (6, 7, RELEASE))
    assert call("produce", {("jobs", 0): [batch(b"y", b"z")]})["jobs", 0].error is None
    assert standings(call)["jobs", 0] == ShareStanding(
        None, 0, 10, 2, 3, 2, 3, 2, {1: 5}, {member.member_id: 2}
    )
    member.acknowledge(epoch=-1)
    assert standings(call)["jobs", 0]._replace(deliveries={}) == ShareStanding(None, 0, 10, 2, 5, 0, 3, 2)


def test_stored_progress_is_counted_after_a_restart(broker):
    call = Client(broker).call
    member = Member(call, GROUP, "jobs")
    member.heartbeat()
    call("produce", {("jobs", 0): [batch(*[b"x"] * 4)]})
    member.fetch()
    member.acknowledge((0, 0, RELEASE), (1, 1, ACCEPT))
    broker.stop()
    broker.start()
    found = standings(Client(broker).call)["jobs", 0]
    assert (found.start, found.acknowledged, found.acquired, found.holders) == (0, 1, 0, {})
    assert found.available + found.ahead == 3


def test_the_start_that_tools_see_stays_when_the_last_member_goes_and_after_a_restart(broker):
    """As in Kafka: it is where the last acknowledgement has found it."""
    call = Client(broker).call
    member = Member(call, GROUP, "jobs")
    member.heartbeat()
    call("produce", {("jobs", 0): [batch(*[b"x"] * 10)]})
    member.fetch()
    member.acknowledge((0, 3, ACCEPT))
    member.acknowledge((4, 9, REJECT))

    def told(call):
        found = call("share_offsets", GROUP).partitions["jobs", 0]
        return found.start, found.lag, standings(call)["jobs", 0].start

    assert told(call) == (4, 0, 10)
    member.acknowledge(epoch=-1)
    member.heartbeat(epoch=-1)
    assert call("describe_share_groups", [GROUP])[GROUP].state == "Empty"
    assert told(call) == (4, 0, 10)
    broker.stop()
    broker.start()
    call = Client(broker).call
    assert told(call) == (4, 0, 10)
    member = Member(call, GROUP, "jobs")
    member.heartbeat()
    assert member.fetch().error is None
    assert told(call) == (4, 0, 10)


def test_other_groups_have_none(broker):
    call = Client(broker).call
    assert call("share_standings", "nobody").error is errors_.GroupIdNotFoundError


def test_another_process_learns_what_was_stored(broker):
    call = Client(broker).call
    hub = get_hub()
    host, _, port = broker.bootstrap_servers.rpartition(":")
    remote = hub.run(Remote, hub, [(host, int(port))])
    try:
        member = Member(call, GROUP, "jobs")
        member.heartbeat()
        call("produce", {("jobs", 0): [batch(*[b"x"] * 10)]})
        member.fetch()
        member.acknowledge((1, 3, ACCEPT), (4, 5, REJECT), (6, 7, RELEASE))
        found = hub.run(remote.share_standings, GROUP)
        assert found.error is None
        one = found.partitions["jobs", 0]
        assert (one.start, one.acknowledged, one.archived, one.available) == (0, 3, 2, 2)
        assert (one.acquired, one.ahead, one.holders, one.deliveries) == (None, None, {}, {1: 2})
        assert hub.run(remote.share_standings, "nobody").partitions == {}
    finally:
        hub.run(remote.close)
