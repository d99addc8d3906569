"""Partitions of members."""

from __future__ import annotations

from uuid import UUID

from dafka.broker.groups.modern.assignment import Spec, Subscriber, both, size, without_nothing

A, B = UUID(int=1), UUID(int=2)


def test_the_size_is_the_number_of_partitions():
    assert size({A: frozenset({0, 1}), B: frozenset({5})}) == 3


def test_a_topic_without_partitions_is_left_out():
    assert without_nothing({A: frozenset(), B: frozenset({1})}) == {B: {1}}


def test_both_has_the_partitions_of_two_assignments():
    one, other = {A: frozenset({0})}, {A: frozenset({1}), B: frozenset({2})}
    assert both(one, other) == {A: {0, 1}, B: {2}}
    assert both(one, {}) is one and both({}, other) is other
    assert one == {A: {0}}


def test_a_group_is_homogeneous_whose_members_read_the_same_topics():
    def spec(*topics):
        members = [Subscriber(str(number), None, frozenset(some), {}) for number, some in enumerate(topics)]
        return Spec(1, members, {A: 1, B: 1})

    assert spec().is_homogeneous
    assert spec({A, B}, {B, A}).is_homogeneous
    assert not spec({A, B}, {A}).is_homogeneous
