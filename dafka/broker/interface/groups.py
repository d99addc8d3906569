"""The group part of the broker interface: Kafka's classic group protocol and committed offsets.

Each method answers one Kafka request (JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, ...) with
the same fields; times are seconds. The coordinator never looks into what members tell each other: metadata
and assignments are octets. ``error`` is a class of ``kafka.errors``, or None.

A member is named by the id that the coordinator gave it, and a *static* member also by the
``instance_id`` of its own choice, which survives its restarts. A generation is one round of the group:
requests of members of an older one are refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from kafka.errors import BrokerResponseError

TopicPartition = tuple[str, int]
Error = type[BrokerResponseError]

NO_GENERATION = -1
NO_MEMBER = ""
IN_PROCESS = "/127.0.0.1"  # the host of members in the broker's own process, for those who look at a group


class GroupType(str, Enum):
    """The protocol of a group, by Kafka's words. A group id has one type at a time."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class CommittedOffset(NamedTuple):
    """A group's position in a partition: the offset of the next record it wants."""

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


class JoinRequest(NamedTuple):
    """The fields of JoinGroup. ``protocols`` are (name, metadata), the one it likes best first.

    ``session_timeout``: without a sign of life for so long the member is dead. ``rebalance_timeout``: how
    long the others wait for it when the group rebalances. ``require_known_member``: a new member gets its id
    with MemberIdRequiredError and joins again with it (JoinGroup version 4 and up). ``can_skip_assignment``:
    the member knows ``Joined.skip_assignment`` (version 9). ``knows_partitions``: of the topics that it
    reads, so that it can assign them at once if it leads. ``client_host``: empty for a client in the broker's
    own process, with which it ends; its group is told :data:`IN_PROCESS`.
    """

    member_id: str
    session_timeout: float
    rebalance_timeout: float
    protocol_type: str
    protocols: Sequence[tuple[str, bytes]]
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    require_known_member: bool = False
    can_skip_assignment: bool = False
    knows_partitions: bool = True


class JoinedMember(NamedTuple):
    """A member as the leader sees it: its metadata for the protocol that was chosen."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    """The generation a member has joined. ``members`` is for the leader, which assigns; others get none."""

    error: Error | None
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = NO_MEMBER
    member_id: str = NO_MEMBER
    members: Sequence[JoinedMember] = ()
    skip_assignment: bool = False


class Synced(NamedTuple):
    """The assignment that the leader made for a member."""

    error: Error | None
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


class LeavingMember(NamedTuple):
    """A member that leaves; a static one may be named by its instance id alone."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


class MemberDescription(NamedTuple):
    """A member of a described group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupDescription(NamedTuple):
    """A group. ``state`` is Kafka's word for it, "Dead" if there is no such group; ``detail`` says why."""

    error: Error | None
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: Sequence[MemberDescription] = ()
    detail: str = ""


class ListedGroup(NamedTuple):
    """A group in a list. A group that only has committed offsets is there with state "Empty"."""

    group: str
    protocol_type: str
    state: str
    type: GroupType = GroupType.CLASSIC


class GroupInterface(ABC):
    """Groups. See :mod:`dafka.broker.interface.broker` for what all methods have in common."""

    @abstractmethod
    def join_group(self, group: str, request: JoinRequest) -> Joined:
        """Join a group, or join it again; waits until the next generation has all its members.

        Errors: MemberIdRequiredError (with the id to join with), UnknownMemberIdError,
        FencedInstanceIdError (another instance has taken over), InconsistentGroupProtocolError,
        InvalidSessionTimeoutError, InvalidGroupIdError, GroupMaxSizeReachedError, RebalanceInProgressError,
        CoordinatorNotAvailableError (too many groups; try again).
        """

    @abstractmethod
    def sync_group(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        protocol_type: str | None = None,
        protocol: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
    ) -> Synced:
        """Return the member's assignment, which the leader sends; waits until the leader has synced.

        Errors: UnknownMemberIdError, IllegalGenerationError, FencedInstanceIdError,
        InconsistentGroupProtocolError, RebalanceInProgressError (join again).
        """

    @abstractmethod
    def heartbeat(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        max_wait: float = 0.0,
    ) -> Error | None:
        """A sign of life. RebalanceInProgressError: join again.

        With ``max_wait`` the answer "all is well" comes only after so many seconds, and any other one at
        once when there is reason for it. Errors: UnknownMemberIdError, IllegalGenerationError,
        FencedInstanceIdError, RebalanceInProgressError.
        """

    @abstractmethod
    def leave_group(self, group: str, members: Sequence[LeavingMember]) -> list[Error | None]:
        """Take members out of their group; an answer for each.

        Errors: UnknownMemberIdError, FencedInstanceIdError.
        """

    @abstractmethod
    def describe_groups(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        """Groups of the classic protocol with their members; one of another type is "Dead" here."""

    @abstractmethod
    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """All groups, or those in these states and of these types (in any case of letters)."""

    @abstractmethod
    def delete_groups(self, groups: Iterable[str]) -> dict[str, Error | None]:
        """Delete groups without members, with their offsets.

        Errors: InvalidGroupIdError, GroupIdNotFoundError, NonEmptyGroupError, KafkaStorageError.
        """

    @abstractmethod
    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = NO_GENERATION,
        member_id: str = NO_MEMBER,
        instance_id: str | None = None,
        knows_epochs: bool = True,
    ) -> dict[TopicPartition, Error | None]:
        """Note a group's positions, durably.

        Very many are written in several rounds. Each answer is true for its partition, also when only some of
        the rounds could be written. The group may be the empty name, which has no members.

        A member names itself. Without a member id offsets are taken only for a group without members.
        ``knows_epochs=False`` is for versions of OffsetCommit before member epochs: they are refused to the
        members of the newer protocols, and an unknown group is an illegal generation there.
        Errors: UnknownMemberIdError, IllegalGenerationError, StaleMemberEpochError, UnsupportedVersionError,
        FencedInstanceIdError, RebalanceInProgressError, InvalidGroupIdError, UnknownTopicOrPartitionError,
        OffsetMetadataTooLargeError, KafkaStorageError.
        """

    @abstractmethod
    def fetch_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = NO_GENERATION,
    ) -> dict[TopicPartition, CommittedOffset]:
        """A group's positions in these partitions (None: all); only those it has committed.

        A member of a consumer group of the newer protocol names itself: raises UnknownMemberIdError and
        StaleMemberEpochError if it is not one any more, or has another epoch by now.

        With ``require_stable`` raises UnstableOffsetCommitError (ask again) while an open transaction
        commits one of them.
        """

    def unstable_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> set[TopicPartition]:
        """The ones of these partitions (None: of all with an offset of the group) whose offset an open
        transaction commits. Only for a broker of this process."""
        raise NotImplementedError("only the broker itself knows what its open transactions commit")

    @abstractmethod
    def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Error | None]:
        """Forget positions of a group, as long as no member subscribes to the topic.

        Errors: InvalidGroupIdError, GroupIdNotFoundError, GroupSubscribedToTopicError,
        UnknownTopicOrPartitionError, KafkaStorageError.
        """
