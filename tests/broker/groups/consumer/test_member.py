"""A member of a consumer group."""

from __future__ import annotations

from dafka.broker.groups.consumer.member import Member


def test_it_is_removed_when_its_session_or_the_time_for_giving_up_partitions_is_over():
    member = Member("m")
    member.expires, member.revoke_by = 5.0, 3.0
    assert member.deadline == 3.0
    member.revoke_by = 7.0
    assert member.deadline == 5.0
