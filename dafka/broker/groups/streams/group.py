"""A group of Kafka Streams (KIP-1071): a state machine, without I/O or clock.

Theory of operation
-------------------
:mod:`dafka.broker.groups.modern.group` has what all newer groups do. The members of a Streams group run one
*topology*, which the first of them brings. :mod:`dafka.broker.groups.streams.internal_topics` computes its
tasks from the topics that exist; as long as topics are missing or do not fit, the target of every member is
empty, and members are told why (NotReady). The coordinator makes the internal topics that
:attr:`StreamsGroup.missing` names, between :meth:`StreamsGroup.receive` and :meth:`StreamsGroup.proceed`, the
two halves of a heartbeat.

The first target of a group waits for further members (*initial delay*), a later one until some time has
passed since the last (*interval*). A member is led to its target like one of a consumer group: it is told to
give up what is not in its target (*revoking*), and when it says that it has, it gets what is free, and with
it the assignment epoch. A task is free for an active role if nobody runs it, and for any role if the member's
process does not have it in another one.

A member that asks for it has the whole application shut down: all members are told, until the group is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

from kafka.errors import BrokerResponseError, InvalidRequestError

from dafka.broker.groups.modern.group import ModernGroup
from dafka.broker.groups.modern.member import JOIN_EPOCH
from dafka.broker.groups.modern.topics import Topics
from dafka.broker.groups.since import epoch_of
from dafka.broker.groups.streams.endpoints import partitions_at
from dafka.broker.groups.streams.internal_topics import Configured, configure
from dafka.broker.groups.streams.kept_members import SavedGroup
from dafka.broker.groups.streams.member import Member
from dafka.broker.groups.streams.owned import Owned
from dafka.broker.groups.streams.requests import owned_in
from dafka.broker.groups.streams.sticky_assignor import Runner, Spec, assign_sticky
from dafka.broker.groups.streams.tasks import (
    NOTHING,
    Roles,
    has_any,
    joined,
    make_up,
    minus,
    size,
    split,
)
from dafka.broker.groups.streams.topology import normal, readers, required_topics
from dafka.broker.interface.groups import IN_PROCESS, GroupType
from dafka.broker.interface.streams_groups import (
    EndpointPartitions,
    InternalTopic,
    Status,
    StatusCode,
    StreamsHeartbeat,
    StreamsMember,
    TaskShare,
    Topology,
)
from dafka.broker.limits import TASKS_ASSIGNED_AT_ONCE

NO_TOPICS: frozenset[str] = frozenset()


class Settings(NamedTuple):
    """The settings of a group, in seconds. ``standbys``: copies of each task with state."""

    session: float
    heartbeat: float
    initial_delay: float = 0.0
    interval: float = 0.0
    standbys: int = 0


class Answer(NamedTuple):
    """The answer to a member. ``tasks`` is None if it has them already."""

    member_id: str
    epoch: int
    tasks: Roles | None = None
    statuses: tuple[Status, ...] = ()
    interval: float = 0.0


class StreamsGroup(ModernGroup[Member, Roles]):
    """A group. ``endpoint_epoch`` goes up when one that answers queries comes, goes, or has other tasks."""

    type = GroupType.STREAMS

    def __init__(self, now: float, topics: Topics, epoch: int = 0, name: str = "") -> None:
        super().__init__(now, topics, epoch, name)
        self.topology: Topology | None = None
        self.configured: Configured | None = None
        self.endpoint_epoch = 0
        self.is_new = True  # until a heartbeat has been answered
        self._required = NO_TOPICS
        self._reader: Mapping[str, str] = {}  # the subtopology that reads each topic
        self._was_ready = False
        self._owned = Owned()
        self._standbys: int | None = None
        self._delayed_until = -inf
        self._shutdown_by: str | None = None

    # -- as one of all groups -------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """Kafka's word for its state."""
        if self.members and not self.dead and not self.is_ready:
            return "NotReady"
        return super().state_name

    @property
    def is_ready(self) -> bool:
        """Whether tasks can run."""
        return self.configured is not None and self.configured.is_ready

    def subscribed(self) -> frozenset[str] | None:
        return frozenset(self._reader) if self.members else NO_TOPICS

    def is_reconciled(self, member: Member) -> bool:
        return member.epoch == self.assignment_epoch and not member.lacks and member.revoking == NOTHING

    def target_of(self, member: Member) -> Roles:
        """The target assignment of a member."""
        return self.target.get(member.member_id, NOTHING)

    # -- heartbeats, the first half -------------------------------------------------------------

    def receive(self, now: float, request: StreamsHeartbeat, settings: Settings, most: int) -> None:
        """Take over what a heartbeat says, which :func:`check_heartbeat` has passed.

        The group has ``most`` members at most. Raises the errors of the interface.
        """
        if request.member_epoch < JOIN_EPOCH:
            self._leave(now, request)
            return
        if request.member_epoch == JOIN_EPOCH:
            member, is_new = self._joined(now, request, settings, most)
        else:
            member, is_new = self.member(request.member_id), False
            self.check_epoch(member, request.member_epoch, _lost_answer(member, request))
            self._check_owned(request)
            self._move(member, request.process_id)
        changed = member.update(request) or is_new
        self.interval = settings.interval
        self.touch(now, member, settings.session)
        self._renew(changed, settings.standbys)

    def _joined(
        self, now: float, request: StreamsHeartbeat, settings: Settings, most: int
    ) -> tuple[Member, bool]:
        """The member that joins, or joins again; and whether it is a new one."""
        self.check_size(request.member_id, most)
        assert request.topology is not None
        if not self.members:
            self.configured = None  # while nobody was there nobody looked at the topics
        self._use(request.topology)
        if not self.members and self._delayed_until <= now:
            self._delayed_until = now + settings.initial_delay
            self.wake_at = min(self.wake_at, self._delayed_until)
        known, is_new = self.members.get(request.member_id), False
        if known is None:
            known, is_new = Member(request.member_id), True
            self.subscribe(known, self._required)
            self.add(known)
        else:  # it has been told to join again, or did not get the answer, and has no task any more
            self._release_all(known)
            known.join_again()
        return known, is_new

    def _use(self, topology: Topology) -> None:
        """Begin with this topology, unless there is one."""
        wanted = normal(topology)
        if self.topology is None:
            self.configured = configure(wanted, self._partitions)  # raises if it cannot be used
            self.begin_with(wanted)
        elif topology.epoch >= self.topology.epoch and wanted != self.topology:
            raise InvalidRequestError("Topology updates are not supported yet.")

    def begin_with(self, topology: Topology) -> None:
        """Have this topology, which can be used and is in order."""
        self.topology = topology
        self._required, self._reader = required_topics(topology), readers(topology)

    def _partitions(self, name: str) -> int | None:
        found = self._topics.find(name)
        return None if found is None else found.partitions

    def _check_owned(self, request: StreamsHeartbeat) -> None:
        """Raise InvalidRequestError for tasks that the topology does not have."""
        if not self.is_ready:
            return
        assert self.configured is not None
        for share in (request.active, request.standby):
            for name, numbers in (share or {}).items():
                count = self.configured.tasks.get(name)
                if count is None:
                    raise InvalidRequestError(f"Subtopology {name} does not exist in the topology.")
                for number in numbers:
                    if not 0 <= number < count:
                        raise InvalidRequestError(
                            f"Task {number} for subtopology {name} is invalid. Number of tasks for this "
                            f"subtopology: {count}"
                        )

    def _move(self, member: Member, process: str | None) -> None:
        """The tasks of a member are in another process, if it says so."""
        if process in (None, member.process_id):
            return
        for roles in (member.assigned, member.revoking):
            self._owned.release(member.process_id, roles)
            self._owned.take(process, roles)

    def _renew(self, changed: bool, standbys: int) -> None:
        """Look at the topics again, and raise the epoch if anything is not as it was."""
        assert self.topology is not None
        topics = self.topics_changed()
        if topics or self.configured is None:
            self.configured = None  # also if it cannot be computed
            self.configured = configure(self.topology, self._partitions)
        if changed or topics or self.is_ready is not self._was_ready or standbys != self._standbys:
            self.raise_epoch()
        self._was_ready, self._standbys = self.is_ready, standbys

    @property
    def missing(self) -> dict[str, InternalTopic]:
        """The internal topics that have to be made."""
        return {} if self.configured is None else dict(self.configured.missing)

    # -- leaving --------------------------------------------------------------------------------

    def _leave(self, now: float, request: StreamsHeartbeat) -> None:
        self._ask_to_shut_down(request)  # also if it is no member any more
        self.remove(now, self.member(request.member_id))

    def _ask_to_shut_down(self, request: StreamsHeartbeat) -> None:
        if request.shutdown and self._shutdown_by is None and self.members:
            self._shutdown_by = request.member_id

    def remove(self, now: float, member: Member) -> None:
        """Remove a member; its tasks are free."""
        if member.endpoint is not None:
            self.endpoint_epoch += 1
        self._release_all(member)
        super().remove(now, member)
        if not self.members:
            self._shutdown_by = None

    def _release_all(self, member: Member) -> None:
        for roles in (member.assigned, member.revoking):
            self._owned.release(member.process_id, roles)
        member.assigned = member.revoking = NOTHING
        member.since = {}
        member.lacks, member.revoke_by = False, inf

    # -- over a restart: see dafka.broker.groups.streams.restoring ------------------------------------

    def saved_whole(self) -> SavedGroup:
        return SavedGroup(len(self.members), self._standbys, self.assignment_epoch)

    def adopt(self, member: Member, assigned: Roles, revoking: Roles, target: Roles | None) -> None:
        """Take over a member with those of its tasks that nobody else has; no target: they are that."""
        self.subscribe(member, self._required)
        self.add(member)
        member.assigned = self._taken(member, assigned)
        member.revoking = self._taken(member, revoking)
        self.target[member.member_id] = member.assigned if target is None else target

    def _taken(self, member: Member, tasks: Roles) -> Roles:
        free = self._owned.free(member.process_id, tasks)
        self._owned.take(member.process_id, free)
        return free

    def look_again(self, standbys: int | None) -> bool:
        """Look at the topics after a restart; whether somebody is to run each task, and nothing else.

        ``standbys`` is how many copies of each task members were given.
        """
        self._standbys = standbys
        try:
            self.configured = None if self.topology is None else configure(self.topology, self._partitions)
        except BrokerResponseError:
            self.configured = None  # the next heartbeat is told why
        self._was_ready = self.is_ready
        tasks = self.configured.tasks if self.configured is not None and self.is_ready else {}
        return make_up((target.active for target in self.target.values()), tasks)

    # -- targets --------------------------------------------------------------------------------

    @property
    def assign_at(self) -> float:
        """Before this time there is no further target."""
        return max(self._delayed_until, super().assign_at)

    def spec(self) -> Spec:
        """The input for the target of this epoch."""
        tasks = self.configured.tasks if self.configured is not None and self.configured.is_ready else {}
        subtopologies = () if self.topology is None else self.topology.subtopologies
        return Spec(
            self.epoch,
            [Runner(one.member_id, one.process_id, self.target_of(one)) for one in self.members.values()],
            tasks,
            frozenset(one.name for one in subtopologies if one.changelogs),
            self._standbys or 0,
        )

    def assign_if_small(self, now: float) -> None:
        """Compute the target, if it is due and few members and tasks are concerned."""
        if not self.needs_target:
            return
        if now < self.assign_at:
            self.wake_at = min(self.wake_at, self.assign_at)
        elif not self.is_large:
            self.install(self.epoch, assign_sticky(self.spec()), now)

    @property
    def is_large(self) -> bool:
        """Whether its target takes long to compute."""
        tasks = sum(self.configured.tasks.values()) if self.configured and self.is_ready else 0
        return len(self.members) + tasks * (1 + (self._standbys or 0)) > TASKS_ASSIGNED_AT_ONCE

    def tick(self, now: float) -> None:
        super().tick(now)
        if now < self._delayed_until:
            self.wake_at = min(self.wake_at, self._delayed_until)
        elif self._delayed_until > -inf:  # the first target needs no further heartbeat
            self._delayed_until = -inf
            self.assign_if_small(now)

    # -- heartbeats, the second half ------------------------------------------------------------

    def proceed(self, now: float, request: StreamsHeartbeat, settings: Settings) -> Answer:
        """Lead a member towards its target, after :meth:`receive`. Raises the errors of the interface."""
        if request.member_epoch < JOIN_EPOCH:
            return Answer(request.member_id, request.member_epoch)
        member = self.member(request.member_id)
        joins = request.member_epoch == JOIN_EPOCH
        if not joins:
            self.check_epoch(member, request.member_epoch, _lost_answer(member, request))
        self._renew(False, settings.standbys)
        self.assign_if_small(now)
        before, repeated = member.assigned, request.member_epoch != member.epoch
        owned = owned_in(request)
        self._reconcile(now, member, owned)
        self.mark(member)
        repeated = repeated or joins or member.may_have_missed(owned)
        self._ask_to_shut_down(request)
        told = repeated or member.assigned != before
        if (joins or member.assigned != before) and member.endpoint is not None:
            self.endpoint_epoch += 1
        statuses = tuple(self._statuses(now, member))
        interval = self.come_again(now, member.member_id, settings.heartbeat)
        if self.needs_target and now < self.assign_at:
            interval = min(interval, max(self.assign_at - now, 0.001))
        return Answer(member.member_id, member.epoch, member.assigned if told else None, statuses, interval)

    def _reconcile(self, now: float, member: Member, owned: Roles | None) -> None:
        if self.is_reconciled(member):
            return
        epoch = member.epoch
        if member.revoking != NOTHING:
            if has_any(owned, member.revoking):
                return
            self._give_up(member, member.revoking)
            member.revoking, member.revoke_by = NOTHING, inf
            epoch = min(epoch + 1, self.assignment_epoch)
        target = self.target_of(member)
        kept, given_up = split(member.assigned, target)
        if given_up != NOTHING and has_any(owned, given_up):
            member.assigned, member.revoking = kept, given_up
            member.lacks = False
            member.revoke_by = now + member.rebalance_timeout
            self.wake_at = min(self.wake_at, member.revoke_by)
            member.advance(epoch)
            return
        self._give_up(member, given_up)
        fresh = self._owned.free(member.process_id, minus(target, kept))
        self._owned.take(member.process_id, fresh)
        member.lacks = size(kept) + size(fresh) < size(target)
        member.assigned = joined(kept, fresh) if member.lacks else target  # one object is kept once
        member.advance(self.assignment_epoch)
        member.take(fresh)

    def _give_up(self, member: Member, tasks: Roles) -> None:
        self._owned.release(member.process_id, tasks)
        member.lose(tasks)

    def _statuses(self, now: float, member: Member) -> Iterator[Status]:
        assert self.topology is not None
        ours, theirs = member.topology_epoch, self.topology.epoch
        if ours < theirs:
            yield Status(
                StatusCode.STALE_TOPOLOGY,
                f"The member's topology epoch {ours} is behind the group's topology epoch {theirs}.",
            )
        if self.needs_target and now < self.assign_at:
            why = "initial rebalance delay" if now < self._delayed_until else "assignment interval"
            yield Status(StatusCode.ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {why}.")
        if self.configured is not None and self.configured.problem is not None:
            yield self.configured.problem
        if self._shutdown_by is not None:
            yield Status(
                StatusCode.SHUTDOWN_APPLICATION,
                f"Streams group member {self._shutdown_by} encountered a fatal error and requested a "
                "shutdown for the entire application.",
            )

    def endpoints(self) -> Iterator[EndpointPartitions]:
        """The partitions at each application endpoint, for queries; members may come and go meanwhile."""
        for member in list(self.members.values()):
            if member.endpoint is not None and self.is_ready:
                assert self.configured is not None
                yield partitions_at(
                    member.endpoint, member.assigned, self.configured.topology, self._partitions
                )

    # -- offsets --------------------------------------------------------------------------------

    def has_since(self, member: Member, topic: str, partition: int) -> float:
        subtopology = self._reader.get(topic)
        return inf if subtopology is None else epoch_of(member.since, subtopology, partition)

    # -- describing -----------------------------------------------------------------------------

    def described(self) -> Iterator[StreamsMember]:
        """The members as they are described; others may come and go meanwhile."""
        for one in list(self.members.values()):
            yield StreamsMember(
                one.member_id,
                one.epoch,
                one.rack,
                one.client_id,
                one.client_host or IN_PROCESS,
                one.topology_epoch,
                one.process_id,
                one.endpoint,
                one.tags,
                TaskShare(*one.assigned),
                TaskShare(*self.target_of(one)),
            )


def _lost_answer(member: Member, request: StreamsHeartbeat) -> bool:
    """Whether a heartbeat may come from a member that did not get its last answer."""
    owned = owned_in(request)
    return owned is not None and minus(owned, member.assigned) == NOTHING
