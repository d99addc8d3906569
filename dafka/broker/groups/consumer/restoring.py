"""Consumer groups go on after a restart with the members that were kept, whose sessions begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from uuid import UUID

from kafka.errors import InvalidRequestError

from dafka.broker import limits
from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.kept import SavedGroup, SavedMember
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.consumer.owned import Owned
from dafka.broker.groups.modern.assignment import size
from dafka.hub.turns import in_pieces


def restoring(
    now: float, group: ConsumerGroup, session: float, whole: SavedGroup, members: Sequence[SavedMember]
) -> Iterator[None]:
    """Take over what was kept of a group, in steps; the caller may pause after each of them."""
    group.expressions.restore(whole.resolved)
    prepared: list[frozenset[str]] = []
    for topics in {*whole.resolved.values(), *(saved.names for saved in members)}:
        yield
        pieces = group.preparing(topics)
        if next(pieces, False):
            yield
            for _ in pieces:
                yield
            prepared.append(topics)
    for saved in members:
        member = Member.restored(saved)
        with suppress(InvalidRequestError):  # too many topics: it goes on with what it has
            group.adopt(member)
        yield
        yield from group.giving(member, saved.assigned, saved.revoking, saved.target)
        member.since = saved.since
        member.lacks = member.epoch == whole.assignment_epoch and saved.target is not None
        if member.revoking and member.classic is None:
            member.revoke_by = now + member.rebalance_timeout
        group.touch(now, member, session if member.classic is None else member.classic.session_timeout)
        group.wake_at = min(group.wake_at, member.deadline)
        yield
    for topics in prepared:
        group.prepared(topics)
    # Everything is somebody's, and nobody is to read what is not to be read any more, or not by that member:
    # one may have had another expression that was yet to be resolved.
    owned, is_known = Owned(), True
    names: dict[UUID, str] = {}
    left = 0
    for some in in_pieces(group.known(), limits.TOPICS_AT_ONCE):
        names.update((topic.topic_id, name) for name, topic in some)
        left += sum(topic.partitions for _, topic in some)
        yield
    for member in list(group.members.values()):
        topics = member.topics
        for piece in in_pieces(group.target_of(member).items(), limits.TOPICS_AT_ONCE):
            wanted = dict(piece)
            is_known = is_known and all(names.get(one) in topics for one in wanted)
            left -= size(owned.take(wanted))
            yield
    group.begin_again(whole.members, whole.assignment_epoch, is_known and not left)
