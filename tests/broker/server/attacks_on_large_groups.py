"""Groups of the newer protocols with as many members as they may have, and members that read very much."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import gevent
from broker.server.attack_scene import SLOW, Attack, Scene, sending
from broker.server.client import WireClient, encoded
from broker.server.samples import streams_heartbeat
from kafka.errors import UnknownMemberIdError

from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from dafka.broker.codec.messages.share_group import ShareGroupDescribeRequest
from dafka.broker.codec.messages.streams_group import StreamsGroupDescribeRequest
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.share import ShareHeartbeat
from dafka.broker.interface.streams_groups import StreamsHeartbeat, Subtopology, Topology
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.limits import GROUP_MAX_SIZE, GROUP_TASKS
from dafka.broker.server.limits import CHANGES_PER_REQUEST
from dafka.hub.hub import get_hub
from dafka.hub.turns import Pace, in_pieces

HOST = "/127.0.0.1"  # so that members are kept over a restart, as those of clients on TCP are
_numbers = count()


class Told(NamedTuple):
    """The epoch that a member has been told, and its partitions or tasks."""

    epoch: int
    owned: Any


NEW = Told(0, {})


def _check(answer: Any) -> None:
    if answer.error is UnknownMemberIdError:
        raise UnknownMemberIdError
    assert not answer.error, answer


def _consumer_beat(core: Any, group: str, topic: str, member: str, told: Told) -> Told:
    joining: Any = {"rebalance_timeout": 300.0, "topics": [topic]} if not told.epoch else {}
    request = ConsumerHeartbeat(member, told.epoch, owned=told.owned, client_host=HOST, **joining)
    answer = core.consumer_group_heartbeat(group, request)
    _check(answer)
    return Told(answer.member_epoch, told.owned if answer.assignment is None else answer.assignment)


def _share_beat(core: Any, group: str, topic: str, member: str, told: Told) -> Told:
    topics = None if told.epoch else (topic,)
    answer = core.share_heartbeat(ShareHeartbeat(group, member, told.epoch, topics, client_host=HOST))
    _check(answer)
    return Told(answer.member_epoch, told.owned)


def _streams_beat(core: Any, group: str, topic: str, member: str, told: Told) -> Told:
    joining: Any = {}
    if not told.epoch:
        joining = {"rebalance_timeout": 300.0, "topology": Topology(0, [Subtopology("0", [topic])])}
    tasks = {"active": told.owned, "standby": {}, "warmup": {}, "process_id": member}
    request = StreamsHeartbeat(member, told.epoch, client_host=HOST, **tasks, **joining)
    answer = core.streams_group_heartbeat(group, request)
    _check(answer)
    return Told(answer.member_epoch, told.owned if answer.tasks is None else answer.tasks.active)


KINDS: dict[str, tuple[Callable[..., Told], Any, int]] = {
    "consumer": (_consumer_beat, ConsumerGroupDescribeRequest, 1),
    "share": (_share_beat, ShareGroupDescribeRequest, 1),
    "streams": (_streams_beat, StreamsGroupDescribeRequest, 0),
}
"""How a member sends a heartbeat, and the request that describes a group, with its version."""


class LargeGroup:
    """A group with as many members as one may have, or a tenth of the partitions. They read a topic with as
    many partitions."""

    def __init__(self, scene: Scene, kind: str) -> None:
        self._core = scene.broker._running.core  # type: ignore[union-attr]
        self._beat, self._describe, self._version = KINDS[kind]
        self.name = self._topic = f"{kind}-members-{next(_numbers)}"
        members = min(scene.partitions // 10, GROUP_MAX_SIZE)
        self._members = dict.fromkeys((f"member-{number}" for number in range(members)), NEW)
        get_hub().run(self._core.create_topics, {self._topic: TopicSpec(members)})

    def join(self) -> None:
        """All join, and have what the last target gives them."""
        get_hub().run(self._join)

    def _join(self) -> None:
        self._all_beat()
        deadline = time.monotonic() + SLOW
        while len({told.epoch for told in self._members.values()}) > 1:
            assert time.monotonic() < deadline
            gevent.sleep(0.5)
            self._all_beat()

    def _all_beat(self) -> None:
        for some in in_pieces(self._members, 100):
            gevent.joinall([gevent.spawn(self._say, one) for one in some], raise_error=True)

    def _say(self, member: str) -> None:
        Pace().pause()  # as many in a turn as there is time for
        told = self._members[member]
        try:
            self._members[member] = self._beat(self._core, self.name, self._topic, member, told)
        except UnknownMemberIdError:  # the session ended while others joined: it joins again
            self._members[member] = NEW

    def described(self) -> bytes:
        """A request to describe it."""
        request = self._describe(group_ids=[self.name], include_authorized_operations=False)
        return encoded(request, self._version)


def joining(kind: str) -> Attack:
    """As many members as a group may have join it, a hundred at a time."""
    return lambda scene: LargeGroup(scene, kind).join


def describing(kind: str) -> Attack:
    """A group with as many members as it may have is described."""

    def describe(scene: Scene) -> Callable[[], None]:
        group = LargeGroup(scene, kind)
        group.join()
        return sending(scene, group.described())

    return describe


def get_very_many_tasks(scene: Scene) -> Callable[[], None]:
    """The one member of a group of Kafka Streams gets as many tasks as there may be."""
    number, tasks = next(_numbers), min(scene.partitions // 5, GROUP_TASKS)
    topic = f"tasks-{number}"
    core = scene.broker._running.core  # type: ignore[union-attr]
    get_hub().run(core.create_topics, {topic: TopicSpec(tasks)})

    def beat() -> None:
        with WireClient(scene.broker) as wire:
            wire.socket.settimeout(SLOW)
            answer = wire.ask(streams_heartbeat(topic, group_id=topic), 0)
            deadline = time.monotonic() + SLOW
            more = {"topology": None, "rebalance_timeout_ms": -1, "process_id": None}
            more.update(dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks")))
            while not answer.active_tasks:
                assert not answer.error_code, answer
                assert time.monotonic() < deadline
                time.sleep(0.05)
                answer = wire.ask(
                    streams_heartbeat(topic, group_id=topic, member_epoch=answer.member_epoch, **more), 0
                )
            assert len(answer.active_tasks[0].partitions) == tasks

    return beat


def subscribe_to_everything(scene: Scene) -> Callable[[], None]:
    """A member's expression matches as many topics as there are partitions; another has the same one."""
    number = next(_numbers)
    names = (f"any-{number}-{one}" for one in range(scene.partitions))
    core = scene.broker._running.core  # type: ignore[union-attr]
    for some in in_pieces(names, CHANGES_PER_REQUEST):
        get_hub().run(core.create_topics, dict.fromkeys(some, TopicSpec(1)))

    owned: dict[str, list[Any]] = {}

    def beat(wire: WireClient, member: str, epoch: int) -> int:
        """The member says what it has, and gives up what it is not to have; its epoch."""
        joins = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"any-{number}",
            member_id=member,
            member_epoch=epoch,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=int(1000 * SLOW) if joins else -1,
            subscribed_topic_names=None,
            subscribed_topic_regex=f"any-{number}-.*" if joins else None,
            server_assignor=None,
            topic_partitions=[
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=one.topic_id, partitions=one.partitions
                )
                for one in owned.setdefault(member, [])
            ],
        )
        answer = wire.ask(request, 1)
        assert not answer.error_code, answer
        if answer.assignment is not None:
            owned[member] = answer.assignment.topic_partitions
        return int(answer.member_epoch)

    def read() -> None:
        with WireClient(scene.broker) as wire:
            wire.socket.settimeout(SLOW)
            epochs = {"one": beat(wire, "one", 0)}
            deadline = time.monotonic() + SLOW
            while (
                len(epochs) < 2 or not all(owned.values()) or sum(map(len, owned.values())) < scene.partitions
            ):
                assert time.monotonic() < deadline
                time.sleep(0.05)
                if owned["one"] and "two" not in epochs:
                    epochs["two"] = beat(wire, "two", 0)
                epochs = {member: beat(wire, member, epoch) for member, epoch in epochs.items()}
            for member in epochs:
                owned.pop(member)
                assert beat(wire, member, -1) == -1

    return read
