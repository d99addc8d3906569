"""Groups that change their protocol while they have members.

A classic group whose members are consumers becomes one with the newer protocol when the first member joins
with that, and a classic one again when the last such member has gone. Its members go on: classic ones are
told to join again. The broker's setting ``group.consumer.migration.policy`` may forbid either, or both.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka.errors import GroupIdNotFoundError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription, ConsumerProtocolType

from dafka.broker.groups.consumer import classic as protocol
from dafka.broker.groups.consumer.group import ConsumerGroup, both
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.generation import Deliver, State, at_once
from dafka.broker.groups.group import Group
from dafka.broker.groups.members import Member as ClassicMember
from dafka.broker.groups.modern.topics import Topics
from dafka.broker.limits import MIGRATED_MEMBERS, MIGRATED_OCTETS


class Policy(NamedTuple):
    """Which way a group may change its protocol while it has members."""

    upgrades: bool = True
    downgrades: bool = True

    @classmethod
    def of(cls, setting: str) -> Policy:
        """The policy that a value of ``group.consumer.migration.policy`` means."""
        word = setting.lower()
        return cls(word in ("upgrade", "bidirectional"), word in ("downgrade", "bidirectional"))

    @property
    def mixes(self) -> bool:
        """Whether classic members may join a group of the newer protocol that has members."""
        return self.upgrades or self.downgrades

    def check_upgrade(self, name: str) -> None:
        """Raise GroupIdNotFoundError unless a classic group with members may be upgraded."""
        if not self.upgrades:
            raise GroupIdNotFoundError(
                f"Cannot upgrade classic group {name} to consumer group because online upgrade is disabled."
            )


def upgraded(now: float, name: str, classic: Group, topics: Topics) -> ConsumerGroup:
    """The group with the newer protocol, with the members of the classic one and what they have.

    The classic group is as it was, and to be dismissed when the new one has taken its place. Raises
    GroupIdNotFoundError if its members are not consumers, or too many for one turn of the hub.
    """
    members = classic.members.values()
    octets = sum(len(one.assignment) + len(one.request.protocols[0][1]) for one in members)
    if len(members) > MIGRATED_MEMBERS or octets > MIGRATED_OCTETS:
        raise GroupIdNotFoundError(f"Group {name} is too large to become one with the newer protocol.")
    if classic.protocol_type != ConsumerProtocolType:
        raise GroupIdNotFoundError(f"Group {name} is not a consumer group.")
    group = ConsumerGroup(now, topics, max(classic.generation, 1))
    try:
        for one in members:
            chosen = one.metadata(classic.protocol) or one.request.protocols[0][1]
            member = Member(one.member_id)
            subscription = ConsumerProtocolSubscription.decode(chosen)
            member.names = frozenset(subscription.topics)
            member.instance_id = one.request.instance_id
            member.client_id, member.client_host = one.request.client_id, one.request.client_host
            member.rebalance_timeout = one.request.rebalance_timeout
            member.epoch = member.previous_epoch = group.epoch
            member.classic = one.request
            member.expires = now + one.request.session_timeout
            group.adopt(member)
            ids = group.ids()
            # It reads on what it had when it joined, until it has the answer to its sync.
            group.give(
                member,
                both(
                    protocol.decoded(ids, one.assignment),
                    protocol.by_id(ids, subscription.owned_partitions),
                ),
            )
    except Exception as error:
        raise GroupIdNotFoundError(f"Group {name} cannot become a consumer group: {error}") from error
    return group


def dismiss(classic: Group) -> None:
    """Answer the parked calls of a group that was upgraded."""
    for one in classic.members.values():
        at_once(one.dismiss(RebalanceInProgressError), 1)


def downgraded(now: float, group: ConsumerGroup, deliver: Deliver) -> Group:
    """The classic group of the members that are left, all of which are classic; they have to join again.

    Until then they have what they had: the group may be upgraded before they have heard of it.
    """
    classic = Group(now, deliver)
    for one in group.members.values():
        assert one.classic is not None
        member = ClassicMember(one.member_id, one.classic, now)
        member.assignment = protocol.encoded(group, both(one.assigned, one.revoking))
        classic.members.add(member)
    classic.protocol_type = ConsumerProtocolType
    classic.generation = group.epoch
    classic.state = State.STABLE
    classic.protocol = classic.members.chosen_protocol()
    classic.begin_again(now)
    return classic
