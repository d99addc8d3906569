"""The group part of a broker: every call is passed on to the coordinator while the broker runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from dafka.broker.groups_coordinator import Coordinator
from dafka.broker.groups_interface import (
    NO_GENERATION,
    NO_MEMBER,
    CommittedOffset,
    Error,
    GroupDescription,
    GroupInterface,
    Joined,
    JoinRequest,
    LeavingMember,
    ListedGroup,
    Synced,
    TopicPartition,
)


class GroupCalls(GroupInterface):
    """A broker's groups; its class has a ``_coordinator`` and knows whether it runs."""

    _coordinator: Coordinator

    @abstractmethod
    def _check(self) -> None:
        """Raise if the broker does not run."""

    def join_group(self, group: str, request: JoinRequest) -> Joined:
        self._check()
        return self._coordinator.join_group(group, request)

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
        self._check()
        return self._coordinator.sync_group(
            group,
            generation,
            member_id,
            instance_id,
            protocol_type=protocol_type,
            protocol=protocol,
            assignments=assignments,
        )

    def heartbeat(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        max_wait: float = 0.0,
    ) -> Error | None:
        self._check()
        return self._coordinator.heartbeat(group, generation, member_id, instance_id, max_wait=max_wait)

    def leave_group(self, group: str, members: Sequence[LeavingMember]) -> list[Error | None]:
        self._check()
        return self._coordinator.leave_group(group, members)

    def describe_groups(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        self._check()
        return self._coordinator.describe_groups(groups)

    def list_groups(self, states: Iterable[str] = ()) -> list[ListedGroup]:
        self._check()
        return self._coordinator.list_groups(states)

    def delete_groups(self, groups: Iterable[str]) -> dict[str, Error | None]:
        self._check()
        return self._coordinator.delete_groups(groups)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = NO_GENERATION,
        member_id: str = NO_MEMBER,
        instance_id: str | None = None,
    ) -> dict[TopicPartition, Error | None]:
        self._check()
        return self._coordinator.commit_offsets(
            group, offsets, generation=generation, member_id=member_id, instance_id=instance_id
        )

    def fetch_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, CommittedOffset]:
        self._check()
        return self._coordinator.fetch_offsets(group, partitions, require_stable=require_stable)

    def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Error | None]:
        self._check()
        return self._coordinator.delete_offsets(group, partitions)
