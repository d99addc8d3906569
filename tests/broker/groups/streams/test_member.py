"""What a member says of itself."""

from __future__ import annotations

from math import inf

from dafka.broker.groups.streams.member import Member
from dafka.broker.groups.streams.tasks import Roles
from dafka.broker.interface.streams_groups import Endpoint, StreamsHeartbeat


def test_only_what_is_new_counts_as_a_change():
    member = Member("m")
    said = StreamsHeartbeat(
        "m", 0, rack="r", process_id="p", endpoint=Endpoint("h", 1), tags={"a": "b"}, rebalance_timeout=5.0
    )
    assert member.update(said) and not member.update(said)
    assert not member.update(StreamsHeartbeat("m", 1))
    assert (member.rack, member.process_id, member.tags) == ("r", "p", {"a": "b"})


def test_it_is_removed_at_the_first_of_its_deadlines():
    member = Member("m")
    assert member.deadline == inf
    member.expires, member.revoke_by = 5.0, 3.0
    assert member.deadline == 3.0


def test_it_knows_since_when_it_has_a_task():
    member = Member("m")
    member.epoch = 3
    task = Roles({"s": frozenset({0})})
    member.take(task)
    assert member.since == {"s": {3: frozenset({0})}}
    member.lose(task)
    assert member.since == {}
