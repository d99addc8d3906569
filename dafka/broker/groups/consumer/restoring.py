"""Consumer groups go on after a restart with the members that were kept, whose sessions begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from kafka.errors import InvalidRequestError

from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.kept import SavedGroup, SavedMember
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.consumer.owned import Owned
from dafka.broker.groups.modern.assignment import size


def restoring(
    now: float, group: ConsumerGroup, session: float, whole: SavedGroup, members: Sequence[SavedMember]
) -> Iterator[None]:
    """Take over what was kept of a group, in steps; the caller may pause after each of them."""
    group.expressions.restore(whole.resolved)
    prepared = []
    for topics in set(whole.resolved.values()):
        pieces = group.preparing(topics)
        if next(pieces, False):
            for _ in pieces:
                yield
            prepared.append(topics)
    for saved in members:
        member = Member.restored(saved)
        with suppress(InvalidRequestError):  # too many topics: it goes on with what it has
            group.adopt(member)
        yield
        group.give(member, saved.assigned, saved.revoking, saved.target)
        member.since = saved.since
        member.lacks = member.epoch == whole.assignment_epoch and saved.target is not None
        if member.revoking and member.classic is None:
            member.revoke_by = now + member.rebalance_timeout
        group.touch(now, member, session if member.classic is None else member.classic.session_timeout)
        group.wake_at = min(group.wake_at, member.deadline)
        yield
    for topics in prepared:
        group.prepared(topics)
    # Everything is somebody's, and nobody is to read what is not to be read any more.
    partitions, owned = group.partitions(), Owned()
    targets = [group.target_of(member) for member in group.members.values()]
    left, is_known = sum(partitions.values()), True
    for target in targets:
        yield
        is_known = is_known and partitions.keys() >= target.keys()
        yield
        left -= size(owned.take(target))
    group.begin_again(whole.members, whole.assignment_epoch, is_known and not left)
