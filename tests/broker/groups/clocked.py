"""A group with a clock to set, and its members."""

from __future__ import annotations

from typing import Any

from dafka.broker.groups.generation import State
from dafka.broker.groups.group import Group
from dafka.broker.interface.broker import JoinRequest
from dafka.broker.limits import INITIAL_DELAY

RANGE = [("range", b"meta")]
SESSION = 10.0
REBALANCE = 60.0


class Table:
    """A group with a clock to set, and members that join and sync; each answer is appended to a list."""

    def __init__(self) -> None:
        self.now = 0.0
        self.group = Group(0.0)

    def join(
        self, member_id: str = "", protocols: Any = RANGE, instance: str | None = None, **more: Any
    ) -> Any:
        answers: list[Any] = []
        request = JoinRequest(member_id, SESSION, REBALANCE, "consumer", protocols, instance, "c", **more)
        self.group.join(self.now, request, answers.append)
        return answers

    def sync(self, joined: Any, assignments: Any = None, instance: str | None = None, **more: Any) -> Any:
        answers: list[Any] = []
        fields = {"generation": joined.generation, "member_id": joined.member_id, **more}
        self.group.sync(
            self.now,
            fields["generation"],
            fields["member_id"],
            instance,
            fields.get("protocol_type", "consumer"),
            fields.get("protocol", joined.protocol),
            assignments or {},
            answers.append,
        )
        return answers

    def beat(self, joined: Any, **more: Any) -> Any:
        generation = more.get("generation", joined.generation)
        return self.group.heartbeat(self.now, generation, joined.member_id, more.get("instance"))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.group.wake_at:
            self.group.tick(self.now)

    def stable(self, count: int = 1, **options: Any) -> list[Any]:
        """A stable group of ``count`` new members, the leader first; returns the answers to their joins."""
        answers = [self.join(**options) for _ in range(count)]
        self.pass_time(INITIAL_DELAY)
        return self.settle([answer for (answer,) in answers])

    def settle(self, joined: list[Any]) -> list[Any]:
        joined = sorted(joined, key=lambda one: one.member_id != one.leader)
        everyone = {one.member_id: one.member_id.encode() for one in joined}
        waiting = [self.sync(one) for one in joined[1:]]
        synced = [self.sync(joined[0], everyone), *waiting]
        assert [answer.assignment for (answer,) in synced] == [one.member_id.encode() for one in joined]
        assert self.group.state is State.STABLE
        return joined


def error_of(answers: list[Any]) -> Any:
    (answer,) = answers
    return answer.error
