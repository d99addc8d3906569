"""The groups of Kafka Streams of a broker: the clock, settings, topics and threads they need.

The state machine is :mod:`dafka.broker.groups.streams.group`. Internal topics are made between the two halves
of a heartbeat, so that the member that needs them gets its tasks at once. The target of a large group is
computed beside the hub; until it is there the members keep what they have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kafka.errors import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    InvalidReplicationFactorError,
    TopicAlreadyExistsError,
)

from dafka.broker.groups.modern.member import JOIN_EPOCH
from dafka.broker.groups.modern.targets import Targets, computed
from dafka.broker.groups.modern.topics import TableTopics
from dafka.broker.groups.registry import AnyGroup, Groups
from dafka.broker.groups.streams.group import Answer, Settings, StreamsGroup
from dafka.broker.groups.streams.internal_topics import summarized
from dafka.broker.groups.streams.kept import KeptTopologies
from dafka.broker.groups.streams.kept_members import FORMAT, SavedGroup, SavedMember
from dafka.broker.groups.streams.requests import check_heartbeat
from dafka.broker.groups.streams.restoring import restoring
from dafka.broker.groups.streams.sticky_assignor import assign_sticky
from dafka.broker.interface.groups import Error, GroupType
from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.streams_groups import (
    Status,
    StatusCode,
    StreamsGroupDescription,
    StreamsGroupInterface,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
    StreamsMember,
    TaskShare,
)
from dafka.broker.interface.topics import TopicSpec
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace

log = logging.getLogger(__name__)

FIRST_EPOCH = 1
"""The epoch of a new group, whose first member raises it, as in Apache Kafka."""

ANY_REPLICAS = (0, -1, 1)
"""How many replicas an internal topic may want: those that there are, by three names."""

CreateTopics = Callable[[Mapping[str, TopicSpec]], dict[str, Outcome]]


class StreamsGroups(StreamsGroupInterface):
    """The Streams groups of one broker. Hub side; methods wait as green threads.

    ``setting(group, name)`` is a setting of a group, ``most`` how many members one may have;
    ``create_topics`` makes internal topics; ``check_on()`` raises what is answered while such groups are off.
    """

    def __init__(
        self,
        hub: Hub,
        groups: Groups,
        topics: TableTopics,
        setting: Callable[[str, str], str],
        create_topics: CreateTopics,
        check_on: Callable[[], object],
        kept: KeptTopologies,
        most: int,
    ) -> None:
        self._hub = hub
        self._most = most
        self._groups = groups
        self._topics = topics
        self._setting = setting
        self._check_on = check_on
        self._create_topics = create_topics
        self._targets = Targets[StreamsGroup](hub, self._is_due, self._assign, groups.changed)
        self._kept = kept
        groups.watchers += (self._changed, self._keep)
        groups.revive(GroupType.STREAMS, self._revived, FORMAT, self._restoring)
        hub.spawn(kept.forget_others, groups.names(GroupType.STREAMS))

    def _revived(self, name: str, epoch: int, behind: int) -> StreamsGroup:
        group = StreamsGroup(self._groups.clock(), self._topics, epoch, name)
        group.is_new = False
        group.go_on(behind)
        return self._kept.restore(name, group)

    def _restoring(
        self, name: str, group: StreamsGroup, whole: SavedGroup, members: Sequence[SavedMember]
    ) -> Iterator[None]:
        return restoring(self._groups.clock(), group, self._settings(name).session, whole, members)

    def _keep(self, name: str, group: AnyGroup) -> None:
        if isinstance(group, StreamsGroup):
            self._kept.note(name, group)

    def forget_group(self, name: str) -> Error | None:
        """A group was deleted; waits as a green thread."""
        return self._kept.forget([name])

    # -- heartbeats -----------------------------------------------------------------------------

    def streams_group_heartbeat(self, group: str, request: StreamsHeartbeat) -> StreamsHeartbeatAnswer:
        try:
            self._check_on()
            pace = Pace()
            check_heartbeat(group, request)
            pace.rest()  # a large topology takes some milliseconds
            return self._heartbeat(group, request)
        except BrokerResponseError as error:
            return StreamsHeartbeatAnswer(type(error), str(error.args[0]) if error.args else "")

    def _heartbeat(self, name: str, request: StreamsHeartbeat) -> StreamsHeartbeatAnswer:
        if name in self._groups.deleting:
            raise CoordinatorLoadInProgressError(f"Group {name} is being deleted.")
        group, settings = self._group(name, request.member_epoch), self._settings(name)
        group.receive(self._groups.clock(), request, settings, self._most)
        self._groups.put(name, group)
        try:
            trouble = self._make_topics(group, request)  # before any target without them is computed
            answer = group.proceed(self._groups.clock(), request, settings)
        finally:
            self._groups.changed(name, group)
        self._groups.saved(name)
        return self._answer(group, request, answer, trouble)

    def _answer(
        self, group: StreamsGroup, request: StreamsHeartbeat, answer: Answer, trouble: str
    ) -> StreamsHeartbeatAnswer:
        statuses = [
            Status(one.code, one.detail + trouble) if one.code == StatusCode.MISSING_INTERNAL_TOPICS else one
            for one in answer.statuses
        ]
        epoch = group.endpoint_epoch if request.member_epoch >= JOIN_EPOCH else 0
        endpoints = None
        if request.member_epoch >= JOIN_EPOCH and epoch != request.endpoint_epoch:
            endpoints = list(Pace().over(group.endpoints(), every=1))
        if group.is_new:  # as in Kafka, which keeps the group only now
            group.is_new, group.endpoint_epoch, epoch = False, 0, 0
        return StreamsHeartbeatAnswer(
            None,
            "",
            answer.member_id,
            answer.epoch,
            answer.interval,
            None if answer.tasks is None else TaskShare(*answer.tasks),
            statuses,
            epoch,
            endpoints,
        )

    def _group(self, name: str, member_epoch: int) -> StreamsGroup:
        found = self._groups.get(name)
        if member_epoch == JOIN_EPOCH:
            if found is None or (found.type is GroupType.CLASSIC and not found.occupied):
                self._groups.check_room()
                return StreamsGroup(self._groups.clock(), self._topics, FIRST_EPOCH, name)
        elif found is None and member_epoch > JOIN_EPOCH:
            raise GroupIdNotFoundError(f"Streams group {name} not found.")
        return self._groups.of(name, StreamsGroup)

    def _settings(self, name: str) -> Settings:
        def seconds(setting: str) -> float:
            return int(self._setting(name, f"streams.{setting}.ms")) / 1000

        session = seconds("session.timeout")
        return Settings(
            session,
            min(seconds("heartbeat.interval"), session / 2),
            seconds("initial.rebalance.delay"),
            seconds("assignment.interval"),
            int(self._setting(name, "streams.num.standby.replicas")),
        )

    # -- internal topics ------------------------------------------------------------------------

    def _make_topics(self, group: StreamsGroup, request: StreamsHeartbeat) -> str:
        """Make the internal topics that are missing; in words, why some could not be made."""
        missing = group.missing
        if not missing or request.member_epoch < JOIN_EPOCH:
            return ""
        if request.may_create is not None:
            refused = set(missing).difference(request.may_create(missing))
            if refused:
                return f"; Unauthorized to CREATE on topics {', '.join(sorted(refused))}."
        made: dict[str, Outcome] = {
            name: Outcome(InvalidReplicationFactorError, f"{topic.replicas} replicas of it, and 1 broker")
            for name, topic in missing.items()
            if topic.replicas not in ANY_REPLICAS
        }
        made |= self._create_topics(
            {
                name: TopicSpec(topic.partitions, topic.configs)
                for name, topic in missing.items()
                if name not in made
            }
        )
        failed = {
            name: outcome.detail or outcome.error.__name__
            for name, outcome in made.items()
            if outcome.error not in (None, TopicAlreadyExistsError) and outcome.error is not None
        }
        if not failed:
            return ""
        first = failed[min(failed)]
        log.warning("internal topics %s could not be made: %s", summarized(failed), first)
        return f"; Creation failed: {summarized(failed)} ({first})."

    # -- targets --------------------------------------------------------------------------------

    def _changed(self, name: str, group: AnyGroup) -> None:
        # As in Kafka a small group has its next target with the next heartbeat; that of a large one, which
        # takes long, is begun at once.
        if isinstance(group, StreamsGroup) and group.needs_target and group.is_large:
            self._targets.renew(name, group)

    def _is_due(self, name: str, group: StreamsGroup) -> bool:
        return group.is_target_due(self._groups.clock()) and self._groups.get(name) is group

    def _assign(self, group: StreamsGroup) -> None:
        spec = group.spec()
        target = computed(self._hub, assign_sticky, spec)
        group.install(spec.epoch, target, self._groups.clock())

    # -- describing -----------------------------------------------------------------------------

    def describe_streams_groups(self, groups: Iterable[str]) -> dict[str, StreamsGroupDescription]:
        return {name: self._describe(name) for name in Pace().over(groups, every=1)}

    def _describe(self, name: str) -> StreamsGroupDescription:
        try:
            self._check_on()
            group = self._groups.of(name, StreamsGroup)
        except BrokerResponseError as error:
            return StreamsGroupDescription(type(error), str(error.args[0]))
        topology = group.topology
        if group.configured is not None and group.is_ready:
            topology = group.configured.topology
        whole = group.state_name, group.epoch, group.assignment_epoch, topology
        members: list[StreamsMember] = list(Pace().over(group.described(), every=1))
        return StreamsGroupDescription(None, "", *whole, members)
