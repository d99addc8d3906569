"""A group of the newer protocols that has only what all of them have."""

from __future__ import annotations

from dafka.broker.groups.modern.member import ModernMember
from dafka.broker.groups.modern.partitions import PartitionGroup
from dafka.broker.interface.groups import GroupType


class AnyMember(ModernMember):
    def saved(self, target):
        return (self.member_id, self.epoch)


class AnyModern(PartitionGroup[AnyMember]):
    type = GroupType.SHARE

    def saved_whole(self):
        return (len(self.members),)

    def is_reconciled(self, member):
        return member.epoch == self.assignment_epoch

    def check_commit(self, now, generation, member_id, instance_id, partitions):
        return None

    def enter(self, name: str, *topics: str, at: float = 0.0, session: float = 10.0) -> AnyMember:
        member = AnyMember(name)
        self.add(member)
        self.subscribe(member, topics)
        self.raise_epoch()
        self.touch(at, member, session)
        return member
