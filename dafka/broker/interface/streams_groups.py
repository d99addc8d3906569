"""The part of the broker interface about groups of Kafka Streams (KIP-1071).

The members of such a group run the tasks of one topology. A *subtopology* has as many tasks as the largest
topic that it reads has partitions. The broker makes the topology's internal topics and says which member runs
which task: *active*, or as a *standby*, which keeps a copy of the task's state. Times are seconds. ``error``
is a class of ``kafka.errors``, or None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kafka.errors import BrokerResponseError

from dafka.broker.interface.groups import Error, TopicPartition

Tasks = Mapping[str, Collection[int]]
"""Numbers of tasks by subtopology."""

NO_TASKS: Tasks = {}


class StreamsInvalidTopologyError(BrokerResponseError):
    """A topology that contradicts itself."""

    errno = 130
    message = "STREAMS_INVALID_TOPOLOGY"
    description = "The supplied topology is invalid."


class StatusCode(IntEnum):
    """A remark to a member about its group; Kafka's numbers."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """A status, and in words what it is about."""

    code: StatusCode
    detail: str


class InternalTopic(NamedTuple):
    """A topic of a topology's own. ``partitions`` 0: the broker decides."""

    name: str
    partitions: int = 0
    replicas: int = 0
    configs: Mapping[str, str] = {}


class Subtopology(NamedTuple):
    """A part of a topology whose tasks are independent of those of other parts.

    ``sources``: topics that others write; ``regexes``: expressions for such topics, which Apache Kafka 4.3
    does not take either. ``repartition_sinks``: internal topics that it writes, ``repartition_sources`` those
    that it reads. ``changelogs`` hold its state. ``copartitioned``: groups of topics that have equally many
    partitions, by their names.
    """

    name: str
    sources: Sequence[str] = ()
    regexes: Sequence[str] = ()
    changelogs: Sequence[InternalTopic] = ()
    repartition_sinks: Sequence[str] = ()
    repartition_sources: Sequence[InternalTopic] = ()
    copartitioned: Sequence[frozenset[str]] = ()


class Topology(NamedTuple):
    """The topology of a group. ``epoch`` goes up with each version of the application."""

    epoch: int
    subtopologies: Sequence[Subtopology]

    def read_by(self, tasks: Tasks) -> frozenset[TopicPartition]:
        """The partitions of the topics that others write, and of repartition topics, that tasks read."""
        return frozenset(
            (topic, number)
            for one in self.subtopologies
            for topic in (*one.sources, *(topic.name for topic in one.repartition_sources))
            for number in tasks.get(one.name, ())
        )


class Endpoint(NamedTuple):
    """Where a process answers interactive queries."""

    host: str
    port: int


class EndpointPartitions(NamedTuple):
    """The partitions by topic whose tasks are run where an endpoint answers."""

    endpoint: Endpoint
    active: Sequence[tuple[str, Collection[int]]]
    standby: Sequence[tuple[str, Collection[int]]]


class TaskShare(NamedTuple):
    """Tasks of a member by role."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS


class StreamsHeartbeat(NamedTuple):
    """The fields of StreamsGroupHeartbeat. A field that is None has not changed since the last heartbeat.

    ``member_epoch``: 0 to join, -1 to leave. ``endpoint_epoch``: of the endpoints that the member knows.
    ``rebalance_timeout``: how long the member may take to give tasks up. ``topology``: only when joining.
    ``active``, ``standby`` and ``warmup``: the tasks that the member has; it has given up all others.
    ``process_id``: the same for members that share state on disk. ``offsets``: the name of what the request
    says about offsets of tasks, which Apache Kafka 4.3 does not take either. ``may_create``: of these topics,
    which the member may have made for it (None: all).
    """

    member_id: str
    member_epoch: int
    endpoint_epoch: int = 0
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout: float | None = None
    topology: Topology | None = None
    active: Tasks | None = None
    standby: Tasks | None = None
    warmup: Tasks | None = None
    process_id: str | None = None
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] | None = None
    offsets: str | None = None
    shutdown: bool = False
    client_id: str = ""
    client_host: str = ""
    may_create: Callable[[Collection[str]], Collection[str]] | None = None


class StreamsHeartbeatAnswer(NamedTuple):
    """The member's epoch, when it is to send the next heartbeat, and what it is to have.

    ``tasks``: the tasks that it runs from now on, and no others; None: as before. ``endpoints``: where the
    tasks of all members are, None if the member knows.
    """

    error: Error | None
    detail: str = ""
    member_id: str = ""
    member_epoch: int = 0
    interval: float = 0.0
    tasks: TaskShare | None = None
    statuses: Sequence[Status] = ()
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointPartitions] | None = None


class StreamsMember(NamedTuple):
    """A member of a described group."""

    member_id: str
    epoch: int
    rack: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    endpoint: Endpoint | None
    tags: Mapping[str, str]
    assigned: TaskShare
    target: TaskShare


class StreamsGroupDescription(NamedTuple):
    """A group. ``topology`` has the numbers of partitions that the broker has decided."""

    error: Error | None
    detail: str = ""
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: Sequence[StreamsMember] = ()


class StreamsGroupInterface(ABC):
    """See :mod:`dafka.broker.interface.broker` for what all methods have in common."""

    @abstractmethod
    def streams_group_heartbeat(self, group: str, request: StreamsHeartbeat) -> StreamsHeartbeatAnswer:
        """A heartbeat of a member, with which it also joins and leaves.

        Errors: GroupIdNotFoundError, UnknownMemberIdError, FencedMemberEpochError (join again without any
        task), GroupMaxSizeReachedError, InvalidRequestError, StreamsInvalidTopologyError,
        CoordinatorNotAvailableError (too many groups; try again).
        """

    @abstractmethod
    def describe_streams_groups(self, groups: Iterable[str]) -> dict[str, StreamsGroupDescription]:
        """Groups with their members. Errors: GroupIdNotFoundError."""
