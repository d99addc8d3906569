"""Other members of a group: the members that they disturb, and that nothing of them is left."""

from __future__ import annotations

import pytest

from compat.kafka import KafkaConsumer
from dafka.testing import Fault, TestBroker, chaos, wait_until
from dafka.testing.torture.others import VISITOR, disturbance, groups_of


def consumer(broker, group, topic="t"):
    return KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=50,
    )


def joined(*consumers):
    wait_until(lambda: all(one.poll(20) or one.assignment() for one in consumers))


def test_only_the_groups_that_read_a_partition():
    with TestBroker() as broker:
        broker.preload("t", [b"a"])
        broker.preload("u", [b"a"])
        consumers = consumer(broker, "g"), consumer(broker, "h"), consumer(broker, "other", "u")
        joined(*consumers)
        assert sorted(broker._within(lambda one: groups_of(one, ("t", 0)))) == ["g", "h"]
        for one in consumers:
            one.close()


def test_nobody_is_disturbed_in_an_empty_group_or_by_a_stranger():
    with TestBroker() as broker:
        broker.preload("t", [b"a"])
        one = consumer(broker, "g")
        joined(one)
        for kind in ("evict", "rebalance"):
            assert (
                broker._within(lambda core, kind=kind: disturbance(core, kind, "none", partition=("t", 0)))
                is None
            )
            assert (
                broker._within(lambda core, kind=kind: disturbance(core, kind, "g", partition=("t", 1)))
                is None
            )
            assert broker._within(lambda core, kind=kind: disturbance(core, kind, "g", member_id="x")) is None
        one.close()


@pytest.mark.parametrize("kind", ["rebalance", "slow_member"])
def test_a_visitor_makes_the_group_rebalance_and_is_gone(kind):
    with chaos.plan([Fault("commit g", 1, kind)]) as broker:
        broker.preload("t", [b"a"])
        one = consumer(broker, "g")
        joined(one)

        def joins():
            return sum(call.operation == "join" for call in broker.history)

        before = joins()
        one.commit()
        wait_until(lambda: one.poll(20) or joins() > before)

        def alone():
            polled, members = one.poll(20), broker.members("g")
            owned = [len(member.partitions) for member in members if member.client_id != VISITOR]
            return polled == {} and owned == [1] and len(members) == 1

        wait_until(lambda: alone() and broker.group_state("g") == "Stable")
        one.close()
