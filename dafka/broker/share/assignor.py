"""The simple assignor of share groups: every partition has a member, and every member a partition.

Members may share a partition. A member that has one keeps it as far as the shares stay even: that saves
members from opening other partitions, while records need not stay with anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from uuid import UUID

from dafka.broker.groups.modern.assignment import Spec, Subscriber, Target

Place = tuple[UUID, int]


def assign(spec: Spec) -> Target:
    """A target for each member of the group."""
    shares: dict[str, set[Place]] = {member.member_id: set() for member in spec.members}
    if spec.is_homogeneous:
        topics = spec.members[0].topics if spec.members else frozenset()
        _share_out(spec.members, _places(topics, spec.partitions), shares)
    else:
        for topic, count in spec.partitions.items():
            readers = [member for member in spec.members if topic in member.topics]
            _share_out(readers, [(topic, number) for number in range(count)], shares)
    return {member_id: _by_topic(places) for member_id, places in shares.items()}


def _places(topics: frozenset[UUID], partitions: Mapping[UUID, int]) -> list[Place]:
    return [(topic, number) for topic in sorted(topics) for number in range(partitions.get(topic, 0))]


def _share_out(members: Sequence[Subscriber], places: Sequence[Place], shares: dict[str, set[Place]]) -> None:
    """Give these members these partitions."""
    if not members or not places:
        return
    sharing = -(-len(members) // len(places))  # members of a partition, at most
    most = -(-sharing * len(places) // len(members))  # partitions of a member, at most
    used = dict.fromkeys(places, 0)
    had: dict[str, int] = {}
    for member in members:
        had[member.member_id] = 0
        for topic, numbers in member.target.items():
            for number in sorted(numbers):
                place = (topic, number)
                if had[member.member_id] < most and used.get(place, sharing) < sharing:
                    shares[member.member_id].add(place)
                    had[member.member_id] += 1
                    used[place] += 1
    idle = [member_id for member_id, count in had.items() if not count]
    free = [(count, position) for position, count in enumerate(used.values())]
    heapify(free)
    order = list(used)
    for member_id in idle:
        count, position = heappop(free)
        shares[member_id].add(order[position])
        had[member_id] += 1
        used[order[position]] += 1
        heappush(free, (count + 1, position))
    loads = [(count, position) for position, count in enumerate(had.values())]
    heapify(loads)
    names = list(had)
    for place, count in used.items():
        if not count:
            load, position = heappop(loads)
            shares[names[position]].add(place)
            heappush(loads, (load + 1, position))


def _by_topic(places: set[Place]) -> dict[UUID, frozenset[int]]:
    found: dict[UUID, set[int]] = {}
    for topic, number in places:
        found.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in found.items()}
