"""The stored states of share groups as they are asked of the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from broker.share.member import Member, acquired

from dafka import Broker
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.share import NO_START, SharedState, StateWrite
from dafka.broker.share.limits import RUNS

GROUP = "queue"
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


class States:
    """Asks for the state of one partition of a topic with five records."""

    def __init__(self, client: Client) -> None:
        self.call = client.call
        self.call("create_topics", {"jobs": TopicSpec(1)})
        self.call("produce", {("jobs", 0): [batch(*(b"%d" % number for number in range(5)))]})
        self.topic_id: UUID = self.call("metadata", ["jobs"]).topics["jobs"].topic_id
        self.place = (self.topic_id, 0)

    def begin(self, epoch: int, start: int) -> Any:
        return self._one(self.call("begin_share_states", GROUP, {self.place: (epoch, start)}))

    def write(self, epoch: int, start: int, *runs: tuple[int, int, int, int], leader: int = -1) -> Any:
        change = StateWrite(epoch, leader, start, runs)
        return self._one(self.call("write_share_states", GROUP, {self.place: change}))

    def read(self, leader: int = -1) -> SharedState:
        return self._one(self.call("read_share_states", GROUP, {self.place: leader}))

    def sum_up(self) -> SharedState:
        return self._one(self.call("sum_up_share_states", GROUP, [self.place]))

    def delete(self) -> SharedState:
        return self._one(self.call("delete_share_states", GROUP, [self.place]))

    def _one(self, found: dict[Any, SharedState]) -> SharedState:
        return found[self.place]


@pytest.fixture
def states() -> Iterator[States]:
    with Broker() as broker:
        yield States(Client(broker))


def test_a_state_has_to_begin_before_it_is_read_or_written(states: States):
    assert states.read().error is errors.InvalidRequestError
    assert states.write(0, 0).error is errors.InvalidRequestError
    assert states.sum_up() == SharedState(None, start=NO_START)
    assert states.begin(2, 1).error is None
    assert states.read()[2:] == (2, 0, 1, [], -1)
    assert states.begin(1, 0).error is errors.FencedStateEpochError
    assert states.begin(2, 3).error is None
    assert states.sum_up()[2:] == (2, 0, 3, (), 0)
    assert states.begin(3, -7).error is errors.InvalidRequestError


def test_a_written_state_replaces_the_state_before(states: States):
    states.begin(2, 0)
    assert states.write(2, 1, (1, 2, AVAILABLE, 1), (3, 3, ACKNOWLEDGED, 2)).error is None
    assert states.read().runs == [(1, 2, AVAILABLE, 1), (3, 3, ACKNOWLEDGED, 2)]
    assert states.write(2, -1, (2, 2, ARCHIVED, 5)).error is None
    found = states.read()
    assert (found.start, found.runs) == (1, [(1, 1, 0, 1), (2, 2, ARCHIVED, 5), (3, 3, ACKNOWLEDGED, 2)])
    assert states.sum_up().finished == 2
    assert states.write(1, 2).error is errors.FencedStateEpochError
    assert states.write(9, 1, (1, 1, ACKNOWLEDGED, 1)).error is None
    assert (states.read().state_epoch, states.read().start) == (2, 1)
    assert states.sum_up().finished == 3


@pytest.mark.parametrize(
    "run", [(3, 2, 0, 1), (-1, 2, 0, 1), (0, 2, 1, 1), (0, 2, 9, 1), (0, 2, 0, -1), (0, 2**62, 0, 1)]
)
def test_an_invalid_state_is_refused_and_changes_nothing(states: States, run: Any):
    states.begin(0, 0)
    assert states.write(0, 1, run).error is errors.InvalidRequestError
    assert states.read()[2:] == (0, 0, 0, [], -1)


def test_a_state_has_so_many_runs_at_most(states: States):
    states.begin(0, 0)
    backwards = [(at, at, ARCHIVED, 1) for at in range(4 * RUNS, 0, -2)]
    assert states.write(0, 0, *backwards).error is errors.InvalidRequestError
    assert states.read().runs == []
    assert states.write(0, 0, *backwards[-100:]).error is None
    assert states.sum_up().finished == 100


def test_a_partition_that_is_not_there(states: States):
    for place in ((UUID(int=7), 0), (states.topic_id, 9)):
        for method, asked, error in (
            ("begin_share_states", {place: (0, 0)}, errors.UnknownTopicOrPartitionError),
            ("delete_share_states", [place], errors.UnknownTopicOrPartitionError),
            ("sum_up_share_states", [place], errors.UnknownTopicOrPartitionError),
            ("read_share_states", {place: 0}, errors.InvalidRequestError),
            ("write_share_states", {place: StateWrite(0, 0, 0, ())}, errors.InvalidRequestError),
        ):
            assert states.call(method, GROUP, asked)[place].error is error
    place = (states.topic_id, -1)
    assert states.call("delete_share_states", GROUP, [place])[place].error is errors.InvalidRequestError


def test_a_group_goes_on_from_the_state_that_was_written(states: States):
    states.begin(0, 0)
    states.write(0, 1, (2, 3, ACKNOWLEDGED, 1))
    member = Member(states.call, GROUP, "jobs")
    member.heartbeat()
    assert acquired(member.fetch()) == [(1, 1, 1), (4, 4, 1)]
    for refused in (states.begin(1, 0), states.write(0, 3), states.delete()):
        assert refused.error is errors.NonEmptyGroupError  # this broker leads for its members
    assert states.read().error is None
    member.heartbeat(-1)
    assert states.delete().error is None
    assert states.read().error is errors.InvalidRequestError


def test_states_stay_when_the_broker_starts_again(tmp_path):
    with Broker(tmp_path) as broker:
        states = States(Client(broker))
        states.begin(3, 0)
        states.write(3, 1, (2, 2, ARCHIVED, 5))
        before = states.read()
    with Broker(tmp_path) as broker:
        place = states.place
        assert Client(broker).call("read_share_states", GROUP, {place: -1})[place] == before
