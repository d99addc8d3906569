"""The next move of a member towards its target."""

from __future__ import annotations

from uuid import UUID

import pytest
from broker.groups.modern.known_topics import FakeTopics

from dafka.broker.groups.consumer import group as group_module
from dafka.broker.groups.consumer.group import Answer, ConsumerGroup
from dafka.broker.groups.consumer.moves import Move, Position, move_of
from dafka.broker.groups.modern.assignment import NOTHING
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat

A, B = UUID(int=1), UUID(int=2)
FIRST, SECOND = frozenset({0, 1}), frozenset({2, 3})


def test_a_member_that_still_has_what_it_is_to_give_up_waits():
    position = Position(NOTHING, {A: FIRST}, {A: {1: FIRST}}, {B: FIRST}, 2)
    assert move_of(position, {A: frozenset({1})}).waits
    assert move_of(position, None).waits
    move = move_of(position, {})
    assert (move.waits, move.missing, move.since) == (False, {B: FIRST}, {})


def test_partitions_outside_of_the_target_are_given_up_first():
    position = Position({A: FIRST}, NOTHING, {A: {1: FIRST}}, {A: frozenset({1}), B: FIRST}, 2)
    move = move_of(position, {A: FIRST}, is_ahead=True)
    assert (move.kept, move.given_up, move.has_given_up) == ({A: {1}}, {A: {0}}, False)
    assert move.since == {A: {1: FIRST}} and move.whole_since is None
    move = move_of(position, {A: frozenset({1})}, is_ahead=True)
    assert move.has_given_up and move.since == {A: {1: {1}}}
    assert move.whole_since == {A: {1: {1}}, B: {2: FIRST}}


class Scene:
    """A group in which a move takes long, whatever it is about."""

    def __init__(self) -> None:
        self.topics = FakeTopics(t=4)
        self.group = ConsumerGroup(0.0, self.topics)
        self.moves: list[Move] = []

    def run(self, function, *arguments):
        self.moves.append(function(*arguments))
        return self.moves[-1]

    def beat(self, member: str, epoch: int, owned: frozenset[int] = frozenset(), **more) -> ConsumerHeartbeat:
        (topic,) = self.topics.known.values()
        said = {topic.topic_id: owned} if owned else {}
        return ConsumerHeartbeat(member, epoch, owned=said, client_host="h", **more)

    def join(self, member: str) -> Answer:
        request = self.beat(member, 0, topics=["t"], rebalance_timeout=10.0)
        return self.group.heartbeat(0.0, request, 10.0, 9)

    def send(self, request: ConsumerHeartbeat) -> Answer:
        return self.group.heartbeat(0.0, request, 10.0, 9)

    def numbers(self, member: str) -> frozenset[int]:
        return frozenset().union(*self.group.members[member].assigned.values())


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(group_module, "MOVED_AT_ONCE", 0)
    return Scene()


def test_a_move_that_was_computed_ahead_is_made(scene, monkeypatch):
    first = scene.join("x")
    scene.join("y")
    everything = frozenset(range(4))
    request = scene.beat("x", first.epoch, everything)
    scene.group.look_ahead(request, scene.run)
    monkeypatch.setattr(group_module, "move_of", None)  # nothing is computed any more
    assert scene.send(request).assignment is not None
    assert scene.numbers("x") == scene.moves[0].kept[next(iter(scene.topics.known.values())).topic_id]
    assert len(scene.numbers("x")) == 2
    assert scene.group.members["x"].ahead is None


def test_a_move_that_was_computed_ahead_of_something_else_is_not_made(scene):
    first = scene.join("x")
    scene.join("y")
    request = scene.beat("x", first.epoch, frozenset(range(4)))
    scene.group.look_ahead(request, scene.run)
    for other in "zw":  # there is another target
        scene.join(other)
    scene.send(request)
    assert len(scene.numbers("x")) < 2
    assert scene.group.members["x"].ahead is None


def test_partitions_that_another_member_still_has_are_not_given(scene):
    first = scene.join("x")
    joined = scene.join("y")
    request = scene.beat("y", joined.epoch)
    scene.group.look_ahead(request, scene.run)
    scene.send(request)
    assert scene.numbers("y") == frozenset()
    told = scene.send(scene.beat("x", first.epoch, frozenset(range(4))))
    kept = scene.numbers("x")
    request = scene.beat("y", joined.epoch)
    scene.group.look_ahead(request, scene.run)
    scene.send(scene.beat("x", told.epoch, kept))  # it gives them up after that was computed
    scene.send(request)
    assert scene.numbers("y") == frozenset(range(4)) - kept


def test_a_member_at_its_target_is_not_looked_at(scene):
    first = scene.join("x")
    scene.group.look_ahead(scene.beat("x", first.epoch), scene.run)
    scene.group.look_ahead(scene.beat("unknown", 1), scene.run)
    assert scene.moves == []
