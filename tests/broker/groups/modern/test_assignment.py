"""Partitions of members."""

from __future__ import annotations

from uuid import UUID

from dafka.broker.groups.modern import assignment
from dafka.broker.groups.modern.assignment import (
    NOTHING,
    Spec,
    Subscriber,
    both,
    compared,
    size,
    weight,
    without_nothing,
)

A, B, C, D = map(UUID, (f"{number:032x}" for number in range(4)))


def test_the_size_is_the_number_of_partitions():
    assert size({A: frozenset({0, 1}), B: frozenset({5})}) == 3


def test_the_weight_is_the_number_of_partitions_or_of_very_many_topics(monkeypatch):
    one = {A: frozenset({0, 1}), B: frozenset({5})}
    assert weight(one) == 3
    monkeypatch.setattr(assignment, "MANY_TOPICS", 1)
    assert weight(one) == 2


def test_a_topic_without_partitions_is_left_out():
    assert without_nothing({A: frozenset(), B: frozenset({1})}) == {B: {1}}


def test_both_has_the_partitions_of_two_assignments():
    one, other = {A: frozenset({0})}, {A: frozenset({1}), B: frozenset({2})}
    assert both(one, other) == {A: {0, 1}, B: {2}}
    assert both(one, {}) is one and both({}, other) is other
    assert one == {A: {0}}


def test_an_assignment_beside_its_target():
    had = {A: frozenset({0, 1}), B: frozenset({0, 1}), C: frozenset({5})}
    target = {A: frozenset({0, 1}), B: frozenset({1, 2}), D: frozenset({3})}
    kept, rest, missing = compared(had, target)
    assert kept == {A: {0, 1}, B: {1}}
    assert rest == {B: {0}, C: {5}}
    assert missing == {B: {2}, D: {3}}
    assert compared(had, had) == (had, {}, {})
    assert compared(NOTHING, target) == ({}, {}, target)
    assert compared(had, NOTHING) == ({}, had, {})
    assert compared({A: frozenset({0})}, {A: frozenset({1})}) == ({}, {A: {0}}, {A: {1}})


def test_a_group_is_homogeneous_whose_members_read_the_same_topics():
    def spec(*topics):
        members = [Subscriber(str(number), None, frozenset(some), {}) for number, some in enumerate(topics)]
        return Spec(1, members, {A: 1, B: 1})

    assert spec().is_homogeneous
    assert spec({A, B}, {B, A}).is_homogeneous
    assert not spec({A, B}, {A}).is_homogeneous
