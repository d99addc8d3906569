"""Groups whose members share the partitions of the topics that they subscribe to."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from dafka.broker.groups.modern.assignment import NOTHING, Assignment, Spec, Subscriber
from dafka.broker.groups.modern.group import M, ModernGroup


class PartitionGroup(ModernGroup[M, Assignment]):
    """A group whose targets are partitions."""

    def partitions(self) -> Mapping[UUID, int]:
        """How many partitions each topic has that exists and is subscribed to."""
        return {topic.topic_id: topic.partitions for topic in self._known.values()}

    def spec(self) -> Spec:
        """The input for the target of this epoch."""
        ids = {name: topic.topic_id for name, topic in self._known.items()}
        sets: dict[frozenset[str], frozenset[UUID]] = {}  # most members read the same topics
        members = []
        for member in self.members.values():
            topics = sets.get(member.topics)
            if topics is None:
                topics = frozenset(ids[name] for name in member.topics if name in ids)
                sets[member.topics] = topics
            target = self.target.get(member.member_id, NOTHING)
            members.append(Subscriber(member.member_id, member.instance_id, topics, target))
        return Spec(self.epoch, members, self.partitions())

    def target_of(self, member: M) -> Assignment:
        """The target assignment of a member."""
        return self.target.get(member.member_id, NOTHING)
