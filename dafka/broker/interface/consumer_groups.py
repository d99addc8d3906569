"""The part of the broker interface about consumer groups whose assignment the broker computes (KIP-848).

Members send heartbeats, and learn with the answers what they are to read. Times are seconds; partitions are
named by the ids of their topics. ``error`` is a class of ``kafka.errors``, or None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from dafka.broker.interface.groups import Error

Partitions = Mapping[UUID, Collection[int]]
"""Numbers of partitions by topic id."""


class ConsumerHeartbeat(NamedTuple):
    """The fields of ConsumerGroupHeartbeat. A field that is None has not changed since the last heartbeat.

    ``member_epoch``: 0 to join, -1 to leave, -2 for a static member that will come back.
    ``rebalance_timeout``: how long the member may take to give partitions up. ``topics``: names, whether they
    exist or not. ``regex``: in RE2's syntax; the empty one is none. ``assignor``: "uniform" or "range".
    ``owned``: the partitions that the member has; it has given up all others. ``may_see``: of these topics,
    which the member may find by its regular expression (None: all).
    """

    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout: float | None = None
    topics: Sequence[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    may_see: Callable[[Sequence[str]], Collection[str]] | None = None


class ConsumerHeartbeatAnswer(NamedTuple):
    """The member's epoch, when it is to send the next heartbeat, and what it is to have.

    ``assignment``: the partitions that it may read from now on, and no others; None: as before.
    """

    error: Error | None
    detail: str = ""
    member_id: str = ""
    member_epoch: int = 0
    interval: float = 0.0
    assignment: Partitions | None = None


class ConsumerMember(NamedTuple):
    """A member of a described group. ``is_classic``: it speaks the classic protocol."""

    member_id: str
    instance_id: str | None
    rack: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: Sequence[str]
    regex: str | None
    assigned: Partitions
    target: Partitions
    is_classic: bool = False


class ConsumerGroupDescription(NamedTuple):
    """A group. ``topics`` has the names of the topics in the assignments, by id."""

    error: Error | None
    detail: str = ""
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: Sequence[ConsumerMember] = ()
    topics: Mapping[UUID, str] = {}


class ConsumerGroupInterface(ABC):
    """See :mod:`dafka.broker.interface.broker` for what all methods have in common."""

    @abstractmethod
    def consumer_group_heartbeat(self, group: str, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        """A heartbeat of a member, with which it also joins, leaves, and changes its subscription.

        Errors: GroupIdNotFoundError, UnknownMemberIdError, FencedMemberEpochError (join again without any
        partition), UnreleasedInstanceIdError and FencedInstanceIdError (another member has that instance id),
        UnsupportedAssignorError, GroupMaxSizeReachedError, InvalidRequestError, Kafka's
        INVALID_REGULAR_EXPRESSION, CoordinatorNotAvailableError (too many groups; try again).
        """

    @abstractmethod
    def describe_consumer_groups(self, groups: Iterable[str]) -> dict[str, ConsumerGroupDescription]:
        """Groups with their members. Errors: GroupIdNotFoundError."""
