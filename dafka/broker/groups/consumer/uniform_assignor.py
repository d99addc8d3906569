"""The assignor "uniform": all members have as many partitions, and keep what they had.

If all members read the same topics, their shares differ by one partition at most, and no partition moves that
need not for that. If they do not, a partition that nobody has goes to the one of its topic's readers who has
the fewest, and then partitions move from readers who have two more than another one of the same topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from uuid import UUID

from dafka.broker.groups.modern.assignment import Assignment, Spec, Target, size

ROUNDS = 20  # through all topics, in which partitions move between readers of different topics

_Shares = dict[str, dict[UUID, set[int]]]


def assign_uniform(spec: Spec) -> Target:
    """The target of each member."""
    if not spec.members:
        return {}
    return _homogeneous(spec) if spec.is_homogeneous else _heterogeneous(spec)


def _homogeneous(spec: Spec) -> Target:
    topics = spec.members[0].topics
    each, more = divmod(sum(spec.partitions[topic] for topic in topics), len(spec.members))
    target: Target = {}
    free: dict[UUID, set[int]] = {topic: set(range(spec.partitions[topic])) for topic in sorted(topics)}
    wanting: list[tuple[str, int]] = []  # members with fewer than each, and how many they lack
    even: list[str] = []  # members with exactly as many, which may get one more
    for member in spec.members:
        kept = _of_topics(member.target, topics)
        count = size(kept)
        most = each + (more > 0)
        if count > most:
            kept, count = _first(kept, most), most
        if count > each:
            more -= 1
        elif count == each:
            even.append(member.member_id)
        else:
            wanting.append((member.member_id, each - count))
        for topic, numbers in kept.items():
            free[topic] -= numbers
        target[member.member_id] = kept
    left = [(topic, number) for topic, numbers in free.items() for number in sorted(numbers)]
    left.reverse()
    for member_id, lacks in wanting:
        take = lacks + (more > 0)
        more -= more > 0
        _give(target, member_id, left, take)
    for member_id in even:
        if not more:
            break
        more -= 1
        _give(target, member_id, left, 1)
    return target


def _of_topics(share: Assignment, topics: frozenset[UUID]) -> Assignment:
    if share.keys() <= topics:
        return share
    return {topic: numbers for topic, numbers in share.items() if topic in topics}


def _first(share: Assignment, count: int) -> Assignment:
    """As many partitions of a share, of all of its topics."""
    ordered = sorted((number, topic) for topic, numbers in share.items() for number in numbers)
    return _grouped((topic, number) for number, topic in ordered[:count])


def _give(target: Target, member_id: str, left: list[tuple[UUID, int]], count: int) -> None:
    """Move so many of the partitions that are left into the share of a member."""
    if not count:
        return
    given = _grouped(left[-count:])
    del left[-count:]
    share = target[member_id]
    target[member_id] = {
        **share,
        **{topic: numbers | share[topic] if topic in share else numbers for topic, numbers in given.items()},
    }


def _grouped(partitions: Iterable[tuple[UUID, int]]) -> dict[UUID, frozenset[int]]:
    found: dict[UUID, set[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, set()).add(number)
    whole: dict[frozenset[int], frozenset[int]] = {}  # equal ones are one object: there may be very many
    numbered = ((topic, frozenset(numbers)) for topic, numbers in found.items())
    return {topic: whole.setdefault(numbers, numbers) for topic, numbers in numbered}


# -- members with different subscriptions --------------------------------------------------------------


def _heterogeneous(spec: Spec) -> Target:
    readers: dict[UUID, list[str]] = {topic: [] for topic in spec.partitions}
    shares: _Shares = {}
    free: dict[UUID, set[int]] = {topic: set(range(count)) for topic, count in spec.partitions.items()}
    for member in spec.members:
        shares[member.member_id] = share = {}
        for topic in member.topics:
            readers[topic].append(member.member_id)
        for topic, numbers in _of_topics(member.target, member.topics).items():
            share[topic] = set(numbers)
            free[topic] -= numbers
    loads = {member_id: sum(map(len, share.values())) for member_id, share in shares.items()}
    topics = sorted((topic for topic in readers if readers[topic]), key=lambda one: (len(readers[one]), one))
    for topic in topics:
        _share_out(topic, free[topic], readers[topic], shares, loads)
    for _ in range(ROUNDS):
        moved = [_even_out(topic, readers[topic], shares, loads) for topic in topics]
        if not any(moved):
            break
    return {
        member_id: {topic: frozenset(numbers) for topic, numbers in share.items() if numbers}
        for member_id, share in shares.items()
    }


def _share_out(
    topic: UUID, free: set[int], readers: list[str], shares: _Shares, loads: dict[str, int]
) -> None:
    """Give the partitions that nobody has to the readers with the fewest."""
    if not free:
        return
    fewest = [(loads[member_id], member_id) for member_id in readers]
    heapify(fewest)
    for number in sorted(free):
        load, member_id = heappop(fewest)
        shares[member_id].setdefault(topic, set()).add(number)
        loads[member_id] = load + 1
        heappush(fewest, (load + 1, member_id))


def _even_out(topic: UUID, readers: list[str], shares: _Shares, loads: dict[str, int]) -> bool:
    """Move partitions of a topic to readers with two fewer; whether any was moved."""
    givers = [(-loads[one], one) for one in readers if shares[one].get(topic)]
    takers = [(loads[one], one) for one in readers]
    heapify(givers)
    heapify(takers)
    moved = False
    while givers:
        most, giver = heappop(givers)
        if -most != loads[giver]:
            heappush(givers, (-loads[giver], giver))
            continue
        while takers[0][0] != loads[takers[0][1]]:
            _, stale = heappop(takers)
            heappush(takers, (loads[stale], stale))
        fewest, taker = takers[0]
        if loads[giver] - fewest < 2:
            break
        numbers = shares[giver][topic]
        number = max(numbers)
        numbers.discard(number)
        shares[taker].setdefault(topic, set()).add(number)
        loads[giver] -= 1
        loads[taker] += 1
        moved = True
        if numbers:
            heappush(givers, (-loads[giver], giver))
    return moved
