"""The share groups' part of the broker interface (KIP-932): members that read partitions as queues.

Methods answer one Kafka request each (ShareGroupHeartbeat, ShareFetch, ShareAcknowledge, ...), with the same
fields; times are seconds, topics are named by their ids. ``error`` is a class of ``kafka.errors``, or None,
and ``detail`` says in words what is wrong.

A member reads within a *share session*: it names its partitions once, and afterwards what has changed. The
first request of a session has the epoch 0, each further one the next number, the last one -1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from kafka.errors import BrokerResponseError

from dafka.broker.interface.groups import Error, TopicPartition

SharePlace = tuple[UUID, int]
"""A partition by the id of its topic."""

OPEN_SESSION, CLOSE_SESSION = 0, -1
NO_START = -1
"""The start offset of a partition that no member has read yet."""


class ShareSessionLimitReachedError(BrokerResponseError):
    """The broker has as many share sessions as it may have."""

    errno = 133
    message = "SHARE_SESSION_LIMIT_REACHED"
    description = "The limit of share sessions has been reached."


class AcknowledgeType(IntEnum):
    """A member's acknowledgement of a record. GAP: there is no record with this offset."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Acknowledged(NamedTuple):
    """One type for the offsets ``first`` to ``last``, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Acquired(NamedTuple):
    """Records that a member has acquired now, delivered ``deliveries`` times by now."""

    first: int
    last: int
    deliveries: int


class ShareHeartbeat(NamedTuple):
    """The fields of ShareGroupHeartbeat. ``member_epoch`` 0 joins, -1 leaves. ``topics``, the names that the
    member reads, is None if they are the same as before."""

    group: str
    member_id: str
    member_epoch: int
    topics: Collection[str] | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""


class ShareHeartbeatAnswer(NamedTuple):
    """The member's epoch, when its next heartbeat is due, and its partitions (None: as before)."""

    error: Error | None
    detail: str = ""
    member_id: str = ""
    member_epoch: int = 0
    interval: float = 0.0
    assignment: Mapping[UUID, Collection[int]] | None = None


class ShareRequest(NamedTuple):
    """The fields that ShareFetch and ShareAcknowledge have in common. ``is_renewal``: whether there may be
    RENEW among the types. ``bare``: partitions that are named without an acknowledgement."""

    group: str
    member_id: str
    session_epoch: int
    acknowledgements: Mapping[SharePlace, Sequence[Acknowledged]]
    is_renewal: bool = False
    bare: Sequence[SharePlace] = ()


class ShareFetchLimits(NamedTuple):
    """How long a ShareFetch waits (seconds) for how much, and what it takes at most.

    With ``strict`` no more than ``max_records``; otherwise the batch with the last of them as a whole.
    """

    max_wait: float
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int = 0
    strict: bool = False


class SharedRecords(NamedTuple):
    """The answer to a member for one partition: batches, and which of their records it has acquired.

    ``acknowledge_error`` is about its acknowledgements in the same request.
    """

    error: Error | None = None
    acknowledge_error: Error | None = None
    batches: Sequence[bytes] = ()
    acquired: Sequence[Acquired] = ()
    detail: str = ""


class ShareFetched(NamedTuple):
    """The answer to a ShareFetch, or to a ShareAcknowledge; ``lock`` is for how long (seconds) records are
    acquired."""

    error: Error | None
    detail: str = ""
    lock: float = 0.0
    partitions: Mapping[SharePlace, SharedRecords] = {}


class ShareMember(NamedTuple):
    """A member as tools see it."""

    member_id: str
    rack: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: Collection[str]
    assignment: Mapping[UUID, Collection[int]]


class ShareGroupDescription(NamedTuple):
    """A share group as tools see it."""

    error: Error | None
    detail: str = ""
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: Sequence[ShareMember] = ()


class ShareOffset(NamedTuple):
    """How far a group has come in a partition: all below ``start`` is done with; NO_START if nobody has read
    it. ``lag`` is how many offsets are not done with, -1 if that is unknown."""

    error: Error | None
    start: int = NO_START
    leader_epoch: int = 0
    lag: int = -1


class ShareOffsets(NamedTuple):
    """The offsets of a group, or the error for all of it."""

    error: Error | None
    partitions: Mapping[TopicPartition, ShareOffset] = {}
    detail: str = ""


class ShareStanding(NamedTuple):
    """Where the offsets of a partition stand for a group. All below ``start`` is done with.

    ``ahead``: how many, from ``end`` on, no member has been given yet. The others between ``start`` and
    ``end`` are ``available``, ``acquired``, ``acknowledged`` or ``archived``; ``deliveries``: how many of the
    first two were delivered so often; ``holders``: how many a member has acquired. A broker elsewhere knows
    neither ``ahead`` nor ``acquired`` nor the holders; its ``available`` may be acquired.
    """

    error: Error | None
    start: int = NO_START
    end: int = NO_START
    ahead: int | None = 0
    available: int = 0
    acquired: int | None = 0
    acknowledged: int = 0
    archived: int = 0
    deliveries: Mapping[int, int] = {}
    holders: Mapping[str, int] = {}


class ShareStandings(NamedTuple):
    """The standings of all partitions that a group reads, or the error for all of it."""

    error: Error | None
    partitions: Mapping[TopicPartition, ShareStanding] = {}
    detail: str = ""


class ShareOutcome(NamedTuple):
    """The error of a change of offsets, or those of its parts, by topic or partition."""

    error: Error | None
    parts: Mapping[TopicPartition, Error | None] = {}
    detail: str = ""


StateRun = tuple[int, int, int, int]
"""First and last offset, delivery state by Kafka's number, number of deliveries."""


class SharedState(NamedTuple):
    """The stored state of a share partition, as brokers of Kafka ask each other for it; ``start`` is NO_START
    before anybody has read it. ``finished`` is how many offsets from ``start`` on are done with."""

    error: Error | None
    detail: str = ""
    state_epoch: int = 0
    leader_epoch: int = 0
    start: int = 0
    runs: Sequence[StateRun] = ()
    finished: int = -1


class StateWrite(NamedTuple):
    """A change of it. ``leader_epoch`` -1: of no leader; ``start`` -1: the same as before."""

    state_epoch: int
    leader_epoch: int
    start: int
    runs: Sequence[StateRun]


_OF_THE_BROKER = "the stored states of share groups are asked of an embedded broker only"


class ShareInterface(ABC):
    """Share groups. See :mod:`dafka.broker.interface.broker` for what all methods have in common."""

    @abstractmethod
    def share_heartbeat(self, heartbeat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        """Join, leave, or say that one is there.

        Errors: InvalidRequestError, UnknownMemberIdError, FencedMemberEpochError, GroupMaxSizeReachedError,
        GroupIdNotFoundError (the group has another type), CoordinatorNotAvailableError.
        """

    @abstractmethod
    def share_fetch(
        self,
        request: ShareRequest,
        partitions: Collection[SharePlace],
        forgotten: Collection[SharePlace],
        limits: ShareFetchLimits,
        connection: object = None,
    ) -> ShareFetched:
        """Acknowledge records, and acquire further ones; waits for some.

        ``partitions`` are added to those of the session, without ``forgotten``. The session ends, and the
        member's records are available again, when the ``connection`` is closed: any object that stands for
        one, until :meth:`forget_connection`. To a broker elsewhere it has one. Answered are partitions with
        records, with an error or with acknowledgements. Errors: InvalidRequestError,
        ShareSessionNotFoundError, InvalidShareSessionEpochError, ShareSessionLimitReachedError; of partitions
        UnknownTopicIdError, UnknownTopicOrPartitionError, KafkaStorageError, CorruptRecordError, and
        InvalidRecordStateError (the member does not hold what it acknowledges).
        """

    @abstractmethod
    def share_acknowledge(self, request: ShareRequest) -> ShareFetched:
        """Acknowledge records; the last request of a session gives back all others."""

    @abstractmethod
    def describe_share_groups(self, groups: Iterable[str]) -> dict[str, ShareGroupDescription]:
        """Describe share groups. Errors: GroupIdNotFoundError."""

    @abstractmethod
    def share_offsets(self, group: str, partitions: Iterable[TopicPartition] | None = None) -> ShareOffsets:
        """How far a group has come, in these partitions or in all that it has read.

        As in Kafka, unknown partitions and groups are answered as if nobody had read there."""

    @abstractmethod
    def alter_share_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> ShareOutcome:
        """Let a group without members go on from other offsets; a group that there is not begins with them.

        Errors: InvalidGroupIdError (without a name), GroupIdNotFoundError (of another type),
        NonEmptyGroupError; of partitions UnknownTopicOrPartitionError, KafkaStorageError.
        """

    @abstractmethod
    def delete_share_offsets(self, group: str, topics: Iterable[str]) -> ShareOutcome:
        """Forget the offsets of a group without members in topics (the parts have partition -1).

        Errors: InvalidGroupIdError (without a name), GroupIdNotFoundError, NonEmptyGroupError; of topics
        UnknownTopicOrPartitionError, KafkaStorageError.
        """

    def share_standings(self, group: str) -> ShareStandings:
        """Where the records of a group stand in each partition.

        Errors: GroupIdNotFoundError, and of a broker elsewhere ClusterAuthorizationFailedError without the
        right CLUSTER_ACTION; of partitions KafkaStorageError, InvalidRequestError (there is no state yet).
        """
        raise NotImplementedError(_OF_THE_BROKER)

    @abstractmethod
    def forget_connection(self, connection: object) -> None:
        """A connection is closed: its share sessions end."""

    # Requests between brokers of Kafka. A group with members keeps its states: NonEmptyGroupError.

    def begin_share_states(
        self, group: str, starts: Mapping[SharePlace, tuple[int, int]]
    ) -> dict[SharePlace, SharedState]:
        """Let states begin with a state epoch, at a start offset.

        Errors: UnknownTopicOrPartitionError, FencedStateEpochError, InvalidRequestError, KafkaStorageError.
        """
        raise NotImplementedError(_OF_THE_BROKER)

    def read_share_states(
        self, group: str, places: Mapping[SharePlace, int]
    ) -> dict[SharePlace, SharedState]:
        """The states, each for a leader of that epoch (-1: for anybody).

        Errors: InvalidRequestError (there is none), FencedLeaderEpochError, KafkaStorageError.
        """
        raise NotImplementedError(_OF_THE_BROKER)

    def sum_up_share_states(
        self, group: str, places: Collection[SharePlace]
    ) -> dict[SharePlace, SharedState]:
        """The states without their runs. Errors: UnknownTopicOrPartitionError, KafkaStorageError."""
        raise NotImplementedError(_OF_THE_BROKER)

    def write_share_states(
        self, group: str, writes: Mapping[SharePlace, StateWrite]
    ) -> dict[SharePlace, SharedState]:
        """Change states, durably.

        Errors: InvalidRequestError (there is none, or it cannot become like that), FencedStateEpochError,
        FencedLeaderEpochError, KafkaStorageError.
        """
        raise NotImplementedError(_OF_THE_BROKER)

    def delete_share_states(
        self, group: str, places: Collection[SharePlace]
    ) -> dict[SharePlace, SharedState]:
        """Forget states. Errors: UnknownTopicOrPartitionError, KafkaStorageError."""
        raise NotImplementedError(_OF_THE_BROKER)
