"""The assignor "range": consecutive partitions, the same ones of topics alike, static members first."""

from __future__ import annotations

from uuid import UUID

from dafka.broker.groups.consumer.range_assignor import assign_range
from dafka.broker.groups.modern.assignment import Spec, Subscriber

A, B, C = (UUID(int=number) for number in range(3))


def subscriber(name, *topics, instance=None):
    return Subscriber(name, instance, frozenset(topics), {})


def shares(partitions, *members):
    target = assign_range(Spec(1, members, partitions))
    return {
        name: {topic: sorted(numbers) for topic, numbers in share.items()} for name, share in target.items()
    }


def test_a_member_has_a_range_of_each_topic_and_the_first_ones_have_one_more():
    assert shares({A: 5, B: 2}, subscriber("x", A, B), subscriber("y", A, B), subscriber("z", A, B)) == {
        "x": {A: [0, 1], B: [0]},
        "y": {A: [2, 3], B: [1]},
        "z": {A: [4]},
    }


def test_topics_alike_are_divided_alike():
    found = shares({A: 4, B: 4}, subscriber("x", A, B), subscriber("y", A, B))
    assert all(share[A] == share[B] for share in found.values())


def test_a_topic_is_shared_by_its_subscribers_only():
    assert shares({A: 3, B: 2, C: 1}, subscriber("x", A), subscriber("y", A, B)) == {
        "x": {A: [0, 1]},
        "y": {A: [2], B: [0, 1]},
    }


def test_static_members_come_first_whatever_their_member_ids_are():
    for name in ("a", "z"):
        found = shares({A: 2}, subscriber("m", A), subscriber(name, A, instance="i"))
        assert found == {name: {A: [0]}, "m": {A: [1]}}
