"""Groups whose members share the partitions of the topics that they subscribe to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from dafka.broker.groups.modern.assignment import (
    NOTHING,
    Assignment,
    Assignor,
    Spec,
    Subscriber,
    Target,
    same_where_equal,
)
from dafka.broker.groups.modern.group import M, ModernGroup
from dafka.broker.topics.topic import KnownTopic


class Draft(NamedTuple):
    """A group of an epoch, its members with the names of their topics; it does not change with the group.

    ``members``: id, instance id, topics, and the target until now.
    """

    epoch: int
    members: Sequence[tuple[str, str | None, frozenset[str], Assignment]]
    topics: Mapping[str, KnownTopic]

    def spec(self) -> Spec:
        """The input for an assignor; beside the hub if there are many topics."""
        sets: dict[frozenset[str], frozenset[UUID]] = {}  # most members read the same topics
        members = []
        for member_id, instance_id, names, target in self.members:
            topics = sets.get(names)
            if topics is None:
                topics = frozenset(self.topics[name].topic_id for name in names if name in self.topics)
                sets[names] = topics
            members.append(Subscriber(member_id, instance_id, topics, target))
        partitions = {topic.topic_id: topic.partitions for topic in self.topics.values()}
        return Spec(self.epoch, members, partitions)

    def target(self, assignor: Assignor) -> Target:
        """The target of each member."""
        before = {member_id: target for member_id, _, _, target in self.members}
        return same_where_equal(before, assignor(self.spec()))


class PartitionGroup(ModernGroup[M, Assignment]):
    """A group whose targets are partitions."""

    def partitions(self) -> Mapping[UUID, int]:
        """How many partitions each topic has that exists and is subscribed to."""
        return {topic.topic_id: topic.partitions for topic in self._known.values()}

    def known(self) -> Iterator[tuple[str, KnownTopic]]:
        """These topics by their names, one after the other; nothing may change meanwhile."""
        return iter(self._known.items())

    def draft(self) -> Draft:
        """What the input for the target of this epoch is made of."""
        target = self.target
        members = [
            (one.member_id, one.instance_id, one.topics, target.get(one.member_id, NOTHING))
            for one in self.members.values()
        ]
        return Draft(self.epoch, members, dict(self._known))

    def spec(self) -> Spec:
        """The input for the target of this epoch."""
        return self.draft().spec()

    def target_of(self, member: M) -> Assignment:
        """The target assignment of a member."""
        return self.target.get(member.member_id, NOTHING)
