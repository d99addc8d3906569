"""Streams groups go on after a restart with the members that were kept, whose sessions begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dafka.broker.groups.streams.group import StreamsGroup
from dafka.broker.groups.streams.kept_members import SavedGroup, SavedMember
from dafka.broker.groups.streams.member import Member
from dafka.broker.groups.streams.tasks import NOTHING


def restoring(
    now: float, group: StreamsGroup, session: float, whole: SavedGroup, members: Sequence[SavedMember]
) -> Iterator[None]:
    """Take over what was kept of a group that has its topology; the caller may pause after each member."""
    if group.topology is None:
        return  # it was not kept: members join again, and bring it
    for saved in members:
        member = Member.restored(saved)
        group.adopt(member, saved.assigned, saved.revoking, saved.target)
        member.since = saved.since
        member.lacks = member.epoch == whole.assignment_epoch and saved.target is not None
        if member.revoking != NOTHING:
            member.revoke_by = now + member.rebalance_timeout
        group.touch(now, member, session)
        group.wake_at = min(group.wake_at, member.deadline)
        yield
    group.begin_again(whole.members, whole.assignment_epoch, group.look_again(whole.standbys))
