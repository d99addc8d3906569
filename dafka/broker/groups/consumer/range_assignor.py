"""The assignor "range": of each topic a member has consecutive partitions.

Topics with as many partitions and the same subscribers are divided in the same way, so that a member has the
partitions of the same numbers in each of them (co-partitioning). Static members come first in the order, by
instance id, so that their shares do not change with their member ids.
"""

from __future__ import annotations

from uuid import UUID

from dafka.broker.groups.modern.assignment import Spec, Subscriber, Target


def assign_range(spec: Spec) -> Target:
    """The target of each member."""
    members = sorted(spec.members, key=_place)
    shares: dict[str, dict[UUID, frozenset[int]]] = {one.member_id: {} for one in members}
    readers: dict[UUID, list[str]] = {topic: [] for topic in spec.partitions}
    for member in members:
        for topic in member.topics:
            readers[topic].append(member.member_id)
    for topic, some in readers.items():
        if not some:
            continue
        each, more = divmod(spec.partitions[topic], len(some))
        begin = 0
        for place, member_id in enumerate(some):
            end = begin + each + (place < more)
            if begin == end:
                break
            shares[member_id][topic] = frozenset(range(begin, end))
            begin = end
    return dict(shares)


def _place(member: Subscriber) -> tuple[bool, str]:
    static = member.instance_id is not None
    return not static, member.instance_id if member.instance_id is not None else member.member_id
