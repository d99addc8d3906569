"""Classic groups go on after a restart with the members that were kept, whose sessions begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dafka.broker.groups.generation import State
from dafka.broker.groups.group import Group
from dafka.broker.groups.kept_rows import SavedClassic, SavedGeneration
from dafka.broker.groups.members import Member


def restoring(
    now: float, group: Group, whole: SavedGeneration, members: Sequence[SavedClassic]
) -> Iterator[None]:
    """Take over what was kept of a group; the caller may pause after each member.

    If members are missing, because they were in the broker's own process, the others join again.
    """
    for saved in members:
        member = Member(saved.member_id, saved.request, now)
        member.assignment = saved.assignment
        group.members.add(member)
        group.wake_at = min(group.wake_at, member.expires)
        yield
    if not group.members:
        return
    group.generation = whole.generation
    group.protocol_type, group.protocol = whole.protocol_type, whole.protocol
    group.members.leader = whole.leader
    group.state = State.STABLE
    if not whole.settled or len(group.members) != whole.members or whole.protocol is None:
        group.begin_again(now)
