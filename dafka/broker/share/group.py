"""A share group: its members and what each of them reads.

It stands on what the newer groups have in common (:mod:`dafka.broker.groups.modern.group`). Several members
may have the same partition, so nobody waits for anybody: a member gets its new assignment with its next
heartbeat, and has its epoch from then on. The target of a large group is computed elsewhere
(:mod:`dafka.broker.share.targets`), between :meth:`ShareGroup.receive` and :meth:`ShareGroup.answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from uuid import UUID

from kafka.errors import GroupIdNotFoundError, InvalidRequestError

from dafka.broker import limits
from dafka.broker.groups.modern.assignment import NOTHING, Assignment
from dafka.broker.groups.modern.member import JOIN_EPOCH, LEAVE_EPOCH, ModernMember
from dafka.broker.groups.modern.partitions import PartitionGroup
from dafka.broker.groups.modern.topics import Topics
from dafka.broker.interface.groups import IN_PROCESS, Error, GroupType, TopicPartition
from dafka.broker.interface.share import (
    ShareGroupDescription,
    ShareHeartbeat,
    ShareHeartbeatAnswer,
    ShareMember,
)
from dafka.broker.limits import GROUP_MAX_SIZE
from dafka.broker.share.assignor import assign
from dafka.broker.share.kept import SavedGroup, SavedMember
from dafka.broker.share.limits import ASSIGNED_AT_ONCE
from dafka.broker.topics.topic import KnownTopic
from dafka.hub.turns import in_pieces

ASSIGNOR = "simple"


class ShareGroupMember(ModernMember):
    """A member; ``told`` is the assignment that it was sent last."""

    told: Assignment = NOTHING

    def saved(self, target: Assignment | None) -> SavedMember:
        return SavedMember(
            self.member_id,
            self.epoch,
            self.previous_epoch,
            self.rack,
            self.client_id,
            self.client_host,
            self.topics,
            self.told,
            None if target is self.told else target,
        )


class ShareGroup(PartitionGroup[ShareGroupMember]):
    """The members of one share group; ``left`` is called with it and the id of each one that is gone."""

    type = GroupType.SHARE

    def __init__(
        self,
        now: float,
        topics: Topics,
        left: Callable[[ShareGroup, str], object],
        epoch: int = 0,
        name: str = "",
    ) -> None:
        super().__init__(now, topics, epoch, name)
        self._left = left
        self._begun: dict[str, KnownTopic] = {}  # what newly_read() has told, in the epoch _begun_at
        self._begun_at = -1

    @property
    def state_name(self) -> str:
        """Kafka's word for its state."""
        if self.dead:
            return "Dead"
        return "Stable" if self.members else "Empty"

    def is_reconciled(self, member: ShareGroupMember) -> bool:
        return member.epoch == self.assignment_epoch

    def check_commit(
        self,
        now: float,
        generation: int,
        member_id: str,
        instance_id: str | None,
        partitions: Iterable[TopicPartition],
    ) -> Error | None:
        """Share groups have no committed offsets: for these they are no groups."""
        return GroupIdNotFoundError

    def remove(self, now: float, member: ShareGroupMember) -> None:
        super().remove(now, member)
        if not self.members:
            self._begun_at, self._begun = -1, {}  # tools may delete what the group has of topics
        self._left(self, member.member_id)

    def receive(self, now: float, beat: ShareHeartbeat, session: float, most: int = GROUP_MAX_SIZE) -> None:
        """Take over what a heartbeat says, and compute the target of a small group.

        Raises exceptions of ``kafka.errors``.
        """
        if now >= self.wake_at:
            self.tick(now)
        if beat.member_epoch == LEAVE_EPOCH:
            self.remove(now, self.member(beat.member_id))
            return
        member = self._member_of(beat, most)
        changed = self.subscribe(member, beat.topics) if beat.topics is not None else False
        if beat.rack is not None:
            member.rack = beat.rack
        if self.topics_changed() or changed:
            self.raise_epoch()
        if self.is_target_due(now) and self._weight() <= ASSIGNED_AT_ONCE:
            self.install(self.epoch, self.draft().target(assign), now)
        self.touch(now, member, session)

    def _weight(self) -> int:
        return len(self.members) + self._subscriptions + sum(one.partitions for one in self._known.values())

    def newly_read(self) -> list[str]:
        """The topics that members read, and that are new, or have more partitions, since this was asked."""
        if self._begun_at == self.epoch:
            return []
        new = [name for name, one in self._known.items() if self._begun.get(name) != one]
        self._begun_at, self._begun = self.epoch, dict(self._known)
        return new

    def answer(self, beat: ShareHeartbeat, interval: float) -> ShareHeartbeatAnswer:
        """The answer to a heartbeat that was received. Raises UnknownMemberIdError if the member is gone."""
        if beat.member_epoch == LEAVE_EPOCH:
            return ShareHeartbeatAnswer(None, "", beat.member_id, LEAVE_EPOCH)
        member = self.member(beat.member_id)
        target = self.target_of(member)
        # With an older epoch it has not got its last answer; after an error, clients say all again.
        is_unsure = beat.member_epoch != member.epoch or beat.topics is not None
        told = target if is_unsure or beat.member_epoch == JOIN_EPOCH or target != member.told else None
        member.told = target
        member.advance(self.assignment_epoch)
        self.mark(member)
        return ShareHeartbeatAnswer(None, "", member.member_id, member.epoch, interval, told)

    def _previous(self, member: ShareGroupMember) -> str:
        return f", and it does not match the previous member epoch ({member.previous_epoch})"

    def _member_of(self, beat: ShareHeartbeat, most: int) -> ShareGroupMember:
        """The member of a heartbeat, new if it joins."""
        if beat.member_epoch != JOIN_EPOCH:
            member = self.member(beat.member_id)
            self.check_epoch(member, beat.member_epoch)
            return member
        self.check_size(beat.member_id, most)
        found = self.members.get(beat.member_id)
        if found is None:
            found = ShareGroupMember(beat.member_id)
            self.add(found)
            self.raise_epoch()
        found.client_id, found.client_host = beat.client_id, beat.client_host
        return found

    # -- over a restart -------------------------------------------------------------------------------

    def saved_whole(self) -> SavedGroup:
        return SavedGroup(len(self.members), self.assignment_epoch)

    def restoring(
        self, now: float, session: float, whole: SavedGroup, members: Sequence[SavedMember]
    ) -> Iterator[None]:
        """Go on with the members that were kept, in steps; the caller may pause after each of them."""
        for saved in members:
            member = ShareGroupMember(saved.member_id)
            member.epoch, member.previous_epoch = saved.epoch, saved.previous_epoch
            member.rack, member.told = saved.rack, saved.told
            member.client_id, member.client_host = saved.client_id, saved.client_host
            self.add(member)
            with suppress(InvalidRequestError):  # too many topics: it goes on with what it has
                self.subscribe(member, saved.topics)
            self.target[member.member_id] = member.told if saved.target is None else saved.target
            self.touch(now, member, session)
            yield
        read: dict[UUID, set[int]] = {}
        for target in list(self.target.values()):
            for piece in in_pieces(target.items(), limits.TOPICS_AT_ONCE):
                for topic_id, numbers in piece:
                    read.setdefault(topic_id, set()).update(numbers)
                yield
        is_read = True  # every partition, and nothing else
        for some in in_pieces(self.known(), limits.TOPICS_AT_ONCE):
            for _, topic in some:
                is_read = is_read and read.pop(topic.topic_id, set()) == set(range(topic.partitions))
            yield
        self.begin_again(whole.members, whole.assignment_epoch, is_read and not read)

    # -- describing -----------------------------------------------------------------------------------

    def description(self, members: Sequence[ShareMember]) -> ShareGroupDescription:
        """The group with these members as it is described."""
        whole = self.state_name, self.epoch, self.assignment_epoch, ASSIGNOR
        return ShareGroupDescription(None, "", *whole, members)

    def described(self) -> Iterator[ShareMember]:
        """The members as they are described; others may come and go meanwhile."""
        for member in list(self.members.values()):
            yield ShareMember(
                member.member_id,
                member.rack,
                member.epoch,
                member.client_id,
                member.client_host or IN_PROCESS,
                sorted(member.topics),
                member.told,
            )

    def reads(self, topic: str) -> bool:
        """Whether a member reads this topic."""
        return topic in (self.subscribed() or ())
