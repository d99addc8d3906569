"""A member of a Streams group, and what it has of the group's tasks.

A task of a member is *assigned*, or *revoking*: the member has been told to give it up, and has not said yet
that it has. Both are the member's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from dafka.broker.groups.modern.member import ModernMember
from dafka.broker.groups.since import Since, lost, taken
from dafka.broker.groups.streams.kept_members import SavedMember
from dafka.broker.groups.streams.tasks import NOTHING, Roles, minus
from dafka.broker.interface.streams_groups import Endpoint, StreamsHeartbeat


class Member(ModernMember):
    """A member. ``since``: the epoch from which on it has had each of its active tasks."""

    def __init__(self, member_id: str) -> None:
        super().__init__(member_id)
        self.rebalance_timeout = inf
        self.topology_epoch = 0
        self.process_id = ""
        self.endpoint: Endpoint | None = None
        self.tags: Mapping[str, str] = {}
        self.assigned = NOTHING
        self.revoking = NOTHING
        self.since: Since[str] = {}
        self.confirmed = NOTHING  # what was its own when it last said that it has all of that
        self.lacks = False  # whether some of its target is not free yet
        self.revoke_by = inf  # it is removed if it still has what it is to give up

    @classmethod
    def restored(cls, saved: SavedMember) -> Member:
        """A member of which that was kept; which tasks it has is up to its group."""
        member = cls(saved.member_id)
        member.epoch, member.previous_epoch = saved.epoch, saved.previous_epoch
        member.rack, member.client_id, member.client_host = saved.rack, saved.client_id, saved.client_host
        member.topology_epoch, member.process_id = saved.topology_epoch, saved.process_id
        member.endpoint, member.tags = saved.endpoint, saved.tags
        member.rebalance_timeout = saved.rebalance_timeout
        return member

    def saved(self, target: Roles | None) -> SavedMember:
        return SavedMember(
            self.member_id,
            self.epoch,
            self.previous_epoch,
            self.rack,
            self.client_id,
            self.client_host,
            self.topology_epoch,
            self.process_id,
            self.endpoint,
            self.tags,
            self.rebalance_timeout,
            self.assigned,
            self.revoking,
            self.since,
            None if target is self.assigned else target,
        )

    def may_have_missed(self, owned: Roles | None) -> bool:
        """Whether it may not have got the answer with its tasks: it says that it lacks some of them, and has
        never said that it has them all."""
        if owned is None:
            return False
        if minus(self.assigned, owned) == NOTHING:
            self.confirmed = self.assigned
        return self.confirmed is not self.assigned

    @property
    def deadline(self) -> float:
        return min(self.expires, self.revoke_by)

    def update(self, request: StreamsHeartbeat) -> bool:
        """Take over what a heartbeat says of the member; whether that is something new."""
        before = self._said()
        if request.rack is not None:
            self.rack = request.rack
        if request.rebalance_timeout is not None:
            self.rebalance_timeout = request.rebalance_timeout
        if request.topology is not None:
            self.topology_epoch = request.topology.epoch
        if request.process_id is not None:
            self.process_id = request.process_id
        if request.endpoint is not None:
            self.endpoint = request.endpoint
        if request.tags is not None:
            self.tags = dict(request.tags)
        self.client_id, self.client_host = request.client_id, request.client_host
        return self._said() != before

    def _said(self) -> tuple[object, ...]:
        told = (self.rack, self.rebalance_timeout, self.topology_epoch, self.process_id, self.endpoint)
        return (*told, self.tags, self.client_id, self.client_host)

    def take(self, fresh: Roles) -> None:
        """Note since when it has these tasks; its epoch is the new one."""
        if fresh.active:
            self.since = taken(self.since, fresh.active, self.epoch)

    def lose(self, given_up: Roles) -> None:
        """Forget since when it had these tasks."""
        if given_up.active:
            self.since = lost(self.since, given_up.active)
