"""The consumer groups of a broker whose assignment it computes: the clock, settings and threads they need.

The state machine is :mod:`dafka.broker.groups.consumer.group`. The target of a large group is computed beside
the hub; until it is there the members keep what they have. Topics of regular expressions are looked for in
pieces, beside other work; the member whose heartbeat was answered without them is told to come again soon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from uuid import UUID

from kafka.errors import BrokerResponseError, CoordinatorLoadInProgressError, GroupIdNotFoundError

from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.kept import FORMAT, SavedGroup, SavedMember
from dafka.broker.groups.consumer.migration import Policy, dismiss, upgraded
from dafka.broker.groups.consumer.requests import check_heartbeat
from dafka.broker.groups.consumer.restoring import restoring
from dafka.broker.groups.group import Group
from dafka.broker.groups.modern.member import JOIN_EPOCH
from dafka.broker.groups.modern.targets import Targets, computed
from dafka.broker.groups.modern.topics import TableTopics
from dafka.broker.groups.patterns import matching
from dafka.broker.groups.registry import AnyGroup, Groups
from dafka.broker.interface.consumer_groups import (
    ConsumerGroupDescription,
    ConsumerGroupInterface,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    ConsumerMember,
)
from dafka.broker.interface.groups import GroupType
from dafka.hub.hub import Hub
from dafka.hub.pool import Aside
from dafka.hub.turns import Pace, next_turn

log = logging.getLogger(__name__)

FIRST_EPOCH = 1
"""The epoch of a new group, whose first member raises it, as in Apache Kafka."""

NAMES_AT_ONCE = 1000
"""Topics of a member that its group looks up without others having their turn before."""

SOONEST = 0.01
"""Seconds after which a member comes again at the earliest that was answered before its topics were known."""

AGAIN_A_SECOND = 2000
"""How many members of a group may come again in a second for that reason."""

_AHEAD = Aside(1)
"""For what members with very many topics get and give up."""

MaySee = Callable[[Sequence[str]], Collection[str]]


class ConsumerGroups(ConsumerGroupInterface):
    """The consumer groups of one broker. Hub side.

    ``setting(group, name)`` is a setting of a group, ``most`` how many members one may have; ``check_on()``
    raises what is answered while such groups are off. Topics of regular expressions are looked for again
    after ``refresh`` seconds.
    """

    def __init__(
        self,
        hub: Hub,
        groups: Groups,
        topics: TableTopics,
        setting: Callable[[str, str], str],
        check_on: Callable[[], object],
        policy: Policy,
        most: int,
        refresh: float,
    ) -> None:
        self._hub = hub
        self._most = most
        self._refresh = refresh
        self._groups = groups
        self._topics = topics
        self._setting = setting
        self._check_on = check_on
        self._policy = policy
        self._targets = Targets[ConsumerGroup](hub, self._is_due, self._assign, groups.changed)
        groups.watchers.append(self._changed)  # classic members and timeouts change groups, too
        groups.revive(
            GroupType.CONSUMER,
            self._revived,
            FORMAT,
            self._restoring,
        )

    def _revived(self, name: str, epoch: int, behind: int) -> ConsumerGroup:
        group = ConsumerGroup(self._groups.clock(), self._topics, epoch, name)
        group.go_on(behind)
        return group

    def _restoring(
        self, name: str, group: ConsumerGroup, whole: SavedGroup, members: Sequence[SavedMember]
    ) -> Iterator[None]:
        session = self._seconds(name, "consumer.session.timeout.ms")
        names = set[str]().union(*whole.resolved.values())
        for saved in Pace().over(members, every=1):
            names.update(saved.names)
        self._topics.look_ahead(names)  # each member looks up all of its own at once
        return restoring(self._groups.clock(), group, session, whole, members)

    # -- heartbeats -----------------------------------------------------------------------------

    def consumer_group_heartbeat(self, group: str, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        try:
            self._check_on()
            check_heartbeat(group, request)
            return self._heartbeat(group, request)
        except BrokerResponseError as error:
            return ConsumerHeartbeatAnswer(type(error), str(error.args[0]) if error.args else "")

    def _heartbeat(self, name: str, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        if request.topics is not None and len(request.topics) > NAMES_AT_ONCE:
            self._topics.look_ahead(request.topics)  # its group looks up all of them at once
            next_turn()  # what the group does with very many takes most of one
        if request.member_epoch > JOIN_EPOCH and isinstance(found := self._groups.get(name), ConsumerGroup):
            found.look_ahead(request, _AHEAD.run)
            for _ in Pace().over(found.reserving(request.member_id), every=1):
                pass
        self._groups.check_joins(name)
        group, before = self._group(name, request.member_epoch), self._groups.get(name)
        now = self._groups.clock()
        session = self._seconds(name, "consumer.session.timeout.ms")
        group.interval = self._seconds(name, "consumer.assignment.interval.ms")
        answer = group.heartbeat(now, request, session, self._most)
        self._groups.put(name, group)
        if isinstance(before, Group):
            dismiss(before, self._groups.deliver)
        self._groups.changed(name, group)
        interval = 0.0  # it sends no further one, unless it stays
        if request.member_epoch >= JOIN_EPOCH:
            interval = min(self._seconds(name, "consumer.heartbeat.interval.ms"), session / 2)
            interval = group.come_again(now, answer.member_id, interval)
            if self._looks_for_topics(name, group, request):
                interval = min(interval, max(SOONEST, len(group.members) / AGAIN_A_SECOND))
        self._groups.saved(name)
        return ConsumerHeartbeatAnswer(None, "", answer.member_id, answer.epoch, interval, answer.assignment)

    def _group(self, name: str, member_epoch: int) -> ConsumerGroup:
        found, may_begin = self._groups.get(name), member_epoch == JOIN_EPOCH
        if found is None and member_epoch > JOIN_EPOCH:
            raise GroupIdNotFoundError(f"Consumer group {name} not found.")
        if may_begin and (found is None or (found.type is GroupType.CLASSIC and not found.occupied)):
            self._groups.check_room()
            return ConsumerGroup(self._groups.clock(), self._topics, FIRST_EPOCH, name)
        if may_begin and isinstance(found, Group):
            self._policy.check_upgrade(name, found, self._most)
            group = upgraded(self._groups.clock(), name, found, self._topics)
            if self._groups.get(name) is not found:
                raise CoordinatorLoadInProgressError(f"Group {name} is changing its protocol.")
            return group
        return self._groups.of(name, ConsumerGroup)

    def _seconds(self, name: str, setting: str) -> float:
        return int(self._setting(name, setting)) / 1000

    # -- targets --------------------------------------------------------------------------------

    def _changed(self, name: str, group: AnyGroup) -> None:
        # As in Kafka a small group has its next target with the next heartbeat; that of a large one, which
        # takes long, is begun at once.
        if isinstance(group, ConsumerGroup) and group.needs_target and group.is_large:
            self._targets.renew(name, group)

    def _is_due(self, name: str, group: ConsumerGroup) -> bool:
        return group.is_target_due(self._groups.clock()) and self._groups.get(name) is group

    def _assign(self, group: ConsumerGroup) -> None:
        draft = group.draft()
        target = computed(self._hub, draft.target, group.assignor)
        group.install(draft.epoch, target, self._groups.clock())

    # -- regular expressions --------------------------------------------------------------------

    def _looks_for_topics(self, name: str, group: ConsumerGroup, request: ConsumerHeartbeat) -> bool:
        """Have topics of the group's expressions looked for if that is due; whether this member waits for
        them, or is the one because of which that was begun."""
        resolution = group.expressions.begin(self._groups.clock(), self._topics, self._refresh)
        if resolution is not None:
            self._hub.spawn(self._resolve, name, group, resolution.expressions, request.may_see)
            return True
        member = group.members.get(request.member_id)
        return member is not None and group.expressions.lacks(member.regex)

    def _resolve(
        self, name: str, group: ConsumerGroup, expressions: Collection[str], may_see: MaySee | None
    ) -> None:
        try:
            found = {one: self._matches(one, may_see) for one in expressions}
            self._topics.look_ahead(frozenset().union(*found.values()))  # its group looks them up at once
            next_turn()  # what the group does with very many takes most of one
            for _ in Pace().over(group.resolving(found), every=1):
                pass
            self._groups.changed(name, group)
        except Exception:
            group.expressions.fail()
            log.exception("the regular expressions of group %r failed unexpectedly", name)

    def _matches(self, expression: str, may_see: MaySee | None) -> frozenset[str]:
        """The topics that an expression matches, of those that may be seen. Waits as a green thread."""
        found = matching(expression, self._topics.names())
        return frozenset(found if may_see is None else may_see(found))

    # -- describing -----------------------------------------------------------------------------

    def describe_consumer_groups(self, groups: Iterable[str]) -> dict[str, ConsumerGroupDescription]:
        return {name: self._describe(name) for name in Pace().over(groups, every=1)}

    def _describe(self, name: str) -> ConsumerGroupDescription:
        try:
            self._check_on()
            group = self._groups.of(name, ConsumerGroup)
        except BrokerResponseError as error:
            return ConsumerGroupDescription(type(error), str(error.args[0]))
        whole = group.state_name, group.epoch, group.assignment_epoch, group.assignor_name
        members: list[ConsumerMember] = []
        ids: set[UUID] = set()
        names: dict[UUID, str] = {}
        pace = Pace()
        for one in pace.over(group.described(), every=1):
            members.append(one)
            ids.update(one.assigned, one.target)
        for topic in pace.over(ids):
            found = self._topics.name_of(topic)
            if found is not None:
                names[topic] = found
        return ConsumerGroupDescription(None, "", *whole, members, names)
