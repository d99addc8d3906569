"""The assignor "uniform": balanced, sticky, and only what a member subscribes to."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest

from dafka.broker.groups.consumer.uniform_assignor import assign_uniform
from dafka.broker.groups.modern.assignment import Spec, Subscriber, size

TOPICS = [UUID(int=number) for number in range(8)]
A, B = TOPICS[:2]


def spec(members, partitions, target=None):
    """``members``: topics by member id."""
    target = target or {}
    return Spec(
        1,
        [Subscriber(name, None, frozenset(topics), target.get(name, {})) for name, topics in members.items()],
        partitions,
    )


def check(members, partitions, target):
    """Every partition that anybody may read is one subscriber's."""
    assert target.keys() == members.keys()
    seen = [
        (topic, number) for share in target.values() for topic, numbers in share.items() for number in numbers
    ]
    read = set().union(*members.values())
    assert sorted(seen) == sorted((topic, number) for topic in read for number in range(partitions[topic]))
    assert all(share.keys() <= set(members[name]) and all(share.values()) for name, share in target.items())


def moved(before, after):
    """Partitions that a member had and has no more."""
    return sum(
        len(numbers - after.get(name, {}).get(topic, frozenset()))
        for name, share in before.items()
        for topic, numbers in share.items()
    )


def test_nobody_gets_nothing():
    assert assign_uniform(spec({}, {A: 3})) == {}


def test_shares_differ_by_one_at_most():
    members = {name: [A, B] for name in "xyz"}
    target = assign_uniform(spec(members, {A: 4, B: 3}))
    check(members, {A: 4, B: 3}, target)
    assert sorted(map(size, target.values())) == [2, 2, 3]


def test_a_new_member_takes_its_part_and_nothing_else_moves():
    two = {"x": [A], "y": [A]}
    before = assign_uniform(spec(two, {A: 6}))
    three = {**two, "z": [A]}
    after = assign_uniform(spec(three, {A: 6}, before))
    check(three, {A: 6}, after)
    assert moved(before, after) == 2 and size(after["z"]) == 2


def test_partitions_of_a_member_that_left_are_shared_out():
    before = assign_uniform(spec({name: [A] for name in "xyz"}, {A: 6}))
    rest = {"x": [A], "y": [A]}
    after = assign_uniform(spec(rest, {A: 6}, before))
    check(rest, {A: 6}, after)
    assert moved({name: before[name] for name in rest}, after) == 0


def test_members_with_nothing_else_to_read_get_more_of_what_they_share():
    members = {"both": [A, B], "only": [A]}
    target = assign_uniform(spec(members, {A: 4, B: 4}))
    check(members, {A: 4, B: 4}, target)
    assert target == {"both": {B: {0, 1, 2, 3}}, "only": {A: {0, 1, 2, 3}}}


@pytest.mark.parametrize("seed", range(40))
def test_in_random_groups_each_partition_has_a_subscriber_and_nothing_moves_without_need(seed):
    random = Random(seed)
    partitions = {topic: random.randint(1, 9) for topic in TOPICS}
    same = random.random() < 0.4
    every = sorted(random.sample(TOPICS, random.randint(1, 8)))

    def some():
        return every if same else sorted(random.sample(TOPICS, random.randint(1, 8)))

    members = {f"m{number}": some() for number in range(random.randint(1, 9))}
    target: dict = {}
    for round in range(8):
        target = assign_uniform(spec(members, partitions, target))
        check(members, partitions, target)
        again = assign_uniform(spec(members, partitions, target))
        assert moved(target, again) == 0
        if same:
            sizes = sorted(map(size, target.values()))
            assert sizes[-1] - sizes[0] <= 1
        if random.random() < 0.5 or len(members) == 1:
            members[f"n{round}"] = some()
        else:
            target.pop(random.choice(sorted(members)), None)
            members = {name: members[name] for name in members if name in target}
        grown = random.choice(TOPICS)
        partitions[grown] += 1
