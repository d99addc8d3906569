"""Groups that change their protocol while they have members.

A classic group whose members are consumers becomes one with the newer protocol when the first member joins
with that, and a classic one again when the last such member has gone. Its members go on: classic ones are
told to join again. The broker's setting ``group.consumer.migration.policy`` may forbid either, or both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafka.errors import (
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    RebalanceInProgressError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription, ConsumerProtocolType

from dafka.broker.groups.consumer import classic as protocol
from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.generation import Deliver, State, at_once
from dafka.broker.groups.group import Group
from dafka.broker.groups.members import Member as ClassicMember
from dafka.broker.groups.modern.assignment import both
from dafka.broker.groups.modern.topics import Topics
from dafka.broker.groups.rebalance import DEFAULTS, Terms
from dafka.broker.limits import MIGRATED_OCTETS
from dafka.hub.turns import Pace

ATTEMPTS = 10
"""How often a group is taken over whose members change meanwhile."""


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

    def check_upgrade(self, name: str, group: Group, most: int) -> None:
        """Raise GroupIdNotFoundError unless a classic group with members may be upgraded.

        A group of the newer protocol has ``most`` members at most.
        """
        why = ""
        if not self.upgrades:
            why = "online upgrade is disabled"
        elif group.protocol_type != ConsumerProtocolType:
            why = "the group does not use the consumer embedded protocol"
        elif len(group.members) > most:
            why = "the group size exceeds the consumer group maximum size"
        if why:
            raise GroupIdNotFoundError(
                f"Cannot upgrade classic group {name} to consumer group because {why}."
            )

    def may_downgrade(self, group: ConsumerGroup, most: int) -> bool:
        """Whether this is to be a classic group, which has ``most`` members at most."""
        return self.downgrades and group.only_classic and len(group.members) <= most


def upgraded(now: float, name: str, classic: Group, topics: Topics) -> ConsumerGroup:
    """The group with the newer protocol, with the members of the classic one and what they have.

    Waits as a green thread if there are many. The classic group is as it was, and to be dismissed when the
    new one has taken its place. Raises GroupIdNotFoundError if what its members say cannot be read, and
    CoordinatorLoadInProgressError if they change faster than they can be taken over.
    """
    pace = Pace()
    for _ in range(ATTEMPTS):
        generation, seen = classic.generation, [_Seen.of(one) for one in classic.members.values()]
        group = ConsumerGroup(now, topics, max(generation, 1), name)
        for one in pace.over(list(classic.members.values()), every=1):
            try:
                for _ in pace.over(_taking_over(now, group, one, classic.protocol), every=1):
                    pass
            except Exception as error:
                raise GroupIdNotFoundError(f"Group {name} cannot become a consumer group: {error}") from error
        members = list(classic.members.values())
        same = len(seen) == len(members) and all(map(_Seen.is_of, seen, members))
        if same and generation == classic.generation:
            return group
    raise CoordinatorLoadInProgressError(f"Members of group {name} come and go.")


def _taking_over(
    now: float, group: ConsumerGroup, one: ClassicMember, protocol_name: str | None
) -> Iterator[None]:
    """Take over a member, in steps; the caller may pause after each of them."""
    chosen = one.metadata(protocol_name) or one.request.protocols[0][1]
    if len(chosen) + len(one.assignment) > MIGRATED_OCTETS:
        raise ValueError(f"member {one.member_id} has more than {MIGRATED_OCTETS} octets of metadata")
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
    yield
    ids = group.ids()
    # It reads on what it had when it joined, until it has the answer to its sync.
    had = protocol.by_id(ids, subscription.owned_partitions)
    yield from group.giving(member, both(protocol.decoded(ids, one.assignment), had))
    member.take(member.assigned)


class _Seen(NamedTuple):
    """A member as it was: its join data and its assignment are replaced when it changes.

    It holds them, so that no others that come later are taken for them.
    """

    member_id: str
    request: object
    assignment: object

    @classmethod
    def of(cls, one: ClassicMember) -> _Seen:
        return cls(one.member_id, one.request, one.assignment)

    def is_of(self, one: ClassicMember) -> bool:
        """Whether the member has not changed since."""
        same = self.request is one.request and self.assignment is one.assignment
        return same and self.member_id == one.member_id


def dismiss(classic: Group, deliver: Deliver = at_once) -> None:
    """Answer the parked calls of a group that was upgraded."""
    replies = [reply for one in classic.members.values() for reply in one.dismiss(RebalanceInProgressError)]
    deliver(replies, len(replies))


def downgraded(now: float, group: ConsumerGroup, deliver: Deliver, terms: Terms = DEFAULTS) -> Group | None:
    """The classic group of the members that are left, all of which are classic.

    They have to join again, unless everybody has what they are to have, because a static member has only
    changed its protocol. Until then they have what they had: the group may be upgraded before they have heard
    of it. Waits as a green thread if there are many; None if the group has changed meanwhile.
    """
    epoch, count, settled = group.epoch, len(group.members), True
    classic = Group(now, deliver, terms)
    names = group.names()
    for one in Pace().over(list(group.members.values()), every=1):
        if one.classic is None:
            return None
        member = ClassicMember(one.member_id, one.classic, now)
        member.assignment = protocol.encoded(
            names, both(one.assigned, one.revoking), protocol.version_of(one.classic.protocols[0][1])
        )
        classic.members.add(member)
        classic.wake_at = min(classic.wake_at, member.expires)
        settled = settled and one.epoch == epoch and group.is_reconciled(one)
    if group.epoch != epoch or len(group.members) != count or not group.only_classic:
        return None
    classic.protocol_type = ConsumerProtocolType
    classic.generation = group.classic_generation
    classic.state = State.STABLE
    classic.protocol = classic.members.chosen_protocol()
    if settled:
        classic.members.leader = next(iter(group.members))
    else:
        classic.begin_again(now)
    return classic
